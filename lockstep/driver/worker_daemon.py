"""What Spark forks the workers from, in place of `pyspark.daemon`: the same, with the worker's modules in it.

Each worker, also one that takes a dead one's place, then starts with all that it imports, in memory that they
share. Nothing that is imported here may start a thread: a fork would leave it behind.
"""

from __future__ import annotations

import contextlib
import os
import sys

from lockstep.launch.start_up import importing, without_here, without_zips


def main() -> None:
    """Until Spark closes stdin."""
    sys.path[:] = without_zips(without_here(sys.path, os.getcwd()), os.environ.get("SPARK_HOME", ""))
    load()
    from pyspark.daemon import manager

    manager()


def load() -> None:
    """What a task imports."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    with importing():
        import pyspark.daemon  # noqa: F401

        # The task that misses a module says so to the driver; from here nobody would hear it.
        with contextlib.suppress(ImportError):
            import participant.worker.task
            import participant.worker.worker  # noqa: F401


if __name__ == "__main__":
    main()
