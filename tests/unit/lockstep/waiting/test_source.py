"""What the broker says of the topics decides, too, whether the table has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_topic.messages import Offsets
from lockstep.config import load
from lockstep.waiting.goals import Goal, ToLag, ToOffsets
from lockstep.waiting.table_look import TableLook
from lockstep.waiting.wait import Outcome, Wait
from table.service.source_facts import SourceFacts, SourceUnavailable
from tests.unit.lockstep.hooks.memory_table import P0, PIPELINE, Committed
from tests.unit.lockstep.waiting.test_wait import PIPELINE as CONFIG

OURS = {"events": "id-1"}
LATEST = ToOffsets(wanted=None)
GOALS = [LATEST, ToLag(records_max=0), ToOffsets(wanted={P0: 2})]


class Source:
    """A broker's answers; `away`: from which question on it gives none."""

    def __init__(self, end: int, *, cluster: str = "c1", topic: str = "id-1", away: int = 1_000) -> None:
        self._facts = SourceFacts(cluster=cluster, topics={"events": topic}, partitions=(P0,))
        self.end_offset, self.away, self.asked = end, away, 0

    def facts(self) -> SourceFacts:
        self.asked += 1
        if self.asked >= self.away:
            raise SourceUnavailable("The Kafka broker does not answer.")
        return self._facts

    def end(self, _partitions: object) -> Offsets:
        return {P0: self.end_offset}


class NoHalts:
    def __init__(self, table: Committed, commits: int) -> None:
        self._table, self._commits = table, commits

    def look(self, **_more: object) -> None:
        """Meanwhile the table gets on."""
        if self._commits:
            self._commits -= 1
            self._table.commit(cluster="c1", topics=OURS)

    def close(self) -> None: ...


@pytest.fixture
def table() -> Committed:
    """At offset 3."""
    made = Committed()
    for _ in range(3):
        made.commit(cluster="c1", topics=OURS)
    return made


def waited(
    folder: Path, table: Committed, source: Source, goal: Goal, *, commits: int = 0, timeout_ms: int = 1_500
) -> Outcome:
    path = folder / "pipeline.toml"
    path.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    wait = Wait(load(path), {"bootstrap.servers": "127.0.0.1:1"}, goal, timeout_ms=timeout_ms)
    wait._table = TableLook(table.reader, pipeline=PIPELINE)
    wait._source = source  # type: ignore[assignment]
    wait._halts = NoHalts(table, commits)  # type: ignore[assignment]
    return wait.run()


@pytest.mark.parametrize("goal", GOALS)
def test_what_the_table_has_of_these_topics_is_reached(tmp_path: Path, table: Committed, goal: Goal) -> None:
    assert waited(tmp_path, table, Source(3), goal).verdict.reached


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Source(2, topic="id-2"), "Topic events was recreated"),
        (Source(2, cluster="c2"), "are of Kafka cluster c1"),
        (Source(2, topic=""), "is beyond the end of the log, 2"),
    ],
)
def test_offsets_of_another_topic_or_cluster_are_not_what_is_waited_for(
    tmp_path: Path, table: Committed, goal: Goal, source: Source, said: str
) -> None:
    outcome = waited(tmp_path, table, source, goal)
    assert not outcome.verdict.reached and said in outcome.to_text()
    assert any(said in problem for problem in outcome.to_json()["problems"])


@pytest.mark.parametrize("goal", GOALS)
def test_without_the_brokers_word_nothing_is_reached(tmp_path: Path, table: Committed, goal: Goal) -> None:
    outcome = waited(tmp_path, table, Source(3, away=1), goal)
    assert not outcome.verdict.reached and "does not answer" in outcome.to_text()


def test_ends_from_before_the_broker_went_away_are_not_what_lag_is_counted_by(
    tmp_path: Path, table: Committed
) -> None:
    source = Source(4, away=2)
    outcome = waited(tmp_path, table, source, ToLag(records_max=0), commits=1, timeout_ms=2_500)
    assert source.asked > 1 and not outcome.verdict.reached and "does not answer" in outcome.to_text()


def test_what_was_committed_since_the_ends_were_told_may_lie_beyond_them(
    tmp_path: Path, table: Committed
) -> None:
    source = Source(4, away=2)  # told once is enough
    outcome = waited(tmp_path, table, source, LATEST, commits=1, timeout_ms=60_000)
    assert outcome.verdict.reached and source.asked == 1


def test_offsets_that_the_table_does_not_have_yet_ask_the_broker_for_nothing(
    tmp_path: Path, table: Committed
) -> None:
    source = Source(9)
    assert not waited(tmp_path, table, source, ToOffsets(wanted={P0: 9})).verdict.reached
    assert source.asked == 0
