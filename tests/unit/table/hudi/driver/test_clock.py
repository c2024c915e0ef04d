"""The look at the clock, where the JVM does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from table.errors import Unavailable
from table.hudi.driver.clock import _look


def test_a_jvm_that_does_not_answer_is_told_as_a_timeline_that_cannot_be_read() -> None:
    def refused() -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    session: Any = SimpleNamespace(path="/lake/events", keep_zone=refused)
    with pytest.raises(Unavailable, match="table /lake/events: its timeline cannot be read"):
        _look(session, lambda: None)
