"""Commits after a given one, from the timeline: none left out, and no more than asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import lockstep.hooks.history
from lockstep.hooks.commits import Mark
from lockstep.hooks.history import GAP_LOOKS_MAX, Gaps, History, Unreadable
from table.instants import Instant
from table.memory.reader import MemoryTableReader
from table.watermark import Watermark
from tests.unit.lockstep.hooks.memory_table import PIPELINE, Committed

START, END = Mark(0, 0, ""), Mark(1_000, 0, "")
MANY = {"count_max": 10_000, "bytes_max": 1 << 30}


@pytest.fixture
def table() -> Committed:
    return Committed()


@pytest.fixture
def history(table: Committed) -> History:
    return History(table.reader, PIPELINE)


def test_commits_are_given_oldest_first_and_foreign_ones_are_not(table: Committed, history: History) -> None:
    marks = []
    for _ in range(5):
        marks.append(Mark.of(table.commit()))
        table.timeline.foreign_commit()
    assert [one.mark for one in history.after(START, END, **MANY)] == marks
    assert [one.mark for one in history.after(marks[2], END, **MANY)] == marks[3:]
    assert history.after(marks[-1], END, **MANY) == []
    (newest,) = history.newest(START)
    assert newest.mark == marks[-1] and newest.records == 1 and newest.transaction == "t4"
    assert history.newest(marks[-1]) == []


def test_the_oldest_come_first_where_there_are_more_than_asked_for(
    table: Committed, history: History
) -> None:
    marks = [Mark.of(table.commit()) for _ in range(20)]
    found, at = [], START
    while part := history.after(at, END, count_max=3, bytes_max=1 << 30):
        assert len(part) <= 3
        found += [one.mark for one in part]
        at = found[-1]
    assert found == marks
    one_bytes = history.newest(START)[0].held_bytes
    assert len(history.after(START, END, count_max=10_000, bytes_max=5 * one_bytes)) == 5
    assert len(History(table.reader, PIPELINE).after(START, END, count_max=99, bytes_max=5 * one_bytes)) == 5
    assert len(history.after(START, END, count_max=10_000, bytes_max=1)) == 1


@pytest.mark.parametrize("step", [1, 7, 30])
def test_readers_that_stand_at_different_places_each_get_all(
    table: Committed, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read for one is kept for the others, as far as there is room: nobody gets a gap."""
    monkeypatch.setattr(lockstep.hooks.history, "TAIL_MAX", 20)
    history = History(table.reader, PIPELINE)
    at = {"quick": START, "slow": START}
    found: dict[str, list[Mark]] = {"quick": [], "slow": []}
    marks: list[Mark] = []

    def read(who: str, count_max: int) -> None:
        for one in history.after(at[who], END, count_max=count_max, bytes_max=1 << 30):
            found[who].append(one.mark)
            at[who] = one.mark

    for _ in range(4):
        marks += [Mark.of(table.commit()) for _ in range(step)]
        read("quick", 10_000)
        read("slow", 3)
    while len(found["slow"]) < len(marks):
        read("slow", max(3, step // 3))
        read("quick", 50)
    assert found == {"quick": marks, "slow": marks}


def test_a_timeline_that_cannot_be_read_says_so_and_is_opened_anew(
    table: Committed, history: History
) -> None:
    mark = Mark.of(table.commit())
    table.timeline.available = False
    for _ in range(2):
        with pytest.raises(Unreadable):
            history.after(START, END, **MANY)
    table.timeline.available = True
    assert [one.mark for one in history.after(START, END, **MANY)] == [mark]
    assert table.opened == 3


def test_what_one_hook_has_read_is_not_read_again_for_another(table: Committed, history: History) -> None:
    first, second = Mark.of(table.commit()), Mark.of(table.commit())
    assert [one.mark for one in history.after(START, second, **MANY)] == [first, second]
    table.timeline.available = False
    assert [one.mark for one in history.after(START, second, **MANY)] == [first, second]
    assert [one.mark for one in history.after(first, second, **MANY)] == [second]
    table.timeline.available = True
    third = Mark.of(table.commit())
    assert [one.mark for one in history.after(first, third, **MANY)] == [second, third]


class Archiving(MemoryTableReader):
    """Instants whose states are of these transactions are neither here nor there."""

    gone: frozenset[str] = frozenset()

    def completed(self) -> Iterator[Instant]:
        for one in super().completed():
            if one.state is None or one.state.transaction not in self.gone:
                yield one


@pytest.mark.parametrize("gone", [{"t4"}, {"t2", "t3"}, {"t1"}])
def test_commits_that_are_not_there_while_instants_are_archived_are_not_left_out(
    table: Committed, gone: set[str]
) -> None:
    marks = [Mark.of(table.commit()) for _ in range(6)]
    reader = Archiving(table.timeline, "memory:/events")
    history = History(lambda: reader, PIPELINE)
    reader.gone = frozenset(gone)
    for _ in range(3):
        with pytest.raises(Unreadable, match="not on the timeline now"):
            history.after(marks[0], marks[-1], **MANY)
    reader.gone = frozenset()
    assert [one.mark for one in history.after(marks[0], marks[-1], **MANY)] == marks[1:]


def test_commits_that_do_not_come_back_are_not_waited_for_without_an_end(
    table: Committed, caplog: pytest.LogCaptureFixture
) -> None:
    marks = [Mark.of(table.commit()) for _ in range(6)]
    reader = Archiving(table.timeline, "memory:/events")
    reader.gone = frozenset({"t3"})
    history = History(lambda: reader, PIPELINE)
    for _ in range(GAP_LOOKS_MAX):
        with pytest.raises(Unreadable):
            history.after(marks[0], marks[-1], **MANY)
    for _ in range(2):
        found = history.after(marks[0], marks[-1], **MANY)
        assert [one.mark for one in found] == [marks[1], marks[2], *marks[4:]]
    assert caplog.text.count("are not told") == 1


def test_stretches_of_commits_that_the_timeline_has_lost_are_reported_by_the_commit_after_them(
    table: Committed,
) -> None:
    marks = [
        Mark.of(table.commit(watermark=Watermark(of=of, at_ms=at, before_ms=at - 1)))
        for at, of in enumerate(["at", "at", "at", "at", "at", "at", "other", "other"])
    ]
    reader = Archiving(table.timeline, "memory:/events")
    reader.gone = frozenset({"t2", "t3", "t6"})
    history = History(lambda: reader, PIPELINE)
    for _ in range(GAP_LOOKS_MAX):
        with pytest.raises(Unreadable):
            history.after(marks[0], marks[-1], **MANY)
    found = history.after(marks[0], marks[-1], **MANY)
    told = {one.mark: (one.watermark_before_ms, one.watermark_ms) for one in found}
    assert told == {marks[1]: (0, 1), marks[4]: (1, 4), marks[5]: (4, 5), marks[7]: (6, 7)}


def test_each_gap_is_waited_for_by_itself(table: Committed, caplog: pytest.LogCaptureFixture) -> None:
    """Two of them began each other's count anew: nothing was told any more, without an end."""
    marks = [Mark.of(table.commit()) for _ in range(12)]
    reader = Archiving(table.timeline, "memory:/events")
    reader.gone = frozenset({"t3", "t8"})
    history = History(lambda: reader, PIPELINE)
    for at in (marks[5], marks[0]):
        for _ in range(GAP_LOOKS_MAX):
            with pytest.raises(Unreadable, match="not on the timeline now"):
                history.after(at, marks[-1], **MANY)
        found = history.after(at, marks[-1], **MANY)
        assert [one.mark for one in found] == [m for m in marks if m > at and m not in (marks[3], marks[8])]
    assert caplog.text.count("are not told") == 2


def test_two_gaps_take_no_longer_than_one(table: Committed) -> None:
    marks = [Mark.of(table.commit()) for _ in range(12)]
    reader = Archiving(table.timeline, "memory:/events")
    reader.gone = frozenset({"t3", "t8"})
    history = History(lambda: reader, PIPELINE)
    for _ in range(GAP_LOOKS_MAX):
        with pytest.raises(Unreadable):
            history.after(marks[0], marks[-1], **MANY)
    assert len(history.after(marks[0], marks[-1], **MANY)) == 9


def test_of_gaps_that_have_passed_only_so_many_are_remembered(
    table: Committed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockstep.hooks.history, "GAPS_MAX", 3)
    gaps = Gaps()
    for number in range(100):
        assert gaps.met(f"{number}", f"{number + 1}")
    assert len(gaps) == 3


class Held(MemoryTableReader):
    """Stands still behind the newest commit, until it is let go."""

    def __init__(self, table: Committed, met: threading.Event, go: threading.Event) -> None:
        super().__init__(table.timeline, "memory:/events")
        self._met, self._go = met, go

    def completed(self) -> Iterator[Instant]:
        for number, one in enumerate(super().completed()):
            if number == 1:
                self._met.set()
                assert self._go.wait(30)
            yield one


def test_no_hook_waits_while_another_reads_what_it_has_missed(table: Committed) -> None:
    marks = [Mark.of(table.commit()) for _ in range(6)]
    met, go = threading.Event(), threading.Event()
    readers = iter([Held(table, met, go)])
    history = History(lambda: next(readers, table.reader()), PIPELINE)
    found: list[Mark] = []

    def read_all() -> None:
        found.extend(one.mark for one in history.after(START, marks[-1], **MANY))

    slow = threading.Thread(target=read_all, daemon=True)
    slow.start()
    try:
        assert met.wait(30)
        assert [one.mark for one in history.newest(marks[-2])] == [marks[-1]]
        assert [one.mark for one in history.after(marks[3], marks[-1], **MANY)] == marks[4:]
        newer = Mark.of(table.commit())
        assert [one.mark for one in history.after(marks[-1], newer, **MANY)] == [newer]
        assert slow.is_alive()
    finally:
        go.set()
        slow.join(30)
    assert found[:6] == marks


def test_who_is_far_behind_does_not_hide_from_others_what_is_new(
    table: Committed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was kept of its old commits was read on from there, a few at a time, for everybody."""
    monkeypatch.setattr(lockstep.hooks.history, "TAIL_MAX", 2)
    marks = [Mark.of(table.commit()) for _ in range(40)]
    history = History(table.reader, PIPELINE)
    assert len(history.after(START, marks[-1], count_max=4, bytes_max=1 << 30)) == 4
    assert [one.mark for one in history.after(marks[-2], marks[-1], **MANY)] == [marks[-1]]
    newer = Mark.of(table.commit())
    assert len(history.after(marks[3], newer, count_max=4, bytes_max=1 << 30)) == 4
    assert [one.mark for one in history.after(marks[-1], newer, **MANY)] == [newer]
