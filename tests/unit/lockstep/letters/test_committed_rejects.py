"""Only records that a committed transaction rejected are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from control_topic.messages import Offsets, Range, Reject, SourcePartition
from lockstep.errors import Failed
from lockstep.letters import committed_rejects
from lockstep.letters.committed_rejects import CLOCK_DIFFERENCE_MS, CommittedRejects, Standing
from lockstep.letters.letter import Letter, Place
from table.state import TableState
from tests.unit.lockstep.letters.made import DEAD, letter

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
HOUR_MS = 3_600_000


@dataclass
class Commits:
    """Commits of a pipeline. The instant's number is its time in hours."""

    states: list[TableState] = field(default_factory=list)

    def _add(self, kind: str, offsets: Offsets, **told: object) -> None:
        number = len(self.states)
        before = self.states[-1] if self.states else None
        state = TableState(
            pipeline="p",
            run="r",
            epoch=1,
            transaction=f"t{number}",
            kind=kind,
            offsets=offsets,
            instant=str(number),
            topics=before.topics if before is not None else {"events": "id-1"},
        )
        self.states.append(replace(state, **told))  # type: ignore[arg-type]

    def begin(self, offsets: Offsets | None = None, **told: object) -> Commits:
        self._add("genesis", offsets or {P0: 0, P1: 0}, **told)
        return self

    def commit(
        self,
        ends: Offsets,
        rejects: Sequence[tuple[SourcePartition, int]] = (),
        *,
        listed_max: int = 1_000,
        run: str = "r",
    ) -> Commits:
        before = self.states[-1].offsets
        self._add(
            "data",
            {**before, **ends},
            ranges=tuple(
                Range(partition=one, start=before.get(one, 0), next=end, records=end - before.get(one, 0))
                for one, end in ends.items()
            ),
            rejects=tuple(
                Reject(partition=one, offset=offset, reason="why") for one, offset in rejects[:listed_max]
            ),
            reject_count=len(rejects),
            run=run,
        )
        return self

    def move(self, offsets: Offsets, **told: object) -> Commits:
        self._add("operator", {**self.states[-1].offsets, **offsets}, **told)
        return self

    def rejects(self, letters: Sequence[Letter] = ()) -> CommittedRejects:
        found = CommittedRejects(["events"])
        for state in reversed(self.states):
            found.add(state, int(state.instant) * HOUR_MS)
        if found.lists_only_some:
            for one in letters:
                found.count(one)
        return found


def at(partition: SourcePartition, offset: int, hour: float = 1.0, *, run: str = "") -> Letter:
    return letter(
        offset,
        run=run,
        partition=partition,
        timestamp_ms=offset,
        place=Place(partition=DEAD, offset=offset, time_ms=int(hour * HOUR_MS)),
    )


def test_a_letter_of_an_aborted_transaction_whose_record_is_a_row_is_not_replayed() -> None:
    found = Commits().begin().commit({P0: 24}).rejects()
    assert found.standing(at(P0, 20)) is Standing.ROW


def test_a_listed_reject_of_a_commit_is_replayed_and_its_neighbours_are_rows() -> None:
    found = Commits().begin().commit({P0: 10, P1: 10}, [(P0, 4), (P1, 7)]).commit({P0: 20}).rejects()
    assert [found.standing(at(P0, offset)) for offset in (3, 4, 5, 7, 15)] == [
        Standing.ROW,
        Standing.REJECTED,
        Standing.ROW,
        Standing.ROW,
        Standing.ROW,
    ]
    assert found.standing(at(P1, 7)) is Standing.REJECTED


def test_a_letter_whose_offset_is_not_committed_is_not_replayed_yet() -> None:
    found = Commits().begin().commit({P0: 10}).rejects()
    assert found.standing(at(P0, 10)) is Standing.OPEN
    assert found.standing(at(SourcePartition("events", 9), 3)) is Standing.OPEN


def test_a_letter_whose_offset_an_operator_skipped_is_not_replayed() -> None:
    found = Commits().begin({P0: 5}).commit({P0: 10}).move({P0: 20}).commit({P0: 30}, [(P0, 25)]).rejects()
    assert [found.standing(at(P0, offset)) for offset in (2, 12, 25)] == [
        Standing.UNCOVERED,
        Standing.UNCOVERED,
        Standing.REJECTED,
    ]


@pytest.mark.parametrize("row_first", [False, True])
def test_a_record_that_one_of_two_commits_made_a_row_is_not_replayed(row_first: bool) -> None:
    rejected: list[tuple[SourcePartition, int]] = [(P0, 4)]
    first, second = ([], rejected) if row_first else (rejected, [])
    commits = Commits().begin().commit({P0: 10}, first).move({P0: 2}).commit({P0: 8}, second)
    assert commits.rejects().standing(at(P0, 4)) is Standing.ROW


def test_a_reject_of_both_commits_that_read_it_is_replayed() -> None:
    commits = Commits().begin().commit({P0: 10}, [(P0, 4)]).move({P0: 0}).commit({P0: 10}, [(P0, 4)])
    assert commits.rejects().standing(at(P0, 4)) is Standing.REJECTED


def test_rejects_beyond_the_list_are_proved_by_as_many_letters_of_its_run_as_the_commit_counted() -> None:
    """Another run has set more of these records aside, and was aborted; the commit's run made them rows."""
    bad = [(P0, offset) for offset in range(3, 9)]
    commits = Commits().begin().commit({P0: 10, P1: 5}, bad, listed_max=2)
    aborted = [at(P0, offset, run="aborted") for offset in range(10)]
    again = [at(*bad[-1], run="r"), at(P0, 12, run="r"), at(P1, 5, run="r")]
    found = commits.rejects([*aborted, *(at(*one, run="r") for one in bad), *again])
    standings = [found.standing(one) for one in aborted]
    assert standings == [Standing.ROW] * 3 + [Standing.REJECTED] * 6 + [Standing.ROW]


def test_letters_that_name_no_run_prove_nothing_beyond_the_list() -> None:
    """Letters of an older version: one may be deleted, and another one be of an aborted transaction."""
    bad = [(P0, offset) for offset in range(3, 9)]
    found = Commits().begin().commit({P0: 10}, bad, listed_max=2).rejects([at(*one) for one in bad])
    assert [found.standing(at(*one)) for one in bad] == [Standing.REJECTED] * 2 + [Standing.UNDECIDED] * 4


def test_more_letters_than_a_commit_counted_prove_nothing_beyond_its_list() -> None:
    bad = [(P0, offset) for offset in range(3, 9)]
    commits = Commits().begin().commit({P0: 10}, bad, listed_max=2)
    aborted = at(P0, 0, run="r")
    found = commits.rejects([*(at(*one, run="r") for one in bad), aborted])
    assert [found.standing(at(*one)) for one in bad] == [Standing.REJECTED] * 2 + [Standing.UNDECIDED] * 4
    assert found.standing(aborted) is Standing.UNDECIDED


def test_letters_that_the_topic_has_lost_leave_the_others_unproved() -> None:
    bad = [(P0, offset) for offset in range(3, 9)]
    letters = [at(P0, 8, run="r"), at(P0, 1, run="r")]
    found = Commits().begin().commit({P0: 10}, bad, listed_max=2).rejects(letters)
    assert [found.standing(one) for one in letters] == [Standing.UNDECIDED] * 2


def test_letters_of_a_recreated_topic_are_compared_with_its_own_commits() -> None:
    commits = Commits().begin().commit({P0: 10}, [(P0, 3)])
    while len(commits.states) < 10:
        commits.commit({P1: len(commits.states)})
    commits.move({P0: 0}, topics={"events": "id-2"}).commit({P0: 10}, [(P0, 4)])
    found = commits.rejects()
    adopted_h, away_h = 10, 2.5 * CLOCK_DIFFERENCE_MS / HOUR_MS
    assert found.standing(at(P0, 3, adopted_h - away_h)) is Standing.REJECTED
    assert found.standing(at(P0, 4, adopted_h - away_h)) is Standing.ROW
    assert found.standing(at(P0, 4, adopted_h + away_h)) is Standing.REJECTED
    assert found.standing(at(P0, 3, adopted_h + away_h)) is Standing.ROW
    assert found.standing(at(P0, 4, adopted_h)) is Standing.ROW


def test_a_missing_commit_is_an_error_and_a_timeline_without_its_beginning_is_named() -> None:
    commits = Commits().begin().commit({P0: 10}).commit({P0: 20}).commit({P0: 30})
    assert commits.rejects().begins_with == ""
    assert Commits(commits.states[1:]).rejects().begins_with == "1"
    with pytest.raises(Failed, match="lacks commits between instants 1 and 3"):
        Commits([*commits.states[:2], commits.states[3]]).rejects()


def test_ranges_of_other_topics_take_no_memory_and_ranges_without_rejects_are_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committed_rejects, "SPANS_MAX", 2)
    other = SourcePartition("others", 0)
    commits = Commits().begin({P0: 0, other: 0})
    for number in range(1, 20):
        commits.commit({P0: number, other: number}, [(other, number - 1)] if number % 2 else [])
    with pytest.raises(Failed, match="do not fit into memory"):
        commits.rejects()
    quiet = Commits().begin({P0: 0})
    for number in range(1, 20):
        quiet.commit({P0: number})
    assert quiet.rejects().standing(at(P0, 3)) is Standing.ROW


def test_more_letters_than_memory_is_meant_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_rejects, "COUNTED_MAX", 2)
    bad = [(P0, offset) for offset in range(5)]
    with pytest.raises(Failed, match="do not fit into memory"):
        Commits().begin().commit({P0: 10}, bad, listed_max=1).rejects([at(*one, run="r") for one in bad])


Transaction = tuple[bool, int, frozenset[int]]
"""Whether it commits, how many records it reads, and which of them it rejects."""
HISTORIES = st.lists(
    st.one_of(
        st.tuples(st.booleans(), st.integers(1, 6), st.frozensets(st.integers(0, 5))),
        st.integers(0, 20),
    ),
    max_size=12,
)


@example(
    history=[(True, 2, frozenset([0])), 0, (False, 2, frozenset([1]))], listed_max=0, lost=True, named=False
)
@settings(max_examples=500)
@given(
    history=HISTORIES,
    listed_max=st.sampled_from([0, 1, 2, 100]),
    lost=st.booleans(),
    named=st.booleans(),
)
def test_no_history_lets_a_record_be_replayed_that_is_a_row(
    history: list[Transaction | int], listed_max: int, lost: bool, named: bool
) -> None:
    """Transactions commit or abort, each in a run of its own, and an operator moves the offset."""
    commits = Commits().begin({P0: 0})
    letters: list[Letter] = []
    rows: set[int] = set()
    rejected: set[int] = set()
    offset = 0
    for number, step in enumerate(history):
        if isinstance(step, int):
            offset = step
            commits.move({P0: offset})
            continue
        is_committed, count, bad = step
        offsets = range(offset, offset + count)
        rejects = [one for place, one in enumerate(offsets) if place in bad]
        run = f"r{number}"
        letters += [at(P0, one, run=run if named else "") for one in rejects]
        if is_committed:
            offset += count
            named_rejects = [(P0, one) for one in rejects]
            commits.commit({P0: offset}, named_rejects, listed_max=listed_max, run=run)
            rows.update(set(offsets) - set(rejects))
            rejected.update(rejects)
    found = commits.rejects(letters[1:] if lost else letters)
    sent = {one.offset for one in letters if found.standing(one) is Standing.REJECTED}
    assert not sent & rows
    assert sent <= rejected
    if listed_max == 100 or (named and not lost):
        assert sent == rejected - rows
