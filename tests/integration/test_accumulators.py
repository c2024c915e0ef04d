"""What Spark's JVM says to PySpark's server for accumulators, and is cut off while it says it."""

from __future__ import annotations

import logging
import socket
import time
from contextlib import closing
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lockstep.driver.accumulators import no_trace_of_accumulators

pytestmark = pytest.mark.integration

DEADLINE_S = 120


def test_what_is_cut_off_leaves_no_stack_trace_and_the_next_one_is_heard(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    context: Any = spark.sparkContext
    no_trace_of_accumulators(context)
    server = context._accumulatorServer
    heard = context.accumulator(0)
    caplog.set_level(logging.DEBUG, logger="lockstep.run")
    try:
        cut = int(jvm_hangs_up(context)) + 1
        with closing(socket.create_connection(server.server_address)) as line:
            line.sendall(b"half a tok")
        deadline = time.monotonic() + DEADLINE_S
        while caplog.text.count("broke off") < cut:
            assert time.monotonic() < deadline, "the server said nothing"
            time.sleep(0.05)
        spark.sparkContext.parallelize([1, 2], 2).foreach(lambda one: heard.add(one))
        assert heard.value == 3
    finally:
        del server.handle_error
    said = capfd.readouterr()
    assert "Traceback" not in said.err + said.out


def jvm_hangs_up(context: Any) -> bool:
    """Whether it had a line to the server, as after a job of Python's: it keeps it, and the server hears no
    other meanwhile.
    """
    kept = context._javaAccumulator.getClass().getDeclaredField("socket")
    kept.setAccessible(True)
    line = kept.get(context._javaAccumulator)
    if line is None or line.isClosed():
        return False
    line.close()
    return True
