"""The ledger: epochs, failures, back-off, and the walk from RUN to STOP."""

from __future__ import annotations

import pytest

from control_topic.messages import EPOCH_LEAD_MAX, SourcePartition
from table.faults import WorkerFault
from table.service.calls import Fault, RunMode
from table.service.ledger import Ledger, LedgerLimits, RunOutcome, RunOutcomeKind
from table.service.modes import TRANSITIONS, Signal
from table.state import TableState

P0 = SourcePartition("events", 0)
P1 = SourcePartition("events", 1)


def ledger(**limits: int) -> Ledger:
    made = Ledger(run="run-1", now_ms=0, limits=LedgerLimits(**limits))
    assert made.register(1, "c1", 0)
    return made


def state(*, epoch: int, run: str = "run-1") -> TableState:
    return TableState(pipeline="p", run=run, epoch=epoch, transaction="t", offsets={P0: 1}, instant="007")


def fail(book: Ledger, now_ms: int, transaction: str, fault: Fault = Fault.PIPELINE) -> int:
    return book.aborted(now_ms, transaction=transaction, reason=f"reason of {transaction}.", fault=fault)


def modes(book: Ledger, *steps: tuple[int, str]) -> list[RunMode]:
    return [book.directive(now_ms, coordinator).mode for now_ms, coordinator in steps]


# --- epochs -----------------------------------------------------------------------------------


def test_a_registration_must_be_newer_than_every_epoch_known() -> None:
    book = Ledger(run="run-1", now_ms=0)
    assert not book.is_current(0)
    assert book.register(3, "a", 2)
    assert book.is_current(3)
    assert not book.register(3, "b", 2)
    assert not book.register(2, "b", 2)
    assert not book.register(4, "b", 4)
    assert book.highest_epoch == 4
    assert book.register(5, "b", 4)
    assert (book.epoch, book.incarnation) == (5, "b")


def test_the_same_registration_again_is_fine_until_something_newer_is_seen() -> None:
    book = Ledger(run="run-1", now_ms=0)
    assert book.register(3, "a", 0)
    assert book.register(3, "a", 3)
    book.saw(state(epoch=4))
    assert not book.register(3, "a", 3)
    assert not book.is_current(3)


def test_an_epoch_that_another_run_has_committed_with_is_nobodys_any_more() -> None:
    book = ledger()
    book.saw(state(epoch=1))
    assert book.is_current(1)
    book.saw(state(epoch=1, run="run-9"))
    assert not book.is_current(1)
    assert not book.register(1, "c1", 1)
    assert book.register(2, "c1", 1)
    assert book.is_current(2)


def test_an_older_coordinator_is_stale_once_a_newer_one_is_registered() -> None:
    book = ledger()
    assert book.register(2, "c2", 0)
    assert not book.is_current(1)
    assert not book.register(1, "c1", 0)


def test_the_fence_lets_the_registered_epoch_pass_and_nobody_else() -> None:
    book = ledger()
    fence = book.fence(1)
    assert fence(None) == ""
    assert fence(state(epoch=0)) == ""
    assert fence(state(epoch=1)) == ""
    assert "run run-9 has committed with epoch 2" in fence(state(epoch=2, run="run-9"))
    assert "of run run-9 carries it" in fence(state(epoch=1, run="run-9"))


def test_a_fence_made_before_a_newer_registration_refuses_after_it() -> None:
    book = ledger()
    fence = book.fence(1)
    book.register(2, "c2", 0)
    assert "epoch 2 is registered" in fence(None)


@pytest.mark.parametrize("table_epoch", [0, 7, 2**63 - 3])
def test_an_epoch_far_beyond_the_tables_is_nobodys(table_epoch: int) -> None:
    book = Ledger(run="run-1", now_ms=0)
    assert not book.register(table_epoch + EPOCH_LEAD_MAX + 1, "a", table_epoch)
    assert not book.register(2**64 - 1, "a", table_epoch)
    assert book.highest_epoch == table_epoch
    assert book.register(table_epoch + EPOCH_LEAD_MAX, "a", table_epoch)


def test_not_even_a_registered_epoch_commits_far_beyond_the_tables() -> None:
    book = Ledger(run="run-1", now_ms=0)
    assert book.register(10 + EPOCH_LEAD_MAX, "a", 10)
    assert "nobody's" in book.fence(10 + EPOCH_LEAD_MAX)(None)
    assert "nobody's" in book.fence(10 + EPOCH_LEAD_MAX)(state(epoch=9))
    assert book.fence(10 + EPOCH_LEAD_MAX)(state(epoch=10)) == ""


def test_a_table_whose_epoch_was_driven_high_is_gone_on_with() -> None:
    book = Ledger(run="run-1", now_ms=0)
    for epoch in range(2**63 - 2, 2**63 + 3):
        assert book.register(epoch, f"c{epoch}", 2**63 - 3)
        assert book.fence(epoch)(state(epoch=2**63 - 3)) == ""


# --- failures ---------------------------------------------------------------------------------


def test_pipeline_failures_in_a_row_halt_the_run_and_name_the_last_reasons() -> None:
    book = ledger(max_consecutive_failures=3)
    waits = [fail(book, 0, "a"), fail(book, 0, "b")]
    assert not book.halted
    waits.append(fail(book, 0, "c"))
    assert waits == [500, 1_000, 2_000]
    assert book.halted.startswith("3 transactions in a row failed")
    assert "reason of a; reason of b; reason of c. " in book.halted


def test_a_commit_resets_failures_and_back_off() -> None:
    book = ledger(max_consecutive_failures=2)
    fail(book, 0, "a")
    fail(book, 0, "b", Fault.ENVIRONMENT)
    book.committed("c", {P0: 1})
    assert book.wait_ms(0) == 0
    standing = book.standing(0)
    assert (standing.pipeline_failures, standing.environment_failures, standing.reasons) == (0, 0, ())
    assert fail(book, 0, "d") == 500
    assert not book.halted


def test_nobodys_fault_is_not_counted_and_does_not_wait() -> None:
    book = ledger(max_consecutive_failures=1)
    assert fail(book, 0, "a", Fault.NONE) == 0
    assert not book.halted


def test_an_abort_that_is_asked_for_twice_counts_once() -> None:
    book = ledger(max_consecutive_failures=2)
    fail(book, 0, "a")
    assert fail(book, 100, "a") == 400
    assert book.standing(0).pipeline_failures == 1


def test_an_outage_backs_off_up_to_a_cap_and_halts_when_the_budget_is_spent() -> None:
    book = ledger()
    now_ms, waits = 0, []
    while not book.halted:
        waits.append(book.unavailable(now_ms, "the storage does not answer"))
        now_ms += waits[-1]
    assert waits[:8] == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
    assert 600_000 < now_ms - waits[-1] <= 640_000
    assert "Nothing could be committed for" in book.halted
    assert "the storage does not answer" in book.halted


def test_what_is_known_to_pass_is_waited_for_as_long_as_it_takes_and_no_longer() -> None:
    book = ledger()
    now_ms = 0
    while not book.halted:
        patience_ms = max(0, 3_600_000 - now_ms)  # until summer time's last hour is over for the second time
        now_ms += book.unavailable(now_ms, "the clock is behind", patience_ms=patience_ms)
    assert 3_600_000 < now_ms <= 3_700_000
    assert "an outage is waited out for 36" in book.halted
    book = ledger()
    book.unavailable(0, "the clock is behind", patience_ms=3_600_000)
    book.committed("t1", {P0: 1})
    assert book.outage_budget_ms == 600_000


def test_failures_with_quiet_hours_between_them_are_not_one_outage() -> None:
    book = ledger()
    for hour in range(100):
        assert book.unavailable(hour * 3_600_000, "a hiccup") == 500
    assert not book.halted
    assert book.standing(0).outage_ms == 0


def test_the_quiet_time_between_two_failures_counts_only_in_part() -> None:
    book = ledger()
    book.unavailable(0, "x")
    book.unavailable(300_000, "x")
    assert book.standing(300_000).outage_ms == 90_000


def test_the_back_off_holds_for_whoever_asks_later() -> None:
    book = ledger()
    fail(book, 1_000, "a")
    assert book.wait_ms(1_200) == 300
    assert book.wait_ms(1_500) == 0
    assert book.standing(1_200).backoff_left_ms == 300


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_consecutive_failures": 0},
        {"backoff_first_ms": 0},
        {"backoff_first_ms": 2_000, "backoff_max_ms": 1_000},
        {"backoff_max_ms": 90_000},
        {"outage_budget_ms": 1_000},
        {"drain_silence_ms": 400_000},
    ],
)
def test_limits_that_contradict_each_other_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        LedgerLimits(**wrong)


# --- workers ----------------------------------------------------------------------------------


def die(book: Ledger, who: str, *, now_ms: int = 0, recovering: bool = False) -> None:
    book.died(now_ms, incarnation=who, reason=f"{who} was killed", recovering=recovering)


def test_deaths_that_take_a_transaction_with_them_count_once_for_it() -> None:
    book = ledger(max_consecutive_failures=2)
    book.began("a")
    die(book, "w0")
    die(book, "w1")
    fail(book, 0, "a")
    assert book.standing(0).pipeline_failures == 1
    book.began("b")
    die(book, "w2")
    assert "w0 was killed; w2 was killed" in book.halted


def test_workers_whose_files_find_no_room_are_the_environments_fault_and_waited_out() -> None:
    book = ledger(max_consecutive_failures=2, outage_budget_ms=100_000)
    for number in range(20):
        book.began(f"t{number}")
        for who in (f"a{number}", f"b{number}"):
            book.died(number * 6_000, incarnation=who, reason="no space left", fault=WorkerFault.STORAGE)
        book.aborted(number * 6_000, transaction=f"t{number}", reason="left", fault=Fault.NONE)
        assert bool(book.halted) == (number * 6_000 > 100_000)
    assert "an outage is waited out for 100 s; last: no space left" in book.halted
    assert book.standing(0).pipeline_failures == 0


def test_a_death_while_nothing_is_open_is_nobodys_failure() -> None:
    book = ledger(max_consecutive_failures=1)
    die(book, "w0")
    book.began("a")
    book.committed("a", {})
    die(book, "w1")
    assert not book.halted


def test_a_crash_loop_of_recovering_coordinators_counts() -> None:
    book = ledger(max_consecutive_failures=2)
    die(book, "w0", recovering=True)
    die(book, "w1", recovering=True)
    assert book.halted


def test_deaths_while_the_run_ends_are_not_failures() -> None:
    book = ledger(max_consecutive_failures=1)
    book.began("a")
    book.request_stop("Ctrl-C")
    book.directive(0, "started")
    die(book, "w0")
    assert not book.halted


def test_the_dead_are_named_in_every_directive_for_a_while_and_their_number_is_bounded() -> None:
    book = ledger(dead_kept=2, dead_kept_ms=1_000)
    for now_ms, who in ((0, "w0"), (100, "w1"), (200, "w2")):
        die(book, who, now_ms=now_ms)
    assert book.directive(300, "").dead == ("w1", "w2")
    assert book.dead(1_100) == ("w2",)
    assert book.dead(1_200) == ()


def test_fenced_workers_are_known_until_they_are_dead() -> None:
    book = ledger()
    book.fenced("w0")
    book.fenced("w1")
    die(book, "w0")
    assert book.standing(0).fenced == ("w1",)


# --- the end of the run -----------------------------------------------------------------------


def test_every_mode_has_its_transitions_and_only_stop_has_none() -> None:
    assert set(TRANSITIONS) == set(RunMode)
    assert [mode for mode, row in TRANSITIONS.items() if not row] == [RunMode.STOP]
    assert {signal for row in TRANSITIONS.values() for signal, _ in row} == set(Signal)


def test_a_run_goes_on_while_nothing_ends_it() -> None:
    book = ledger()
    assert modes(book, (0, "idle"), (10**9, "")) == [RunMode.RUN, RunMode.RUN]
    assert book.outcome() is None
    assert book.stopping == book.closed == book.directive(10**9, "").reason == ""


def test_a_stop_drains_and_then_stops() -> None:
    book = ledger()
    book.request_stop("Ctrl-C")
    book.request_stop("again")
    assert modes(book, (0, "started"), (1, "committing")) == [RunMode.DRAIN, RunMode.DRAIN]
    assert book.closed == ""
    assert book.directive(2, "drained").mode is RunMode.STOP
    assert book.closed == "Ctrl-C"
    assert book.outcome() == RunOutcome(kind=RunOutcomeKind.STOPPED, reason="Ctrl-C")


def test_a_stop_before_there_was_any_coordinator_has_nothing_to_drain() -> None:
    book = Ledger(run="run-1", now_ms=0)
    book.request_stop("Ctrl-C")
    assert modes(book, (0, ""), (1, "")) == [RunMode.DRAIN, RunMode.STOP]


@pytest.mark.parametrize("silent", ["", "fenced", "stopped"])
def test_a_drain_that_no_coordinator_answers_ends_after_the_silence_allowed(silent: str) -> None:
    book = ledger(drain_silence_ms=1_000)
    book.request_stop("Ctrl-C")
    steps = ((0, "started"), (500, "ended"), (1_500, silent), (1_501, silent))
    assert modes(book, *steps) == [RunMode.DRAIN, RunMode.DRAIN, RunMode.DRAIN, RunMode.STOP]


def test_a_drain_that_goes_on_for_ever_is_ended() -> None:
    book = ledger(drain_silence_ms=1_000, drain_ms=5_000)
    book.request_stop("Ctrl-C")
    steps = [(now_ms, "aborting") for now_ms in range(0, 5_400, 300)]
    assert modes(book, *steps)[-2:] == [RunMode.DRAIN, RunMode.STOP]


def test_poison_drains_then_halts_then_stops() -> None:
    book = ledger()
    book.poison("events:0 offset 7: not JSON")
    assert book.directive(0, "started").mode is RunMode.DRAIN
    assert book.closed == ""
    steps = ((1, "ended"), (2, "drained"), (3, "drained"), (4, "halted"))
    assert modes(book, *steps) == [RunMode.DRAIN, RunMode.HALT, RunMode.HALT, RunMode.STOP]
    assert book.closed == "events:0 offset 7: not JSON"
    assert book.outcome() == RunOutcome(kind=RunOutcomeKind.HALTED, reason="events:0 offset 7: not JSON")


def test_poison_halts_even_where_nobody_drains_or_announces() -> None:
    book = ledger(drain_silence_ms=1_000, halt_ms=500)
    book.poison("events:0 offset 7: not JSON")
    steps = ((0, ""), (1_000, ""), (1_001, ""), (1_501, ""), (1_502, ""))
    assert modes(book, *steps) == [RunMode.DRAIN, RunMode.DRAIN, RunMode.HALT, RunMode.HALT, RunMode.STOP]


def test_a_halt_does_not_wait_for_a_drain() -> None:
    book = ledger()
    book.halt("the table is gone")
    assert book.closed == "the table is gone"
    assert modes(book, (0, "started"), (1, "halted")) == [RunMode.HALT, RunMode.STOP]


def test_the_first_reason_to_halt_wins_and_a_later_one_ends_the_drain() -> None:
    book = ledger()
    book.poison("events:0 offset 7: not JSON")
    book.poison("events:1 offset 9: not JSON")
    book.directive(0, "started")
    book.halt("the table is gone")
    assert book.directive(1, "started").mode is RunMode.HALT
    assert book.halted == "events:0 offset 7: not JSON"


def test_a_halt_during_a_requested_drain_makes_the_run_a_halted_one() -> None:
    book = ledger()
    book.request_stop("Ctrl-C")
    book.directive(0, "started")
    book.halt("the table is gone")
    assert modes(book, (1, "started"), (2, "halted")) == [RunMode.HALT, RunMode.STOP]
    outcome = book.outcome()
    assert outcome is not None and outcome.kind is RunOutcomeKind.HALTED


def test_what_happens_after_stop_does_not_change_how_the_run_ended() -> None:
    book = ledger()
    book.request_stop("Ctrl-C")
    modes(book, (0, "idle"), (1, "drained"))
    book.halt("too late")
    book.poison("too late")
    book.supersede("too late")
    assert book.outcome() == RunOutcome(kind=RunOutcomeKind.STOPPED, reason="Ctrl-C")


def test_a_superseded_run_stops_at_once() -> None:
    book = ledger()
    book.halt("fenced by somebody")
    book.supersede("run 2 has taken over")
    assert book.directive(0, "started").mode is RunMode.STOP
    assert book.outcome() == RunOutcome(kind=RunOutcomeKind.SUPERSEDED, reason="run 2 has taken over")


def test_a_run_with_targets_drains_when_every_one_is_committed() -> None:
    book = Ledger(run="run-1", now_ms=0, until={P0: 10, P1: 0})
    book.register(1, "c1", 0)
    book.saw_offsets({P0: 9})
    assert not book.stopping
    book.committed("a", {P0: 10})
    assert modes(book, (0, "idle"), (1, "drained")) == [RunMode.DRAIN, RunMode.STOP]
    outcome = book.outcome()
    assert outcome is not None and outcome.kind is RunOutcomeKind.REACHED


def test_without_targets_no_offset_ends_the_run() -> None:
    book = ledger()
    book.committed("a", {P0: 10**12})
    assert not book.stopping
