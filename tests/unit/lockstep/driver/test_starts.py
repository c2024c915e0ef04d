"""A slot whose worker does not come up: when its task is killed, and when that is the end of the run."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.driver.starts import NO_SLOT_MAX_S, SlotSeen, Starts, StartsVerdict

START_S = 120.0


def seen(start: int = 1, **how: bool) -> SlotSeen:
    return SlotSeen(number=0, start=start, **how)


class Run:
    """Looks, a second apart."""

    def __init__(self) -> None:
        self._starts = Starts(START_S)
        self._now_s = 50.0

    def look(self, *slots: SlotSeen, seconds: int = 1, lives: bool = False) -> Iterator[StartsVerdict]:
        for _ in range(seconds):
            self._now_s += 1.0
            yield self._starts.look(self._now_s, slots, lives=lives)

    def last(self, *slots: SlotSeen, seconds: int = 1, lives: bool = False) -> StartsVerdict:
        *_, found = self.look(*slots, seconds=seconds, lives=lives)
        return found


def test_a_worker_that_comes_up_in_time_is_never_spoken_of() -> None:
    run = Run()
    assert all(found == StartsVerdict() for found in run.look(seen(), seconds=59))
    assert all(found == StartsVerdict() for found in run.look(seen(reported=True), seconds=1_000))


def test_a_slow_start_is_an_alarm_first() -> None:
    found = Run().last(seen(), seconds=61)
    assert found == StartsVerdict(alarm="worker-0 was started 60 s ago and has not reported")


def test_one_that_does_not_come_up_is_killed_once_and_the_second_that_does_not_ends_the_run() -> None:
    run = Run()
    cancels = [found.cancel for found in run.look(seen(), seconds=121)]
    assert cancels == [()] * 120 + [(0,)]
    assert run.last(seen(), seconds=30).cancel == ()
    assert run.last(seen(2), seconds=120) == StartsVerdict(
        alarm="worker-0 was started 119 s ago and has not reported (nor the time before)"
    )
    found = run.last(seen(2))
    assert found.cancel == (0,)
    assert found.halt.startswith("worker-0 was started 2 times and did not report within 120 s, and no other")


def test_a_report_between_them_is_a_fresh_beginning() -> None:
    run = Run()
    assert run.last(seen(), seconds=121).cancel == (0,)
    run.last(seen(2, reported=True))
    assert run.last(seen(3), seconds=121) == StartsVerdict(
        cancel=(0,), alarm="worker-0 was started 120 s ago and has not reported"
    )


def test_while_another_worker_lives_the_run_goes_on_and_the_alarm_stays() -> None:
    run = Run()
    for start in range(1, 10):
        found = run.last(seen(start), seconds=121, lives=True)
        assert found.cancel == (0,) and not found.halt
    assert found.alarm == "worker-0 was started 120 s ago and has not reported (nor 8 times before)"
    assert run.last(seen(10)).halt, "the other one is gone, too"


def test_a_task_without_a_spark_slot_is_not_killed_and_waited_for_as_an_outage_is() -> None:
    run = Run()
    found = run.last(seen(waits=True), seconds=300)
    assert found == StartsVerdict(alarm="worker-0 waits for a free Spark slot, for 299 s")
    assert run.last(seen(), seconds=119).cancel == ()
    lasting = Run()
    assert lasting.last(seen(waits=True), seconds=2_000, lives=True).halt == ""
    told = [found.halt for found in Run().look(seen(waits=True), seconds=601) if found.halt]
    assert told[0].startswith(f"Spark has had no free slot for worker-0 for {NO_SLOT_MAX_S:.0f} s")


def test_a_task_that_was_killed_and_keeps_its_spark_slot_does_not_make_its_successor_wait_for_ever() -> None:
    run = Run()
    run.last(seen(), seconds=121)
    assert run.last(seen(2, waits=True), seconds=121).halt


def test_time_between_two_starts_does_not_count() -> None:
    run = Run()
    run.last(seen(), seconds=100)
    assert run.last(seen(idle=True), seconds=1_000) == StartsVerdict()
    assert run.last(seen(2), seconds=120).cancel == ()


def test_a_driver_that_was_frozen_itself_kills_nobody() -> None:
    starts = Starts(START_S)
    for now_s in (0.0, 1.0, 5_000.0):
        assert starts.look(now_s, [seen()], lives=False) == StartsVerdict()
