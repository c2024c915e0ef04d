"""What became of a call, as a sentence that a person can use."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError

from table.errors import TableError, Unavailable
from table.hudi.driver.java import causes, changing, is_environment, is_gone, reading, sentence


def test_what_storage_refuses_to_python_is_not_put_down_to_a_jvm_that_did_not_answer() -> None:
    """Since the driver's half of a table writes notes and plans through its store, inside these contexts."""
    full = OSError(errno.ENOSPC, "No space left on device", "/lake/events/.hoodie/.lockstep/begun/2026")
    for context in (changing("compaction 2026 was not completed"), reading("its timeline cannot be read")):
        with pytest.raises(TableError) as raised, context:
            raise full
        assert "/lake/events/.hoodie/.lockstep/begun/2026: No space left on device" in str(raised.value)
        assert "JVM did not answer" not in str(raised.value)


def test_a_connection_to_the_jvm_that_broke_is_said_to_be_that() -> None:
    with pytest.raises(TableError, match="the JVM did not answer"), changing("compaction 2026"):
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def test_what_a_jvm_threw_before_it_died_is_told_as_far_as_it_said_it(gateway: Any) -> None:
    """Each question about an exception is asked of the JVM that threw it."""
    with pytest.raises(Py4JJavaError) as raised:
        gateway.jvm.java.lang.Integer.parseInt("none")
    thrown = raised.value
    assert sentence(thrown) == 'NumberFormatException: For input string: "none"'
    with pytest.raises((Py4JError, OSError)):
        gateway.jvm.java.lang.Runtime.getRuntime().halt(9)
    assert causes(thrown) == [] and is_environment(thrown) and not is_gone(thrown)
    with (
        pytest.raises(Unavailable, match="planned: the JVM threw, and died before it said what"),
        changing("planned"),
    ):
        raise thrown
