"""Looking at a table again and again."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from control_topic.messages import SourcePartition
from lockstep.config import Config, from_mapping
from lockstep.waiting.table_look import TableLook
from lockstep.watch import looks
from table.errors import Unavailable
from table.followed import FRESH_MAX
from table.instants import Instant
from table.memory.reader import MemoryTableReader
from table.memory.table import MemoryTable
from table.memory.timeline import MemoryTimeline
from table.port import Commit
from table.state import TableState

P0 = SourcePartition("events", 0)


class Counting(MemoryTableReader):
    """Counts the instants that are read, and the questions for the whole."""

    read = 0
    whole = 0

    def completed(self) -> Iterator[Instant]:
        for one in super().completed():
            Counting.read += 1
            yield one

    def newest_instant(self, pipeline: str) -> Instant | None:
        Counting.whole += 1
        return super().newest_instant(pipeline)


class Site:
    def __init__(self) -> None:
        Counting.read = Counting.whole = 0
        self.timeline = MemoryTimeline()
        self.broken = False
        self.look = TableLook(self.open, pipeline="p")

    def open(self) -> MemoryTableReader:
        if self.broken:
            raise Unavailable("the store is away")
        return Counting(self.timeline, "memory")

    def commit(self, offset: int, *, pipeline: str = "p") -> str:
        table = MemoryTable(self.timeline, pipeline)
        table.open()
        newest = table.newest()
        transaction = f"{pipeline}-{offset}"
        instant = table.begin(run="r", transaction=transaction)
        state = TableState(pipeline=pipeline, run="r", epoch=1, transaction=transaction, offsets={P0: offset})
        expected = newest.offsets if newest is not None else {}
        table.commit(
            Commit(instant=instant, expected=expected, state=state, files=()), fence=lambda _newest: ""
        )
        return instant

    def offset(self) -> int | None:
        return self.look.newest.offsets[P0] if self.look.newest is not None else None


def test_a_table_that_is_not_there_yet_is_no_error_and_is_seen_once_it_is() -> None:
    site = Site()
    assert not site.look.look() and "There is no table" in site.look.problem
    site.commit(3)
    assert site.look.look() and site.look.problem == "" and site.offset() == 3


def test_others_commits_say_nothing_of_ours() -> None:
    site = Site()
    site.commit(99, pipeline="other")
    site.look.look()
    assert site.offset() is None and "no offsets of the pipeline" in site.look.problem


def test_what_is_new_is_read_and_nothing_else() -> None:
    site = Site()
    for offset in range(15):
        site.commit(offset)
    site.look.look()
    assert (Counting.whole, site.offset()) == (1, 14)
    before = Counting.read
    assert not site.look.look()
    assert (Counting.whole, Counting.read - before) == (1, 1)  # the newest instant, which is known
    site.commit(15)
    site.commit(98, pipeline="other")
    assert site.look.look() and site.offset() == 15
    assert Counting.whole == 1 and Counting.read - before == 4


def test_after_many_commits_the_table_is_asked_as_a_whole() -> None:
    site = Site()
    site.commit(0)
    site.look.look()
    for offset in range(1, FRESH_MAX + 5):
        site.commit(offset)
    site.look.look()
    assert Counting.whole == 2 and site.offset() == FRESH_MAX + 4


def test_an_instant_that_was_taken_away_is_found_out_by_the_proof() -> None:
    """A restore, while somebody waits."""
    site = Site()
    site.commit(1)
    site.look.look()
    gone = site.commit(2)
    site.look.look()
    assert site.offset() == 2
    del site.timeline.instants[gone]
    site.look.prove()
    assert site.offset() == 1


def test_a_store_that_is_away_keeps_what_was_seen_and_says_so() -> None:
    site = Site()
    site.commit(1)
    site.look.look()
    site.look._table._forget()
    site.broken = True
    site.look.look()
    assert site.offset() == 1 and site.look.problem == "the store is away"
    site.broken = False
    site.commit(2)
    assert site.look.look() and site.offset() == 2 and not site.look.problem


def test_whoever_watches_a_table_reads_what_is_new_and_all_of_it_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site, now_s = Site(), [1_000.0]
    kind = SimpleNamespace(reader=lambda _path, _storage: site.open())
    monkeypatch.setattr(looks, "table_kind", lambda _format: kind)
    watched = looks.TableLooks(config_of("p"), clock_s=lambda: now_s[0])
    assert not watched.look().exists
    site.commit(1)
    gone = site.commit(2)
    first = watched.look()
    assert first.state is not None and first.state.offsets[P0] == 2
    before, whole = Counting.read, Counting.whole
    assert watched.look().instant == first.instant
    assert (Counting.read - before, Counting.whole) == (1, whole)
    del site.timeline.instants[gone]
    site.commit(2, pipeline="other")
    now_s[0] += looks.PROVE_EVERY_S
    proved = watched.look()
    assert proved.state is not None and proved.state.offsets[P0] == 1
    site.broken = True
    watched._table._forget()
    with pytest.raises(Unavailable):
        watched.look()
    site.broken = False
    again = watched.look()
    assert again.state is not None and again.state.offsets[P0] == 1


def config_of(pipeline: str) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": pipeline},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": "file:///nowhere/table", "name": "events"},
        }
    )
