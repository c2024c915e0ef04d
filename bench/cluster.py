"""A Spark standalone cluster on loopback: a master and some workers, each a process of its own.

As an operator has it, but on one machine: executors are started by Spark's workers, not by the driver.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.waiting import await_that, end
from lockstep.launch.jvm import LATE_C2
from lockstep.launch.submit import environment, find_spark_home

START_S = 60.0
HOST = "127.0.0.1"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """`master`: its URL. `pids`: of Spark's workers, whose descendants the executors are."""

    master: str
    pids: tuple[int, ...]

    def run_arguments(self) -> list[str]:
        """What `lockstep run` is told about it: executors are on this machine, too."""
        return [
            *("--master", self.master),
            *("--conf", f"spark.driver.host={HOST}"),
            *("--conf", f"spark.pyspark.python={sys.executable}"),
        ]


@contextmanager
def standalone_cluster(
    folder: Path, *, workers: int, cores: int, memory: str = "2g", unshared: Path | None = None
) -> Iterator[Cluster]:
    """`cores`: slots of each of Spark's workers. Logs and executors' folders are in `folder`. `unshared`: a
    folder of which the last of them has one of its own, as where something is not mounted; needs root.

    Raises `Failed` where it does not start; every process ends with the block.
    """
    with ExitStack() as stack:
        log = folder / "spark-master.log"
        process = stack.enter_context(
            _process(log, [MASTER, "--host", HOST, "--port", "0", "--webui-port", "0"])
        )
        await_that("Spark master", lambda: _url(log) != "", timeout_s=START_S, process=process, log=log)
        pids = [
            stack.enter_context(
                _worker(
                    folder,
                    number,
                    _url(log),
                    cores=cores,
                    memory=memory,
                    before=_hiding(unshared) if number == workers - 1 else (),
                )
            )
            for number in range(workers)
        ]
        yield Cluster(master=_url(log), pids=tuple(pids))


@contextmanager
def _worker(
    folder: Path, number: int, master: str, *, cores: int, memory: str, before: Sequence[str] = ()
) -> Iterator[int]:
    log, work = folder / f"spark-worker-{number}.log", folder / f"spark-worker-{number}"
    arguments = [WORKER, "--host", HOST, "--port", "0", "--webui-port", "0", "--work-dir", str(work)]
    arguments += ["--cores", str(cores), "--memory", memory, master]
    with _process(log, arguments, before) as process:
        await_that(
            "Spark worker", lambda: _REGISTERED in _text(log), timeout_s=START_S, process=process, log=log
        )
        yield process.pid


@contextmanager
def _process(
    log: Path, arguments: Sequence[str], before: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """`before`: of the command."""
    home = find_spark_home()
    own = {"SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": LATE_C2}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*before, str(home / "bin" / "spark-class"), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment({**os.environ, **own}, spark_home=home),
        )
    try:
        yield process
    finally:
        end(process)


def _hiding(folder: Path | None) -> Sequence[str]:
    """What runs a command for which an empty folder is there instead."""
    if folder is None:
        return ()
    hidden = 'mount -t tmpfs lockstep-test "$0" && exec "$@"'
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", hidden, str(folder))


def _url(log: Path) -> str:
    found = _URL.search(_text(log))
    return found[1] if found is not None else ""


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
