"""A clean stop when the JVM is asked to end.

Under spark-submit the JVM is the process that a terminal or an orchestrator signals, and its shutdown
hooks stop Spark at once. A hook of higher priority runs first and waits here for the last commit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

log = logging.getLogger("lockstep.run")

PRIORITY = 1_000
"""Spark's own hooks run at 50 and less."""
WAIT_S = 330
"""Longer than a drain may take (`table.ledger.Limits`)."""


class _Hook:
    def __init__(self, request_stop: Callable[[str], None], ended: threading.Event) -> None:
        self._request_stop = request_stop
        self._ended = ended

    def run(self) -> None:
        """Called by the JVM, on a thread of its own."""
        if not self._ended.is_set():
            self._request_stop("the JVM was asked to end")
            self._ended.wait(WAIT_S)

    class Java:
        implements = ("java.lang.Runnable",)


def install_shutdown_hook(
    spark: SparkSession, request_stop: Callable[[str], None], ended: threading.Event
) -> None:
    """Have the JVM wait for `ended` before it takes Spark down."""
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = spark.sparkContext._gateway
    assert gateway is not None and gateway.jvm is not None
    ensure_callback_server_started(gateway)
    jvm = gateway.jvm
    jvm.org.apache.hadoop.util.ShutdownHookManager.get().addShutdownHook(
        _Hook(request_stop, ended), PRIORITY, WAIT_S, jvm.java.util.concurrent.TimeUnit.SECONDS
    )
