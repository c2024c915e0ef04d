"""Orders of operators: their order, what they amount to, when they are done, who is told, who is refused."""

from __future__ import annotations

from dataclasses import replace

from control_topic.controls import COMMIT, PAUSE, RESUME, SET, STOP, Controls, Tuning
from table.service.calls import Order, RunMode
from table.service.ledger import Ledger
from table.service.orders import COMMIT_LIVES_MS, Orders

CONFIGURED = Tuning(interval_ms=10_000, write_timeout_ms=60_000, max_records=0, max_bytes=512_000_000)


def ledger() -> Ledger:
    made = Ledger(run="run-1", now_ms=0, tuning=CONFIGURED)
    assert made.register(1, "c1", 0)
    return made


def give(book: Ledger, action: str, now_ms: int = 0, **more: object) -> int:
    number, refusal = book.take(now_ms, Order(action=action, who="me@here", **more))  # type: ignore[arg-type]
    assert not refusal
    return number


def controls(book: Ledger, now_ms: int = 0) -> Controls:
    told = book.orders.controls(now_ms)
    assert told is not None
    return told


def test_a_schedule_is_set_and_taken_away_and_what_is_not_named_stays_as_it_is() -> None:
    book = ledger()
    give(book, SET, settings={"schedule": "every 1h", "align_ms": 60_000})
    give(book, SET, settings={"schedule": ""})
    heard = controls(book)
    assert heard is not None and heard.tuning == replace(CONFIGURED, schedule="", align_ms=60_000)
    assert book.standing(0).control["in_force"]["transaction.align"] == 60_000


def test_before_the_first_order_nobody_is_told_anything() -> None:
    assert ledger().directive(0, "idle").controls is None


def test_what_is_set_adds_up_and_the_rest_stays_as_the_configuration_says() -> None:
    book = ledger()
    assert give(book, SET, settings={"interval_ms": 2_000}) == 1
    assert give(book, SET, settings={"max_records": 5, "interval_ms": 3_000}) == 2
    wanted = Tuning(interval_ms=3_000, write_timeout_ms=60_000, max_records=5, max_bytes=512_000_000)
    assert controls(book) == Controls(number=2, tuning=wanted)
    assert book.directive(0, "idle").controls == controls(book)
    said = book.standing(0).control
    assert said["settings"] == {"transaction.interval": 3_000, "transaction.max_records": 5}
    give(book, SET, settings={"interval_ms": 10_000, "max_records": 0})
    assert book.standing(0).control["settings"] == {}


def test_a_commit_is_wanted_until_the_coordinator_says_that_it_is_done() -> None:
    book = ledger()
    number = give(book, COMMIT)
    assert controls(book).commit == number
    book.settled(1, number)
    assert controls(book).commit == 0
    assert book.orders.settled == number


def test_of_several_commits_the_newest_is_wanted_as_long_as_somebody_waits_for_one_of_them() -> None:
    book = ledger()
    give(book, COMMIT, lives_ms=60_000)
    newest = give(book, COMMIT, lives_ms=1_000)
    assert controls(book, 59_999).commit == newest
    assert controls(book, 60_000).commit == 0


def test_a_commit_that_nobody_can_do_is_not_wanted_for_ever() -> None:
    book = ledger()
    give(book, COMMIT)
    assert controls(book, COMMIT_LIVES_MS - 1).commit
    assert not controls(book, COMMIT_LIVES_MS).commit


def test_a_commit_that_was_given_up_is_said_to_be_and_is_not_taken_for_done() -> None:
    """The coordinator, which is not told of it any more, says that everything up to there is done."""
    book = ledger()
    number = give(book, COMMIT)
    assert controls(book, COMMIT_LIVES_MS).commit == 0
    book.settled(1, number)
    assert book.standing(COMMIT_LIVES_MS).control["expired"] == [number]
    later = give(book, COMMIT, COMMIT_LIVES_MS)
    book.settled(1, later)
    assert controls(book, 3 * COMMIT_LIVES_MS).commit == 0
    assert book.orders.expired == (number,)


def test_a_commit_that_was_given_up_unseen_is_not_done_with_a_later_one() -> None:
    book = ledger()
    number = give(book, COMMIT, lives_ms=1_000)
    later = give(book, COMMIT, 5_000, lives_ms=1_000)
    assert (book.orders.expired, controls(book, 5_999).commit) == ((number,), later)


def test_a_commit_lives_no_longer_for_one_that_is_done() -> None:
    book = ledger()
    book.settled(1, give(book, COMMIT, lives_ms=600_000))
    give(book, COMMIT, 1_000, lives_ms=2_000)
    assert controls(book, 2_999).commit
    assert not controls(book, 3_000).commit


def test_a_stale_coordinator_and_one_that_says_too_much_are_not_believed() -> None:
    book = ledger()
    give(book, COMMIT)
    book.settled(7, 1)
    assert book.orders.settled == 0
    book.settled(1, 99)
    assert book.orders.settled == 1
    book.settled(1, 0)  # a new one, which has not heard of it
    assert book.orders.settled == 1


def test_a_pause_is_a_mode_until_it_is_resumed_and_the_first_to_pause_is_named() -> None:
    book = ledger()
    give(book, PAUSE, 5, why="maintenance")
    assert book.directive(10, "started").mode is RunMode.PAUSE
    give(book, PAUSE, 20)
    assert controls(book).pause == 1
    paused = book.standing(105).control["paused"]
    assert (paused["who"], paused["why"], paused["age_ms"]) == ("me@here", "maintenance", 100)
    give(book, RESUME)
    assert book.directive(110, "idle").mode is RunMode.RUN
    assert controls(book).pause == 0


def test_while_a_run_is_paused_nothing_begins_but_for_a_commit_or_a_drain() -> None:
    book = ledger()
    assert not book.paused(0)
    give(book, PAUSE)
    assert book.paused(0)
    number = give(book, COMMIT)
    assert not book.paused(0)
    book.settled(1, number)
    assert book.paused(0)
    book.request_stop("SIGTERM")
    assert not book.paused(0)


def test_a_pause_gives_up_the_commits_before_it_that_are_not_done() -> None:
    """Somebody has given one that cannot be done, and waits no more: it began transactions for an hour."""
    book = ledger()
    number = give(book, COMMIT, lives_ms=3_600_000)
    pause = give(book, PAUSE)
    assert controls(book) == Controls(number=pause, pause=pause, tuning=CONFIGURED)
    assert book.orders.expired == (number,)
    assert book.paused(0)
    later = give(book, COMMIT)
    assert not book.paused(0)
    give(book, PAUSE, why="whoever else wants it to stand still")
    assert book.orders.expired == (number, later)
    assert book.paused(0)


def test_a_commit_that_is_done_is_not_given_up_by_a_pause() -> None:
    book = ledger()
    book.settled(1, give(book, COMMIT))
    give(book, PAUSE)
    assert book.orders.expired == ()


def test_a_paused_run_can_be_stopped_or_halted() -> None:
    book = ledger()
    give(book, PAUSE)
    book.directive(0, "idle")
    give(book, STOP, why="for tonight")
    directive = book.directive(0, "idle")
    assert (directive.mode, directive.reason) == (RunMode.DRAIN, "me@here has stopped it: for tonight")
    book = ledger()
    give(book, PAUSE)
    book.directive(0, "idle")
    book.halt("the topic is gone")
    assert book.directive(0, "idle").mode is RunMode.HALT


def test_a_run_that_ends_takes_no_order_but_to_stop() -> None:
    book = ledger()
    book.request_stop("SIGTERM")
    for action in (SET, COMMIT, PAUSE, RESUME):
        assert book.take(0, Order(action=action)) == (0, "it ends already: SIGTERM")
    assert book.take(0, Order(action=STOP)) == (1, "")
    book.halt("poison")
    assert book.take(0, Order(action=COMMIT)) == (0, "it ends already: poison")


def test_a_crash_loop_ends_a_paused_run_as_well() -> None:
    book = ledger()
    give(book, PAUSE)
    book.directive(0, "idle")
    for number in range(5):
        book.died(number * 60_000, incarnation=f"w{number}", reason="killed", recovering=True)
    assert book.halted


def test_workers_that_are_lost_now_and_then_do_not_end_a_pause() -> None:
    """Nothing is committed in it that would count them anew."""
    book = ledger()
    give(book, PAUSE)
    book.directive(0, "idle")
    for number in range(20):
        book.died(number * 3_600_000, incarnation=f"w{number}", reason="preempted", recovering=True)
    assert not book.halted


def test_an_outage_does_not_count_while_the_run_is_paused_and_counts_anew_from_then_on() -> None:
    book = ledger()
    give(book, PAUSE)
    book.directive(0, "idle")
    for now_ms in range(0, 3_600_000, 30_000):
        assert book.unavailable(now_ms, "storage is away") > 0
    assert not book.halted
    give(book, RESUME)
    book.directive(3_600_000, "recovering")
    for now_ms in range(3_600_000, 4_200_000, 30_000):
        book.unavailable(now_ms, "storage is away")
    assert not book.halted
    book.unavailable(4_230_000, "storage is away")
    assert "storage is away" in book.halted


def test_only_so_many_orders_are_remembered_and_all_are_counted() -> None:
    orders = Orders(CONFIGURED)
    for _ in range(100):
        orders.take(0, Order(action=RESUME))
    said = orders.to_json(0)
    assert said["number"] == 100 and len(said["orders"]) == 20


def test_where_nothing_can_be_set_the_other_orders_are_taken() -> None:
    orders = Orders()
    orders.take(0, Order(action=SET, settings={"interval_ms": 1}))
    orders.take(0, Order(action=PAUSE))
    assert orders.controls(0) == Controls(number=2, pause=2)
    assert orders.to_json(0)["settings"] == {}
