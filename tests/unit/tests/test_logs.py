"""A test's logs are its own."""

from __future__ import annotations

import logging

import pytest

from lockstep.commands.options import configure_logging


def test_a_command_that_runs_here_quietens_what_is_logged() -> None:
    configure_logging(0)
    assert logging.getLogger("table").level == logging.WARNING


def test_and_the_next_test_hears_all_that_it_asks_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    logging.getLogger("table.hudi").info("heard")
    assert caplog.messages == ["heard"]
    assert logging.getLogger("table").level == logging.NOTSET
