"""What is logged while a call on the table is answered, by whatever does its work, is about that call."""

from __future__ import annotations

import logging
from threading import Lock

import pytest

from control_topic.log_fields import fields_of
from table.service.answering import Answering, answers
from table.service.calls import Answer, Result
from table.service.ledger import Ledger, LedgerLimits

log = logging.getLogger("table.hudi.table")


class Calls(Answering):
    @answers(effect=True)
    def commit(self, epoch: int, transaction: str, instant: str, files: int) -> Answer:
        """A call."""
        log.warning("%d files", files)
        return Answer(result=Result.OK)

    @answers(effect=False)
    def survey(self) -> Answer:
        """Another, about nothing."""
        log.warning("surveyed")
        return Answer(result=Result.OK)


class Seen(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(fields_of(record))


@pytest.fixture
def seen() -> Seen:
    handler = Seen()
    logging.getLogger().addHandler(handler)
    return handler


def test_lines_know_epoch_transaction_and_instant_of_the_call(seen: Seen) -> None:
    limits = LedgerLimits(max_consecutive_failures=3, backoff_max_ms=1_000)
    calls = Calls(
        ledger=Ledger(run="r", now_ms=0, limits=limits, until=None), guard=Lock(), clock_ms=lambda: 0
    )
    calls.commit(7, "t-1", instant="20260101", files=3)
    calls.survey()
    assert seen.lines == [{"epoch": 7, "transaction": "t-1", "instant": "20260101"}, {}]
