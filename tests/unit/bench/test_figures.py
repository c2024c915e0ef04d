"""What the bench computes from what it measured."""

from __future__ import annotations

import pytest

from bench.commits import at, points
from bench.figures import Commit, by_rival, interpolate, percentile, ratios, spread, steady
from bench.processes import Account, Key, Seen
from bench.rivals.base import Stages
from bench.rivals.control_times import Ending, endings
from bench.rivals.plain_writer import together
from bench.rivals.registry import order, parse
from bench.rivals.structured_streaming import batch_shares
from control_topic.messages import AbortCommit, EndCommit
from lockstep.errors import ConfigError
from tests.heard_topic import P0, P1, T1, T2, announced


def test_steady_begins_with_the_first_commit_and_leaves_a_last_small_one_out() -> None:
    commits = [Commit(at_ms=5_000 * n, rows=rows) for n, rows in enumerate((300, 1_000, 1_000, 400), 1)]
    span = steady(commits)
    assert span is not None
    assert (span.start_ms, span.end_ms, span.rows) == (5_000, 15_000, 2_000)
    assert span.rows_per_s == 200


def test_steady_keeps_a_last_commit_that_is_whole() -> None:
    span = steady([Commit(at_ms=1_000 * n, rows=500) for n in (3, 1, 2)])
    assert span is not None
    assert (span.seconds, span.rows) == (2.0, 1_000)


@pytest.mark.parametrize("rows", [(), (1_000,), (1_000, 200)])
def test_there_is_no_steady_part_without_a_whole_commit_after_the_first(rows: tuple[int, ...]) -> None:
    assert steady([Commit(at_ms=1_000 * n, rows=one) for n, one in enumerate(rows)]) is None


def test_a_spread_leaves_out_what_was_not_measured() -> None:
    assert spread([3.0, None, 1.0, 2.0]) == {"min": 1.0, "median": 2.0, "max": 3.0}
    assert spread([None]) is None


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([4, 1, 3, 2], 50) == 2
    assert percentile(list(range(1, 101)), 99) == 99
    assert percentile([7], 99) == 7
    assert percentile([], 50) is None


def test_ratios_are_taken_round_by_round() -> None:
    runs = [
        {"rival": "lockstep", "round": 0, "steady_rows_per_s": 100.0},
        {"rival": "other", "round": 0, "steady_rows_per_s": 50.0},
        {"rival": "other", "round": 1, "steady_rows_per_s": 10.0},
        {"rival": "lockstep", "round": 1, "steady_rows_per_s": 30.0},
        {"rival": "lockstep", "round": 2, "steady_rows_per_s": 1_000.0},
    ]
    assert ratios(runs, "lockstep")["other"]["steady_rows_per_s"] == {"min": 2.0, "median": 2.5, "max": 3.0}
    assert by_rival(runs)["lockstep"]["steady_rows_per_s"] == {"min": 30.0, "median": 100.0, "max": 1_000.0}
    assert by_rival(runs)["lockstep"]["window_s"] is None


def test_between_two_samples_growth_is_taken_to_be_even() -> None:
    points_seen = [(0.0, 0.0), (10.0, 5.0), (20.0, 5.0)]
    assert [interpolate(points_seen, at) for at in (-1, 0, 4, 10, 15, 99)] == [0, 0, 2, 5, 5, 5]


# --- CPU of a tree ----------------------------------------------------------------------------------

ROOT: Key = (1, 0.0)
CHILD: Key = (2, 0.0)
GRANDCHILD: Key = (3, 0.0)


def _seen(parent: Key | None, own_s: float, children_s: float = 0.0) -> Seen:
    return Seen(parent=parent, own_s=own_s, children_s=children_s)


def test_a_child_that_was_waited_for_is_counted_once() -> None:
    account = Account()
    assert account.take({ROOT: _seen(None, 1), CHILD: _seen(ROOT, 4)}) == 5
    assert account.take({ROOT: _seen(None, 2, children_s=4.5)}) == 6.5


def test_a_child_that_nobody_waited_for_is_kept_as_it_was_last_seen() -> None:
    account = Account()
    account.take({ROOT: _seen(None, 1), CHILD: _seen(ROOT, 4), GRANDCHILD: _seen(CHILD, 2)})
    assert account.take({ROOT: _seen(None, 2)}) == 8
    assert account.take({ROOT: _seen(None, 3)}) == 9
    assert account.take({}) == 9


def test_a_grandchild_that_is_adopted_goes_on_counting() -> None:
    account = Account()
    account.take({ROOT: _seen(None, 1), CHILD: _seen(ROOT, 4), GRANDCHILD: _seen(CHILD, 2)})
    assert account.take({ROOT: _seen(None, 1, children_s=4), GRANDCHILD: _seen((99, 0.0), 3)}) == 8


# --- what rivals leave behind -----------------------------------------------------------------------


def test_stages_are_parts_of_the_workers_time_in_the_span() -> None:
    seen = (
        (0, {"decode": 0.0}),
        (10_000, {"decode": 4.0, "encode": 2.0}),
        (20_000, {"decode": 12.0, "encode": 4.0}),
    )
    commits = [Commit(at_ms=10_000, rows=1), Commit(at_ms=20_000, rows=1)]
    assert Stages(seen=seen).shares(steady(commits), workers=2) == {"decode": 0.4, "encode": 0.1}
    assert Stages(seen=seen).shares(None, workers=2) == {"decode": 0.3, "encode": 0.1}
    assert Stages(seen=seen[:1]).shares(None, workers=2) == {}


def test_spark_s_steps_are_parts_of_its_batches() -> None:
    batches = [
        {"durations_ms": {"addBatch": 700, "walCommit": 100, "triggerExecution": 900}},
        {"durations_ms": {"addBatch": 100, "triggerExecution": 100}},
    ]
    assert batch_shares(batches) == {"addBatch": 0.8, "walCommit": 0.1}
    assert batch_shares([]) == {}


def test_rounds_of_several_plain_writers_count_when_the_last_has_closed_them() -> None:
    rounds = [
        [{"at_ms": 100, "rows": 5}, {"at_ms": 200, "rows": 6}, {"at_ms": 300, "rows": 7}],
        [{"at_ms": 120, "rows": 1}, {"at_ms": 190, "rows": 0}],
    ]
    assert together(rounds) == [
        Commit(at_ms=120, rows=6),
        Commit(at_ms=200, rows=6),
        Commit(at_ms=300, rows=7),
    ]


def test_a_commit_is_timed_from_the_first_end_to_the_first_ack() -> None:
    topic = announced()
    topic.opened(T1, {P0: 0, P1: 0})
    for _ in range(2):
        topic.send(EndCommit(transaction=T1))
    topic.reported(T1, P0, 0, 5)
    topic.reported(T1, P1, 0, 5)
    for _ in range(2):
        topic.acknowledged(T1, {P0: 5, P1: 5})
    topic.acknowledged("unseen", {P0: 6})
    topic.opened(T2, {P0: 5, P1: 5})
    topic.send(AbortCommit(transaction=T2, reason="storage is away"))
    [one] = endings(topic.known)
    assert one == Ending(transaction=T1, end_ms=3_000, written_ms=6_000, ack_ms=7_000)
    assert one.commit_ms == 4_000


def test_a_commit_of_which_no_ack_told_is_not_timed() -> None:
    topic = announced()
    topic.opened(T1, {P0: 0})
    topic.send(EndCommit(transaction=T1))
    topic.reported(T1, P0, 0, 5)
    topic.opened(T2, {P0: 5}, epoch=2)
    assert endings(topic.known) == []


def test_commit_figures_are_of_the_commits_around_a_number() -> None:
    many = [Ending(transaction=str(n), end_ms=0, written_ms=n, ack_ms=10 * n) for n in range(1, 1_001)]
    assert points(1_000) == [10, 100, 1_000]
    assert points(10) == [10]
    assert at(many, 1_000)["commit_p50_ms"] == 9_950
    assert at(many, 10)["commits"] == 20


# --- who runs ---------------------------------------------------------------------------------------


def test_variants_say_the_interval_or_the_batch() -> None:
    assert parse("lockstep@60s").interval_s == 60
    assert parse("streaming@500000").batch_records == 500_000
    assert parse("lockstep-workers@4").workers == 4
    assert (parse("plain").interval_s, parse("plain").title) == (None, "plain writer, no protocol, no table")


@pytest.mark.parametrize(
    "label", ["nobody", "lockstep@soon", "streaming@5s", "lockstep@", "lockstep-workers@0"]
)
def test_a_rival_that_cannot_be_is_refused(label: str) -> None:
    with pytest.raises(ConfigError):
        parse(label)


def test_every_other_round_runs_backwards_and_keeps_shared_processes_together() -> None:
    entries = [parse(one) for one in ("lockstep", "iceberg-cold", "streaming", "iceberg-warm")]
    forwards = [entry.label for entry in order(entries, 0)]
    backwards = [entry.label for entry in order(entries, 1)]
    assert forwards == ["lockstep", "iceberg-cold", "iceberg-warm", "streaming"]
    assert backwards == ["streaming", "iceberg-cold", "iceberg-warm", "lockstep"]
