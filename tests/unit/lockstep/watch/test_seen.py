"""What an observer takes for known, and for how long: answers, members, clocks, orders on the topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control_topic.controls import PAUSE, RESUME
from control_topic.messages import Control, Message, ParticipantReady
from lockstep.brokers.group import GroupMember
from lockstep.watch.page import page_document
from lockstep.watch.rates import STEP_MS, STEPS, Rates
from lockstep.watch.seen import BROKER, DRIVER, LAG_OLD_MS, LIVE_KEPT_MS, LIVE_OLD_MS, Seen, metrics_seen
from lockstep.watch.told import AHEAD_MS, Heard, dated
from tests.watched import NOW_MS, PIPELINE, Said, live, seen, settings, source_look


def begun() -> Said:
    said = Said()
    said.begin()
    said.whole()
    return said


def ordered(said: Said, action: str, number: int = 1) -> None:
    said.now_ms += 1_000
    said.say(Control(number=number, action=action, who="me"), sender="driver", who=f"d-{said.run}")


# --- what the run is to do ------------------------------------------------------------------------------


def test_where_no_driver_answers_the_topic_tells_that_a_run_is_paused_or_resumed() -> None:
    said = begun()
    found = seen(said, with_driver=False)
    ordered(said, PAUSE)
    assert found.mode() == "PAUSE"
    ordered(said, RESUME, 2)
    assert found.mode() == "RUN"


@pytest.mark.parametrize(("answered", "order", "mode"), [("PAUSE", RESUME, "RUN"), ("RUN", PAUSE, "PAUSE")])
def test_an_order_that_is_newer_than_the_drivers_last_answer_wins(
    answered: str, order: str, mode: str
) -> None:
    said = begun()
    ordered(said, PAUSE if order == RESUME else RESUME)
    found = seen(said)
    found.looked_at_driver(said.now_ms, live(said, mode=answered))
    found.looked_at_driver(said.now_ms + LIVE_KEPT_MS + 1, None)
    assert found.mode() == answered
    ordered(said, order, 2)
    assert found.mode() == mode


def test_an_order_does_not_undo_that_a_driver_said_it_was_to_stop() -> None:
    said = begun()
    found = seen(said)
    found.looked_at_driver(said.now_ms, live(said, mode="STOP"))
    found.looked_at_driver(said.now_ms + LIVE_KEPT_MS + 1, None)
    ordered(said, RESUME)
    assert found.mode() == "STOP"


# --- who is there ---------------------------------------------------------------------------------------


def test_a_strangers_consumer_keeps_no_run_alive() -> None:
    said = begun()
    found = seen(said, with_driver=False)
    guest = GroupMember(client="tool", host="h", instance="", partitions=())
    look = replace(source_look(said), members=(guest,))
    found.looked_at_broker(said.now_ms, look, *found.committed())
    assert found.status(said.now_ms).state == "stopped"
    assert metrics_seen(found, said.now_ms).members == 0


# --- how long an answer counts --------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [True, False], ids=["raises", "hangs"])
def test_a_driver_whose_looks_fail_or_hang_is_taken_for_gone(fails: bool) -> None:
    said = begun()
    found = seen(said)
    if fails:
        found.failed(DRIVER, "no answer")
    assert found.status(said.now_ms + LIVE_OLD_MS).live is not None
    later_ms = said.now_ms + LIVE_OLD_MS + 1
    assert found.status(later_ms).live is None
    assert metrics_seen(found, later_ms).live is None
    assert any("has not answered for 15 s" in one for one in page_document(found.page(later_ms))["problems"])


def test_the_age_of_the_last_commit_counts_on_between_answers() -> None:
    said = begun()
    found = seen(said)
    found.table = None
    before, after = (found.last_commit(said.now_ms + ms) for ms in (0, 7_000))
    assert before is not None and after is not None
    assert after.age_ms == before.age_ms + 7_000


def test_the_last_commit_is_of_the_epoch_that_committed_it_though_another_coordinator_is_there() -> None:
    said = begun()
    found = seen(said)
    found.table = None
    assert found.live is not None
    found.looked_at_driver(said.now_ms, {**found.live, "epoch": found.live["epoch"] + 1})
    last = found.last_commit(said.now_ms)
    assert last is not None and last.epoch == said.epoch


@pytest.mark.parametrize("fails", [True, False])
def test_lag_is_not_known_where_the_broker_was_not_read_lately(fails: bool) -> None:
    said = begun()
    found = seen(said)
    assert page_document(found.page(said.now_ms))["lag"]["records"] == 251_000
    if fails:
        found.failed(BROKER, "no answer")
    assert page_document(found.page(said.now_ms + LAG_OLD_MS - 1))["lag"]["records"] == 251_000
    later_ms = said.now_ms + LAG_OLD_MS
    made = page_document(found.page(later_ms))
    assert made["lag"] == {"records": None, "seconds": None} and made["freshness_ms"] is None
    assert made["source_partitions_total"] == 12, "what it said stays, with its age"


# --- clocks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_ms", [3_600_000, -3_600_000])
def test_a_clock_that_is_set_makes_nothing_older_or_younger(by_ms: int) -> None:
    said = begun()
    found = seen(said)
    before = page_document(found.page(said.now_ms + 2_000))
    found.clock_was_set(by_ms)
    after = page_document(found.page(said.now_ms + by_ms + 2_000))
    assert after["sources"] == {
        name: at_ms + by_ms for name, at_ms in before["sources"].items() if at_ms is not None
    }
    assert after["lag"] == before["lag"] and before["lag"]["seconds"] == 12
    assert after["problems"] == before["problems"] and found.live is not None


def test_a_message_of_times_to_come_is_of_now() -> None:
    said = Said()
    found = Seen(settings=settings(), asks_driver=True, history=said.history)
    found.as_of(NOW_MS)
    said.now_ms = NOW_MS + AHEAD_MS
    said.begin()
    assert said.history.run.fold.heard_ms == NOW_MS + AHEAD_MS, "the broker's clock may be ahead a little"
    said.now_ms = NOW_MS + 10**9
    said.say(ParticipantReady(), sender="worker-0")
    assert said.history.run.fold.heard_ms == NOW_MS


def test_where_nobody_knows_the_time_a_message_keeps_its_own() -> None:
    message = Message(
        pipeline=PIPELINE,
        run="r1",
        epoch=1,
        sender="worker-0",
        incarnation="w",
        sequence=0,
        sent_at_ms=0,
        body=ParticipantReady(),
    )
    heard = Heard(offset=1, time_ms=10**15, message=message)
    assert dated(heard, 0) is heard and dated(heard, NOW_MS).time_ms == NOW_MS


def test_commits_of_times_to_come_push_no_others_out_of_the_rates() -> None:
    rates = Rates()
    rates.add(NOW_MS, 5, 50, now_ms=NOW_MS)
    for minute in range(10, 10 * STEPS):
        rates.add(NOW_MS + minute * STEP_MS, 1, 1, now_ms=NOW_MS)
    records = rates.to_json(NOW_MS)["records"]
    assert isinstance(records, list) and records[-1] == 5
