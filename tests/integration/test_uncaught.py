"""A thread of the driver's JVM that something ends which nobody catches, as Hudi's timers are ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from table.hudi.driver.compiled import CLASS_VERSION
from table.hudi.driver.uncaught import say_uncaught

pytestmark = pytest.mark.integration

ENDS = """
public final class Ends extends Thread {
  public void run() {
    throw new IllegalStateException("it failed", new RuntimeException("the quota is used up:\\n at x"));
  }
}
"""


@contextmanager
def logged(jvm: Any) -> Iterator[Any]:
    """What the JVM logs meanwhile."""
    core, written = jvm.org.apache.logging.log4j.core, jvm.java.io.StringWriter()
    root = jvm.org.apache.logging.log4j.LogManager.getContext(False).getRootLogger()
    layout = core.layout.PatternLayout.newBuilder().withPattern("%p %c{1}: %m%n%ex").build()
    appender = core.appender.WriterAppender.createAppender(layout, None, written, "test", False, True)
    appender.start()
    root.addAppender(appender)
    try:
        yield written
    finally:
        root.removeAppender(appender)


@contextmanager
def printed(jvm: Any) -> Iterator[Any]:
    """What the JVM prints to stderr meanwhile, past its log."""
    before, written = jvm.java.lang.System.err, jvm.java.io.ByteArrayOutputStream()
    jvm.java.lang.System.setErr(jvm.java.io.PrintStream(written))
    try:
        yield written
    finally:
        jvm.java.lang.System.setErr(before)


def test_it_is_said_in_one_line_and_without_a_stack_trace(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    say_uncaught(jvm, spark.sparkContext._gateway)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setTargetVersion(CLASS_VERSION)
    compiler.cook(ENDS)
    thread = compiler.getClassLoader().loadClass("Ends").newInstance()
    with logged(jvm) as log, printed(jvm) as err:
        thread.start()
        thread.join()
    assert str(err.toString()) == ""
    (line,) = str(log.toString()).splitlines()
    said = "of the driver's JVM ended: RuntimeException: the quota is used up:"
    assert re.fullmatch(rf"ERROR Uncaught: thread Thread-\d+ {said}", line)
