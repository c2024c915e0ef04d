"""The end of Spark in the driver, bounded.

Spark waits without a bound for the process that forks its Python workers: where that one is frozen (a hung
mount, a hung import, SIGSTOP), neither a task that it was to begin nor `SparkContext.stop` ever comes to an
end. What has to be kept is committed by then, so it is killed.
"""

from __future__ import annotations

import logging
import threading

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

log = logging.getLogger("lockstep.run")

STOP_S = 15.0
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
    gateway = spark.sparkContext._gateway
    assert gateway is not None and gateway.jvm is not None
    module = spark.sparkContext._conf.get(FORKER, FORKER_PLAIN)
    killed: list[int] = []
    try:
        children = gateway.jvm.java.lang.ProcessHandle.current().children().iterator()
        while children.hasNext():
            child = children.next()
            if str(module) in str(child.info().commandLine().orElse("")):
                child.destroyForcibly()
                killed.append(int(child.pid()))
    except Py4JError as error:
        log.warning("the processes of the JVM could not be looked through: %s", error)
    return killed


def end_jvm(spark: SparkSession, code: int) -> None:
    """At once, whatever it still waits for; spark-submit ends with `code`."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None and gateway.jvm is not None
    try:
        gateway.jvm.java.lang.Runtime.getRuntime().halt(code)
    except Py4JError as error:
        log.debug("the JVM is gone: %s", error)  # its answer cannot come any more
