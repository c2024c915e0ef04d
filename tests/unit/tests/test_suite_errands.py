"""Commands that run while the tests run: how they fail."""

from __future__ import annotations

from contextlib import closing

from tests.harness import await_that
from tests.suite.errands import Errand


def test_a_command_that_does_not_end_is_killed_and_has_failed() -> None:
    with closing(Errand("bash -c 'echo so far; exec sleep 600'")) as errand:
        await_that("output", errand._said.tell)
        errand.wait(0.01)
        assert errand.code and not errand.done
        assert errand.failure().partition(" did not end within 0 s:")[2] == "\nso far"
