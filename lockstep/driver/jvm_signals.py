"""A clean stop when the JVM is signalled.

Under spark-submit the JVM is the process that a terminal or an orchestrator signals. Its own answer is to
shut down, and a JVM that is shutting down can no longer commit: Hudi's log writer registers a shutdown hook,
which is refused by then. So the JVM's handlers are replaced, and the Python side decides when to end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

log = logging.getLogger("lockstep.run")

SIGNALS = ("INT", "TERM", "HUP")


class _Handler:
    """Called by the JVM, on a thread of its own."""

    def __init__(self, stop: Callable[[str], None]) -> None:
        self._stop = stop

    def handle(self, signal: JavaObject) -> None:
        self._stop(f"SIG{signal.getName()}")

    class Java:
        implements = ("sun.misc.SignalHandler",)


def catch_jvm_signals(spark: SparkSession, stop: Callable[[str], None]) -> None:
    """Have `stop(name)` called for every SIGINT, SIGTERM and SIGHUP that the JVM receives."""
    from table.hudi.driver.callbacks import start_callbacks

    gateway = spark.sparkContext._gateway
    assert gateway is not None and gateway.jvm is not None
    start_callbacks(gateway)
    handler = _Handler(stop)
    for name in SIGNALS:
        gateway.jvm.sun.misc.Signal.handle(gateway.jvm.sun.misc.Signal(name), handler)
