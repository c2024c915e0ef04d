"""The function that Spark runs on an executor: one worker, for as long as it lives."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator

from control_topic.quiet import plain_logs, quiet_kafka_clients
from participant.worker.spec import Ended, WorkerSpec


def run_task(spec: WorkerSpec, slot: int, log_level: str, _rows: Iterator[int]) -> Iterator[str]:
    """One JSON document: how the worker ended (`participant.worker.spec.Ended`).

    A task that Spark itself retries ends at once: restarting is the supervisor's, one incarnation a job.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        yield Ended(slot=slot, incarnation="", reason="a retry by Spark", failed=True).to_json()
        return
    logging.basicConfig(
        level=log_level,
        stream=sys.stderr,
        format=f"%(asctime)s %(levelname)-7s worker-{slot} %(name)s: %(message)s",
        force=True,
    )
    plain_logs()
    quiet_kafka_clients()
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from participant.worker.worker import Worker

    try:
        ended = Worker(spec, slot).run()
    except Exception as error:
        logging.getLogger("lockstep.worker").debug("where the worker failed", exc_info=True)
        reason = f"{type(error).__name__}: {error}"
        ended = Ended(slot=slot, incarnation="", reason=reason, failed=True)
    yield ended.to_json()
