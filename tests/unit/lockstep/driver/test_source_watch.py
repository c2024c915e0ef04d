"""What the driver concludes from looking at the source topics while a run goes on."""

from __future__ import annotations

from typing import cast

import pytest

from control_topic.messages import SourcePartition
from lockstep.brokers.source_topics import SourceTopics
from lockstep.driver.source_watch import SourceWatch
from table.service.source_facts import MissingTopic, SourceFacts, SourceUnavailable
from table.state import TableState

P0 = SourcePartition("events", 0)
STATE = TableState(
    pipeline="p",
    run="r",
    epoch=1,
    transaction="t",
    instant="20260101000000000",
    offsets={P0: 3},
    cluster="kafka-1",
    topics={"events": "id-1"},
)
WELL = SourceFacts(cluster="kafka-1", topics={"events": "id-1"}, partitions=(P0,))
MADE_ANEW = SourceFacts(cluster="kafka-1", topics={"events": "id-2"}, partitions=(P0,))


class Answers:
    """Facts, or errors, in this order."""

    def __init__(self, *answers: SourceFacts | Exception) -> None:
        self._answers = list(answers)

    def facts(self) -> SourceFacts:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def looks(*answers: SourceFacts | Exception, known: TableState | None = STATE) -> list[str]:
    """What each look found."""
    source = cast(SourceTopics, Answers(*answers))
    watch = SourceWatch(source, known=lambda: known, halt=lambda reason: pytest.fail(reason))
    return [watch.look() for _ in answers]


def test_a_topic_that_is_missing_twice_in_a_row_ends_the_run() -> None:
    gone = MissingTopic("Source topic events does not exist.")
    *before, last = looks(gone, WELL, gone, gone)
    assert before == ["", "", ""]
    assert last.startswith("Source topic events does not exist. It was there when this run began")


def test_a_topic_that_was_made_anew_ends_the_run_at_once() -> None:
    first, second = looks(WELL, MADE_ANEW)
    assert first == ""
    assert "Topic events was recreated" in second


def test_a_broker_that_does_not_answer_ends_nothing() -> None:
    assert looks(*[SourceUnavailable("no answer")] * 5) == [""] * 5


def test_before_the_first_commit_there_is_nothing_to_compare_with() -> None:
    assert looks(MADE_ANEW, known=None) == [""]
