"""Ends that the wall clock asks for: a schedule, an alignment, and clocks that are put forward and back."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic.controls import Controls, Tuning
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    EndCommit,
    EndRequest,
    ParticipantLeave,
    ParticipantReady,
    StartCommit,
)
from coordinator import events as c
from coordinator.appointments import SLACK_MS
from coordinator.times import NEVER, ByTheClock, Every
from coordinator.transitions import State
from tests.unit.conversation import P0, CoordinatorTalk, of, sent, status

HOUR_MS = 3_600_000
TEN = 20_000 * 24 * HOUR_MS + 10 * HOUR_MS
"""Ten o'clock of some day, by the wall clock."""
MINUTE_MS = 60_000
OK = c.Result.OK
SCHEDULED = ByTheClock(schedule=Every(HOUR_MS))
ALIGNED = ByTheClock(align=Every(HOUR_MS, splits=True))
OFF = ByTheClock()
SETTLE_MS = 1_000


class Clocked(CoordinatorTalk):
    """A conversation with a wall clock, which may be set."""

    def __init__(self, wall_ms: int, **settings: Any) -> None:
        super().__init__(**{"interval_ms": 24 * HOUR_MS, "settle_ms": SETTLE_MS, **settings})
        self.ahead_ms = wall_ms

    @property
    def wall_ms(self) -> int:
        return self.now_ms + self.ahead_ms

    def set_clock(self, wall_ms: int) -> None:
        self.ahead_ms = wall_ms - self.now_ms

    def feed(self, event: c.Event) -> list[Any]:
        object.__setattr__(event, "wall_ms", self.wall_ms)
        return super().feed(event)

    def tick_at(self, wall_ms: int) -> list[Any]:
        """Time passes, until the wall clock shows this."""
        return self.tick(wall_ms - self.wall_ms)

    def ends(self, wall_ms: int) -> list[str]:
        """Why a transaction is ended in the tick at this time."""
        return [one.reason for one in sent(self.tick_at(wall_ms), EndCommit)]

    def begun_at(self, wall_ms: int) -> list[Any]:
        """Somebody holds records; the table answers at once."""
        self.tick_at(wall_ms)
        self.hear(ParticipantReady())
        return self.answer(OK, instant=f"i{self.begun}", committed=dict(self.core.committed))

    def committed_now(self, upto: int) -> list[Any]:
        """What was ended is reported and committed."""
        start = self.core.committed[P0]
        self.hear(status(f"t{self.begun}", (P0, start, upto)))
        return self.answer(OK)


def aligned(wall_ms: int, **settings: Any) -> Clocked:
    return Clocked(wall_ms, by_the_clock=ALIGNED, **settings)


def scheduled(wall_ms: int, **settings: Any) -> Clocked:
    """It has made good what may have been missed before it."""
    talk = Clocked(wall_ms, by_the_clock=SCHEDULED, **settings)
    talk.started()
    assert sent(talk.tick(SETTLE_MS), EndCommit)
    assert sent(talk.committed_now(5), AckCommit)
    return talk


# --- aligned ------------------------------------------------------------------------------------


def test_a_transaction_is_ended_when_the_hour_is_over() -> None:
    talk = aligned(TEN + 50 * MINUTE_MS)
    talk.started()
    assert talk.ends(TEN + HOUR_MS - 1) == []
    assert talk.ends(TEN + HOUR_MS) == ["align"]
    assert talk.ends(TEN + HOUR_MS + 1) == [], "it is ended once"


def test_the_interval_and_limits_end_it_before_the_hour_is_over() -> None:
    talk = aligned(TEN + 50 * MINUTE_MS, interval_ms=10_000)
    talk.started()
    assert talk.ends(TEN + 50 * MINUTE_MS + 10_000) == ["interval"]
    talk = aligned(TEN + 50 * MINUTE_MS)
    talk.started()
    assert sent(talk.hear(EndRequest(transaction="t1", reason="records")), EndCommit)


def test_what_is_read_when_the_hour_is_nearly_over_waits_for_the_next_one() -> None:
    talk = aligned(TEN + HOUR_MS - 2_000).idle()
    assert not of(talk.beginning().tick(0), c.Begin)
    assert talk.core.state is State.IDLE
    assert not of(talk.tick_at(TEN + HOUR_MS), c.Begin)
    assert not of(talk.tick_at(TEN + HOUR_MS + 999), c.Begin), "another's clock may show the hour before"
    assert of(talk.tick_at(TEN + HOUR_MS + 1_000), c.Begin)


@pytest.mark.parametrize("late_ms", [1_001, 2_500, 3_500])
def test_what_began_too_slowly_for_its_hour_is_rolled_back_and_begins_anew(late_ms: int) -> None:
    talk = aligned(TEN + HOUR_MS - 2_001)
    talk.beginning()
    assert talk.core.state is State.BEGINNING
    talk.tick(late_ms)
    (abort,) = talk.answer(OK, instant="i1", committed={P0: 0})
    assert (abort.transaction, abort.cause, abort.fault) == ("t1", "nothing_to_commit", c.Fault.NONE)
    actions = talk.answer(OK)
    assert sent(actions, AbortCommit)
    (begin,) = of(actions, c.Begin) or of(talk.tick_at(TEN + HOUR_MS + 1_000), c.Begin)
    assert begin.transaction == "t2"
    assert sent(talk.answer(OK, instant="i2", committed={P0: 0}), StartCommit)


def test_an_hour_in_which_nothing_comes_has_no_transaction_and_nothing_is_ended() -> None:
    talk = aligned(TEN + 50 * MINUTE_MS).idle()
    talk.beginning()
    talk.answer(OK, instant="i1", committed={P0: 0})
    talk.tick_at(TEN + HOUR_MS)
    talk.committed_now(5)
    for minutes in range(61, 300):
        assert talk.tick_at(TEN + minutes * MINUTE_MS) == []


def test_a_commit_that_goes_on_over_the_hour_is_left_alone() -> None:
    talk = aligned(TEN + HOUR_MS - 3_000)
    talk.started()
    talk.direct(c.RunMode.PAUSE)
    assert talk.core.state is State.ENDED
    assert talk.ends(TEN + HOUR_MS) in ([], ["requested"]), "END is repeated, and no other is said"
    talk.hear(status("t1", (P0, 0, 5)))
    assert talk.core.state is State.COMMITTING
    assert talk.tick_at(TEN + HOUR_MS + 5) == []
    assert sent(talk.answer(OK), AckCommit)


@pytest.mark.parametrize("mode", [c.RunMode.DRAIN, c.RunMode.PAUSE])
def test_a_drain_and_a_pause_end_what_is_open_whatever_the_hour(mode: c.RunMode) -> None:
    talk = aligned(TEN + HOUR_MS - 100)
    talk.set_clock(TEN + 30 * MINUTE_MS)
    talk.started()
    talk.set_clock(TEN + HOUR_MS - 100)
    (end,) = sent(talk.direct(mode), EndCommit)
    assert end.reason == ("drain" if mode is c.RunMode.DRAIN else "requested")
    assert talk.ends(TEN + HOUR_MS) == []


def test_a_drain_at_the_full_hour_waits_until_a_transaction_of_its_own_may_begin() -> None:
    talk = aligned(TEN + HOUR_MS - 500).idle()
    talk.beginning()
    assert talk.direct(c.RunMode.DRAIN) == []
    assert talk.tick(0) == [] and talk.core.state is State.IDLE, "somebody still holds records"
    assert of(talk.tick_at(TEN + HOUR_MS + 1_000), c.Begin)
    actions = talk.answer(OK, instant="i1", committed={P0: 0})
    assert [one.reason for one in sent(actions, EndCommit)] == ["drain"]
    talk.committed_now(5)
    assert talk.core.state is State.DRAINED


def test_an_order_to_commit_at_the_full_hour_is_carried_out_after_it() -> None:
    talk = aligned(TEN + HOUR_MS - 500).idle()
    talk.beginning()
    ordered = c.Directed(
        now_ms=talk.now_ms, nonce="t1", mode=c.RunMode.RUN, controls=Controls(number=1, commit=1)
    )
    assert talk._note(talk.feed(ordered)) == []
    assert of(talk.tick_at(TEN + HOUR_MS + 1_000), c.Begin)
    actions = talk.answer(OK, instant="i1", committed={P0: 0})
    assert [one.reason for one in sent(actions, EndCommit)] == ["requested"]


def test_a_clock_that_jumps_over_hours_ends_a_transaction_once() -> None:
    talk = aligned(TEN + 30 * MINUTE_MS)
    talk.started()
    talk.set_clock(TEN + 26 * HOUR_MS + 5 * MINUTE_MS)
    assert [one.reason for one in sent(talk.tick(1), EndCommit)] == ["align"]
    talk.committed_now(5)
    talk.begun_at(TEN + 26 * HOUR_MS + 6 * MINUTE_MS)
    assert talk.ends(TEN + 27 * HOUR_MS - 1) == []
    assert talk.ends(TEN + 27 * HOUR_MS) == ["align"]


def test_a_clock_that_is_put_back_into_the_hour_before_ends_what_began_in_this_one() -> None:
    talk = aligned(TEN + HOUR_MS + 5_000)
    talk.started()
    talk.set_clock(TEN + HOUR_MS - 10_000)
    assert [one.reason for one in sent(talk.tick(1), EndCommit)] == ["align"]
    talk.committed_now(5)
    talk.begun_at(TEN + HOUR_MS - 5_000)
    assert talk.ends(TEN + HOUR_MS) == ["align"], "the hour ends again, for another transaction"


def test_a_clock_that_is_put_back_within_the_hour_ends_nothing() -> None:
    talk = aligned(TEN + 50 * MINUTE_MS)
    talk.started()
    talk.set_clock(TEN + 10 * MINUTE_MS)
    assert talk.tick(1) == []
    assert talk.ends(TEN + HOUR_MS) == ["align"]


def test_a_clock_that_is_put_back_while_a_transaction_begins_has_it_begin_anew() -> None:
    talk = aligned(TEN + HOUR_MS + 5_000)
    talk.beginning()
    talk.set_clock(TEN + HOUR_MS - 10_000)
    (abort,) = of(talk.answer(OK, instant="i1", committed={P0: 0}), c.Abort)
    assert abort.fault is c.Fault.NONE


# --- scheduled ----------------------------------------------------------------------------------


def test_a_transaction_is_ended_at_a_scheduled_time() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + 20 * MINUTE_MS)
    assert talk.ends(TEN + HOUR_MS - 1) == []
    assert talk.ends(TEN + HOUR_MS) == ["schedule"]
    talk.committed_now(9)
    talk.begun_at(TEN + HOUR_MS + MINUTE_MS)
    assert talk.ends(TEN + 2 * HOUR_MS) == ["schedule"]


def test_what_was_there_before_the_coordinator_is_ended_as_soon_as_it_can_be_read() -> None:
    talk = Clocked(TEN + 10 * MINUTE_MS, by_the_clock=SCHEDULED)
    talk.started()
    assert sent(talk.tick(SETTLE_MS - 1), EndCommit) == []
    assert [one.reason for one in sent(talk.tick(1), EndCommit)] == ["schedule"]


def test_a_time_that_comes_while_a_commit_goes_on_is_made_good_by_the_next_one() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + HOUR_MS - 1_000)
    talk.hear(EndRequest(transaction=f"t{talk.begun}", reason="bytes"))
    talk.tick_at(TEN + HOUR_MS)
    talk.committed_now(9)
    talk.begun_at(TEN + HOUR_MS + 500)
    assert talk.ends(TEN + HOUR_MS + 500 + SETTLE_MS) == ["schedule"]
    talk.committed_now(12)
    talk.begun_at(TEN + HOUR_MS + 3_000)
    assert talk.ends(TEN + 2 * HOUR_MS - 1) == [], "it is made good once"


def test_several_times_that_were_missed_are_made_good_by_one_end() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + 20 * MINUTE_MS)
    assert talk.ends(TEN + 5 * HOUR_MS + MINUTE_MS) == ["schedule"]
    talk.committed_now(9)
    talk.begun_at(TEN + 5 * HOUR_MS + 2 * MINUTE_MS)
    assert talk.ends(TEN + 6 * HOUR_MS - 1) == []
    assert talk.ends(TEN + 6 * HOUR_MS) == ["schedule"]


def test_a_time_at_which_nobody_holds_anything_is_forgotten() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.tick_at(TEN + HOUR_MS + MINUTE_MS)
    talk.begun_at(TEN + HOUR_MS + 20 * MINUTE_MS)
    assert talk.ends(TEN + 2 * HOUR_MS - 1) == []
    assert talk.ends(TEN + 2 * HOUR_MS) == ["schedule"]


def test_what_a_scheduled_end_was_for_and_was_aborted_is_ended_again_at_once() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + 20 * MINUTE_MS)
    talk.tick_at(TEN + HOUR_MS)
    talk.hear(ParticipantLeave(partitions=(P0,), transaction=f"t{talk.begun}"))
    assert sent(talk.answer(OK), AbortCommit)
    talk.beginning()
    talk.answer(OK, instant="i9", committed={P0: 5})
    assert [one.reason for one in sent(talk.tick(SETTLE_MS), EndCommit)] == ["schedule"]


def test_an_abort_long_before_the_time_does_not_bring_it_forward() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + 20 * MINUTE_MS)
    talk.hear(ParticipantLeave(partitions=(P0,), transaction=f"t{talk.begun}"))
    assert sent(talk.answer(OK), AbortCommit)
    talk.beginning()
    talk.answer(OK, instant="i9", committed={P0: 5})
    assert talk.ends(TEN + HOUR_MS - 1) == []
    assert talk.ends(TEN + HOUR_MS) == ["schedule"]


def test_writers_that_have_gone_back_are_waited_for_with_another_end() -> None:
    talk = Clocked(TEN + 10 * MINUTE_MS, by_the_clock=SCHEDULED)
    talk.started()
    talk.tick(SETTLE_MS)
    talk.hear(status("t1", (P0, 0, 5), behind={P0: 20}))
    assert sent(talk.answer(OK), AckCommit)
    talk.begun_at(talk.wall_ms + 100)
    assert [one.reason for one in sent(talk.tick(SETTLE_MS), EndCommit)] == ["schedule"]
    talk.committed_now(20)
    talk.begun_at(talk.wall_ms + 100)
    assert sent(talk.tick(SETTLE_MS), EndCommit) == [], "they have read again what they had read"


def test_writers_that_have_gone_back_and_had_nothing_yet_are_waited_for_as_well() -> None:
    """Nothing is committed then, and the time is not made good by it."""
    talk = Clocked(TEN + 10 * MINUTE_MS, by_the_clock=SCHEDULED)
    talk.started()
    talk.tick(SETTLE_MS)
    talk.hear(status("t1", (P0, 0, 0), behind={P0: 20}))
    assert sent(talk.answer(OK), AbortCommit)
    talk.begun_at(talk.wall_ms + 100)
    assert [one.reason for one in sent(talk.tick(SETTLE_MS), EndCommit)] == ["schedule"]
    talk.committed_now(20)
    talk.begun_at(talk.wall_ms + 100)
    assert sent(talk.tick(SETTLE_MS), EndCommit) == []


def test_a_time_that_comes_right_behind_a_commit_is_owed_though_nobody_has_said_ready_yet() -> None:
    """Words take a while: who went on reading during the commit holds records."""
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + HOUR_MS - 2_000)
    talk.hear(EndRequest(transaction=f"t{talk.begun}", reason="bytes"))
    talk.tick_at(TEN + HOUR_MS - 20)
    talk.committed_now(9)
    talk.tick_at(TEN + HOUR_MS)
    talk.begun_at(TEN + HOUR_MS + 30)
    assert talk.ends(TEN + HOUR_MS + 30 + SETTLE_MS) == ["schedule"]


def test_a_clock_that_jumps_over_scheduled_times_ends_a_transaction_once() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + 30 * MINUTE_MS)
    talk.tick(SETTLE_MS)
    talk.set_clock(TEN + 3 * HOUR_MS + 5 * MINUTE_MS)
    assert [one.reason for one in sent(talk.tick(1), EndCommit)] == ["schedule"]
    talk.committed_now(9)
    talk.begun_at(TEN + 3 * HOUR_MS + 6 * MINUTE_MS)
    assert talk.ends(TEN + 4 * HOUR_MS - 1) == []
    assert talk.ends(TEN + 4 * HOUR_MS) == ["schedule"]


def test_a_clock_that_is_put_back_a_little_does_not_have_a_time_come_twice() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + 30 * MINUTE_MS)
    assert talk.ends(TEN + HOUR_MS) == ["schedule"]
    talk.committed_now(9)
    talk.set_clock(TEN + HOUR_MS - 5_000)
    talk.begun_at(TEN + HOUR_MS - 4_000)
    assert talk.ends(TEN + HOUR_MS) == []
    assert talk.ends(TEN + HOUR_MS + 30 * MINUTE_MS) == []


@pytest.mark.parametrize("back_ms", [HOUR_MS, 24 * HOUR_MS, 400 * 24 * HOUR_MS])
def test_a_clock_that_is_put_back_far_has_the_next_time_come_when_it_would_have(back_ms: int) -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + 30 * MINUTE_MS)
    talk.set_clock(talk.wall_ms - back_ms)
    due_ms = talk.now_ms + 30 * MINUTE_MS
    assert sent(talk.tick(due_ms + SLACK_MS - 1 - talk.now_ms), EndCommit) == []
    assert [one.reason for one in sent(talk.tick(1), EndCommit)] == ["schedule"]
    talk.committed_now(9)
    talk.begun_at(talk.wall_ms + MINUTE_MS)
    next_hour_ms = talk.wall_ms - talk.wall_ms % HOUR_MS + HOUR_MS
    assert talk.ends(next_hour_ms - 1) == []
    assert talk.ends(next_hour_ms) == ["schedule"], "from then on what the clock shows counts"


def test_without_schedule_and_alignment_the_wall_clock_says_nothing() -> None:
    talk = Clocked(TEN, interval_ms=1_000)
    talk.started()
    talk.set_clock(TEN + 90 * 24 * HOUR_MS)
    assert talk.tick(249) == []
    assert [one.reason for one in sent(talk.tick(1), EndCommit)] == ["interval"]


# --- set while the run goes on ------------------------------------------------------------------


def set_to(talk: Clocked, by_the_clock: ByTheClock, number: int = 1) -> None:
    tuning = Tuning(interval_ms=24 * HOUR_MS, write_timeout_ms=60_000)
    controls = Controls(number=number, tuning=tuning)
    directed = c.Directed(
        now_ms=talk.now_ms, mode=c.RunMode.RUN, controls=controls, by_the_clock=by_the_clock
    )
    assert talk.feed(directed) == []


def test_a_schedule_that_is_set_counts_from_the_next_transaction_on_and_owes_nothing_before() -> None:
    talk = Clocked(TEN + 10 * MINUTE_MS)
    talk.started()
    set_to(talk, SCHEDULED)
    assert talk.ends(TEN + HOUR_MS) == [], "what is open goes on as it was begun"
    talk.hear(EndRequest(transaction="t1", reason="bytes"))
    talk.committed_now(5)
    talk.begun_at(TEN + HOUR_MS + 10 * MINUTE_MS)
    assert talk.ends(TEN + 2 * HOUR_MS - 1) == []
    assert talk.ends(TEN + 2 * HOUR_MS) == ["schedule"]


def test_who_takes_over_goes_by_what_was_set_and_makes_good_what_may_have_been_missed() -> None:
    talk = Clocked(TEN + 10 * MINUTE_MS).idle()
    set_to(talk, SCHEDULED)
    talk.started()
    assert [one.reason for one in sent(talk.tick(SETTLE_MS), EndCommit)] == ["schedule"]
    talk.committed_now(5)
    talk.begun_at(TEN + 20 * MINUTE_MS)
    assert talk.ends(TEN + HOUR_MS - 1) == []
    assert talk.ends(TEN + HOUR_MS) == ["schedule"]


def test_a_schedule_that_is_taken_away_ends_nothing_more() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    set_to(talk, OFF)
    talk.begun_at(TEN + 50 * MINUTE_MS)
    assert talk.ends(TEN + HOUR_MS) == []
    assert talk.core.rounds.appointments.next_ms == NEVER
    assert talk.ends(TEN + 5 * HOUR_MS) == []


def test_a_time_that_was_missed_is_made_good_though_the_schedule_is_another_by_then() -> None:
    talk = scheduled(TEN + 10 * MINUTE_MS)
    talk.begun_at(TEN + HOUR_MS - 2_000)
    talk.hear(EndRequest(transaction=f"t{talk.begun}", reason="bytes"))
    talk.tick_at(TEN + HOUR_MS)
    set_to(talk, ByTheClock(schedule=Every(6 * HOUR_MS)))
    talk.committed_now(9)
    talk.begun_at(TEN + HOUR_MS + 100)
    assert [one.reason for one in sent(talk.tick(SETTLE_MS), EndCommit)] == ["schedule"]
    talk.committed_now(12)
    talk.begun_at(TEN + HOUR_MS + 2 * MINUTE_MS)
    assert talk.ends(TEN + 2 * HOUR_MS - 1) == []
    assert talk.ends(TEN + 2 * HOUR_MS) == ["schedule"], "noon is a multiple of six hours"


def test_an_alignment_that_is_set_leaves_what_is_open_alone() -> None:
    talk = Clocked(TEN + 50 * MINUTE_MS)
    talk.started()
    set_to(talk, ALIGNED)
    assert talk.ends(TEN + HOUR_MS) == []
    talk.hear(EndRequest(transaction="t1", reason="bytes"))
    talk.committed_now(5)
    talk.begun_at(TEN + HOUR_MS + MINUTE_MS)
    set_to(talk, OFF, number=2)
    assert talk.ends(TEN + 2 * HOUR_MS) == ["align"], "it was begun with it"


def test_an_alignment_that_is_set_while_an_instant_is_asked_for_counts_from_the_one_after_it() -> None:
    talk = Clocked(TEN + 50 * MINUTE_MS)
    talk.beginning()
    set_to(talk, ALIGNED)
    assert sent(talk.answer(OK, instant="i1", committed={P0: 0}), StartCommit)
    assert talk.ends(TEN + HOUR_MS) == []
