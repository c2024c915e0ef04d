"""The end of Spark in the driver, bounded.

Spark waits without a bound for the process that forks its Python workers: where that one is frozen (a hung
mount, a hung import, SIGSTOP), neither a task that it was to begin nor `SparkContext.stop` ever comes to an
end. What has to be kept is committed by then, so it is killed.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable

from py4j.java_gateway import JVMView
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

log = logging.getLogger("lockstep.run")

STOP_S = 15.0
END_MAX_S = 180.0
"""More than all bounds of an orderly end together: workers that leave or are killed, the table, Spark."""
FORKER = "spark.python.daemon.module"
"""Names the module that forks workers; what it is without a setting follows."""
FORKER_PLAIN = "pyspark.daemon"


def stop_spark(spark: SparkSession) -> bool:
    """Stop it; whether it has stopped."""
    stopping = threading.Thread(target=spark.stop, name="stop-spark", daemon=True)
    stopping.start()
    stopping.join(STOP_S)
    if stopping.is_alive():
        killed = kill_forkers(spark)
        log.warning(
            "Spark has not stopped within %.0f s: the process that starts Python workers %s",
            STOP_S,
            f"does not answer, and is killed ({', '.join(map(str, killed))})" if killed else "is not found",
        )
        stopping.join(STOP_S)
    return not stopping.is_alive()


def kill_forkers(spark: SparkSession) -> list[int]:
    """Kill what this JVM forks workers from; their process ids. Executors elsewhere have their own."""
    module = spark.sparkContext._conf.get(FORKER, FORKER_PLAIN)
    killed: list[int] = []
    try:
        for child in _jvm(spark).java.lang.ProcessHandle.current().children().toArray():
            if str(module) in str(child.info().commandLine().orElse("")):
                child.destroyForcibly()
                killed.append(int(child.pid()))
    except Py4JError as error:
        log.warning("the processes of the JVM could not be looked through: %s", error)
    return killed


def _jvm(spark: SparkSession) -> JVMView:
    gateway = spark.sparkContext._gateway
    assert gateway is not None and gateway.jvm is not None
    return gateway.jvm


def end_jvm(spark: SparkSession, code: int) -> None:
    """At once, whatever it still waits for; spark-submit ends with `code`."""
    try:
        _jvm(spark).java.lang.Runtime.getRuntime().halt(code)
    except Py4JError as error:
        log.debug("the JVM is gone: %s", error)  # its answer cannot come any more


def jvm_pid(spark: SparkSession) -> int:
    """Of the driver's JVM. To be asked while it answers."""
    return int(_jvm(spark).java.lang.ProcessHandle.current().pid())


class LastResort:
    """The end of this process, and of its JVM, where an orderly one takes too long.

    A JVM that stands still (SIGSTOP, swap) answers no call, and no call has a bound of its own. What has to
    be kept is committed or will be rolled back: this is a SIGKILL, after which the next run goes on.
    """

    def __init__(self, jvm: int, leave: Callable[[int], None], *, after_s: float = END_MAX_S) -> None:
        self._jvm, self._leave, self._after_s = jvm, leave, after_s

    def arm(self, code: int) -> None:
        """From now on it counts. `code`: how this process ends then; `leave` is told before."""
        timer = threading.Timer(self._after_s, self._end, [code])
        timer.daemon = True
        timer.start()

    def _end(self, code: int) -> None:
        """Without a word: what is written goes through that JVM."""
        self._leave(code)
        if os.getppid() == self._jvm:  # nobody is killed whose place another process has taken
            os.kill(self._jvm, signal.SIGKILL)
        os._exit(code)
