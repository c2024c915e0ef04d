"""A test's logs are its own."""

from __future__ import annotations

import logging

import pytest

from lockstep.commands.options import configure_logging
from tests.own_logs import logs_of_its_own


def test_a_command_that_ran_here_quietens_nothing_that_comes_later(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with logs_of_its_own():
        configure_logging(0)
        assert logging.getLogger("table").level == logging.WARNING
    logging.getLogger("table.hudi").info("heard")
    assert caplog.messages == ["heard"]
    assert logging.getLogger("table").level == logging.NOTSET


def test_every_test_s_logs_are_its_own(request: pytest.FixtureRequest) -> None:
    assert "logs" in request.fixturenames
