"""The page's document: what it says, what it does not claim to know, and that hostile text is only text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from control_topic.causes import COMMIT_PARTS, DRAIN, REACHED_END
from control_topic.controls import COMMIT, PAUSE, SET, STOP, Tuning
from control_topic.messages import Halt, ParticipantLeave, SourcePartition
from lockstep.watch.counters import PARTS
from lockstep.watch.history import History, RunHeard
from lockstep.watch.looks import SourceLook, TableLook
from lockstep.watch.page import (
    PARTITIONS_SHOWN_MAX,
    TRANSACTIONS_SHOWN_MAX,
    control_entry,
    lag_entry,
    page_document,
    source_partition_entries,
)
from lockstep.watch.page_rows import story
from lockstep.watch.seen import BROKER, LIVE_KEPT_MS, TABLE, TOPIC, Seen
from lockstep.watch.topic_fold import Fold
from table.service.calls import Order
from table.service.orders import Orders
from tests.watched import (
    HOSTILE,
    PARTITIONS,
    PIPELINE,
    WORKERS,
    Said,
    live,
    rich,
    seen,
    settings,
    source_look,
    table_look,
)

TOP = {
    *("version", "at_ms", "pipeline", "state", "headline", "advice", "problems", "halted", "run", "run_ms"),
    *("epoch", "coordinator", "coordinators", "mode", "settings", "table", "last_commit", "freshness_ms"),
    *(
        "lag",
        "producer_transactions",
        "rates",
        "totals",
        "transactions",
        "source_partitions",
        "source_partitions_total",
        "workers",
    ),
    *("services", "troubles", "dead_letters", "sources", "control", "watermark", "next_end"),
}
TRANSACTION = {
    *("id", "instant", "run", "epoch", "phase", "started_ms", "end_ms", "written_ms", "ended_ms", "records"),
    *("files", "bytes", "end_reason", "cause", "reason", "took_ms", "workers", "late", "late_by_ms"),
    *("missing", "undecided"),
}
WORKER = {
    *("name", "state", "pid", "host", "age_ms", "source_partitions", "memory_bytes", "memory_max_bytes"),
    *("buffered_bytes", "seconds", "restarts", "last_death", "alarms"),
}


def document(found: Seen, now_ms: int) -> dict[str, Any]:
    return page_document(found.page(now_ms))


@pytest.fixture(scope="module")
def said() -> Said:
    return rich()


def unseen(said: Said | None = None) -> Seen:
    """Nothing was looked at yet."""
    return Seen(settings=settings(), asks_driver=True, history=said.history if said else History())


# --- what it says --------------------------------------------------------------------------------------


def test_the_document_has_the_agreed_names_and_is_json(said: Said) -> None:
    made = document(seen(said), said.now_ms)
    assert made.keys() == TOP
    assert all(one.keys() == TRANSACTION for one in made["transactions"])
    assert all(one.keys() == WORKER for one in made["workers"])
    assert json.loads(json.dumps(made)) == made


def test_it_concludes_as_the_status_does(said: Said) -> None:
    found = seen(said)
    made, status = document(found, said.now_ms), found.status(said.now_ms)
    assert (made["state"], made["headline"]) == (status.state, status.headline)
    assert made["lag"]["records"] == status.lag == 251_000
    assert made["epoch"] == status.epoch and list(status.advice) == made["advice"]


def test_every_transaction_says_how_it_went(said: Said) -> None:
    made = document(seen(said), said.now_ms)["transactions"]
    slow = made[-3]
    assert (slow["late"], slow["late_by_ms"], slow["phase"]) == ("worker-2", 4_200, "committed")
    assert slow["took_ms"].keys() == set(PARTS) and set(COMMIT_PARTS) < set(PARTS)
    assert [one["cause"] for one in made if one["phase"] == "aborted"] == [
        "worker_died",
        "coordinator_lost",
        "refused",
    ]
    assert made[-1]["phase"] == "writing" and made[-1]["ended_ms"] == 0


def test_the_open_transaction_says_whose_files_are_awaited() -> None:
    said = Said()
    said.begin()
    said.whole()
    opened = said.start()
    said.end(opened)
    said.report(opened, WORKERS[0], 5)
    made = document(seen(said), said.now_ms)["transactions"][-1]
    assert (made["phase"], made["missing"]) == ("ending", ["worker-1", "worker-2"])
    said.claim("coordinator@worker-1", 2)
    assert document(seen(said), said.now_ms)["transactions"][-1]["undecided"]


def test_a_story_has_who_wrote_what_and_every_message(said: Said) -> None:
    history = said.history
    slow = history.transactions(300)[-3]
    told = story(slow, history.names(slow.run))
    assert [writer["name"] for writer in told["writers"]] == list(WORKERS)
    assert sum(writer["records"] for writer in told["writers"]) == told["records"] == 500 * len(PARTITIONS)
    assert all(len(writer["ranges"]) == 4 for writer in told["writers"])
    types = [message["type"] for message in told["messages"]]
    assert types == ["START_COMMIT", "END_COMMIT", *["WRITE_STATUS"] * 3, "ACK_COMMIT"]
    assert told["rejects"] == 41


def test_source_partitions_come_the_worst_first_with_their_owner(said: Said) -> None:
    rows = source_partition_entries(seen(said).page(said.now_ms))
    assert [(one["topic"], one["partition"], one["lag"]) for one in rows[:2]] == [
        (PARTITIONS[7].topic, 1, 250_000),
        (PARTITIONS[0].topic, 0, 1_000),
    ]
    assert (rows[0]["owner"], rows[0]["lag_ms"]) == ("worker-1", 10_000)
    assert all(one["lag_ms"] == 0 for one in rows[2:])
    assert {one["owner"] for one in rows if one["partition"] % 3 == 2} == {None}, "it is dead"


def test_what_cannot_go_on_comes_before_what_is_far_behind(said: Said) -> None:
    found = seen(said)
    view = source_look(said, {PARTITIONS[1]: 10**9}).view
    gone = {place: end for place, end in view.end.items() if place != PARTITIONS[4]}
    odd = SourceLook(
        view=type(view)(
            cluster="",
            topics=view.topics,
            partitions=view.partitions,
            earliest=view.earliest,
            end=gone,
            group=view.group,
        ),
        members=(),
    )
    state, known = found.committed()
    found.looked_at_broker(said.now_ms, odd, state, known)
    rows = source_partition_entries(found.page(said.now_ms))
    assert (rows[0]["partition"], rows[0]["lag"]) == (PARTITIONS[4].number, None)
    assert rows[1]["lag"] == 10**9


def test_dead_letters_are_counted_by_reason_and_shown_without_their_values(said: Said) -> None:
    letters = document(seen(said), said.now_ms)["dead_letters"]
    assert letters["count"] == 41
    assert [one["count"] for one in letters["reasons"]] == [30, 11]
    assert letters["reasons"][1]["reason"] == "other"
    assert len(letters["sample"]) == 20
    assert letters["sample"][0].keys() == {"source_partition", "offset", "reason", "time_ms"}


def test_troubles_of_driver_and_topic_stand_together_newest_first(said: Said) -> None:
    troubles = document(seen(said), said.now_ms)["troubles"]
    assert {one["kind"] for one in troubles} == {"abort", "death", "coordinator", "outage", "alarm"}
    times = [one["time_ms"] for one in troubles]
    assert times == sorted(times, reverse=True)


def test_the_driver_repeats_itself_and_its_troubles_do_not(said: Said) -> None:
    found = seen(said)
    before = len(found.history.troubles())
    again = live(said, alarms=[f"consumer group {HOSTILE} is rebalancing (for 75 s)"])
    found.looked_at_driver(said.now_ms + 1_000, again)
    assert len(found.history.troubles()) == before
    again["failures"] = {**again["failures"], "deaths": [f"worker-2: killed by {HOSTILE} (4 times)"]}
    found.looked_at_driver(said.now_ms + 2_000, again)
    newest = found.history.troubles()[0]
    assert (newest.kind, newest.text) == ("death", f"worker-2: killed by {HOSTILE} (4 times)")


def test_orders_stand_newest_first_with_what_became_of_them(said: Said) -> None:
    orders = Orders(Tuning(interval_ms=2_000, write_timeout_ms=60_000))
    orders.take(1_000, Order(action=COMMIT, who="a", lives_ms=10))
    orders.take(2_000, Order(action=SET, settings={"interval_ms": 500}, who="b\n<b>", why="a\x1b[1m backlog"))
    orders.heard(2)
    orders.take(3_000, Order(action=PAUSE, who="c"))
    asked_ms = 9_000
    made = control_entry({"control": orders.to_json(asked_ms)}, said.now_ms)
    assert made is not None
    assert [(one["number"], one["action"], one["state"]) for one in made["orders"]] == [
        (3, "pause", "open"),
        (2, "set", "done"),
        (1, "commit", "given up"),
    ]
    assert made["orders"][1]["settings"] == {"transaction.interval": 500}
    assert (made["orders"][1]["who"], made["orders"][1]["why"]) == ("b <b>", "a\\x1b[1m backlog")
    assert made["orders"][0]["time_ms"] == said.now_ms - (asked_ms - 3_000)
    orders.take(4_000, Order(action=STOP, who="d"))
    orders.heard(9)
    stopping = control_entry({"control": orders.to_json(asked_ms)}, said.now_ms)
    assert stopping is not None
    assert [one["state"] for one in stopping["orders"]] == ["open", "done", "done", "given up"]
    assert (made["paused"], made["changed"]) == (True, ["transaction.interval"])
    assert made["settings"]["transaction.interval"] == 500
    assert made["settings"]["transaction.write_timeout"] == 60_000


def test_without_a_driver_or_with_an_older_one_what_it_does_not_tell_is_not_there(said: Said) -> None:
    assert control_entry(None, said.now_ms) is None
    assert control_entry({}, said.now_ms) is None
    older = control_entry({"control": {"number": 0, "settled": 0, "orders": []}}, said.now_ms)
    assert older == {"paused": False, "settings": {}, "changed": [], "orders": []}


def test_hostile_text_is_in_it_as_text_and_in_one_line() -> None:
    said = Said()
    said.begin()
    said.abort(said.start(), f"{HOSTILE}\n\x1b[31m\u202ered")
    made = document(seen(said), said.now_ms)
    assert made["transactions"][-1]["reason"] == f"{HOSTILE} \\x1b[31m\\u202ered"
    assert "\n" not in made["troubles"][-1]["text"]


def test_a_halt_of_megabytes_makes_no_page_of_megabytes() -> None:
    said = Said()
    said.begin()
    said.say(Halt(reason="\x1b" * 3_000_000), sender="driver")
    said.say(Halt(reason="\x1b" * 3_000_000))
    assert len(str(document(seen(said, with_driver=False), said.now_ms))) < 100_000


def test_a_page_is_bounded() -> None:
    many = tuple(SourcePartition("t", number) for number in range(PARTITIONS_SHOWN_MAX + 50))
    said = Said(partitions=many)
    said.begin()
    for _ in range(TRANSACTIONS_SHOWN_MAX + 10):
        said.acknowledge(said.start(), 1)
    made = document(seen(said), said.now_ms)
    assert len(made["transactions"]) == TRANSACTIONS_SHOWN_MAX
    assert len(made["source_partitions"]) == PARTITIONS_SHOWN_MAX
    assert made["source_partitions_total"] == len(many)


# --- what it does not claim to know ---------------------------------------------------------------------


def test_before_everything_was_looked_at_the_state_is_not_known_and_nothing_is_advised(said: Said) -> None:
    found = unseen(said)
    said.history.placed = ""
    for looked in ("nothing", "topic", "broker"):
        if looked == "topic":
            found.looked_at_topic(said.now_ms)
        if looked == "broker":
            state, known = found.committed()
            found.looked_at_broker(said.now_ms, source_look(said), state, known)
        made = document(found, said.now_ms)
        assert (made["state"], made["advice"]) == ("unknown", [])
        assert "Not everything was looked at yet" in made["problems"][-1]
        assert made["lag"] == {"records": None, "seconds": None}, "of a table that nobody has read"
        assert made["freshness_ms"] is None
    found.looked_at_table(said.now_ms, table_look(said), said.run)
    state, known = found.committed()
    found.looked_at_broker(said.now_ms, source_look(said), state, known)
    made = document(found, said.now_ms)
    assert made["state"] == "running" and made["lag"]["records"] == 0


def test_a_table_that_cannot_be_read_leaves_the_state_unknown_where_no_driver_answers(said: Said) -> None:
    found = unseen(said)
    found.looked_at_topic(said.now_ms)
    found.failed(TABLE, "the store does not answer")
    found.looked_at_broker(said.now_ms, source_look(said), None, False)
    made = document(found, said.now_ms)
    assert (made["state"], made["problems"][0]) == ("unknown", "the store does not answer")
    found.looked_at_driver(said.now_ms, live(said))
    assert document(found, said.now_ms)["state"] == "running", "the driver knows what is committed"


def test_a_table_without_commits_is_known_to_have_none() -> None:
    said = Said()
    said.begin()
    found = unseen(said)
    found.looked_at_topic(said.now_ms)
    found.looked_at_table(said.now_ms, TableLook(), "")
    state, known = found.committed()
    assert (state, known) == (None, True)
    found.looked_at_broker(said.now_ms, source_look(said), state, known)
    made = document(found, said.now_ms)
    assert made["state"] == "starting" and made["last_commit"] is None
    assert made["lag"] == {"records": None, "seconds": None}, "no offset yet is not up to date"


def test_what_was_looked_at_before_the_first_commit_is_not_taken_for_up_to_date_after_it() -> None:
    said = Said()
    said.begin()
    found = unseen(said)
    found.looked_at_topic(said.now_ms)
    found.looked_at_table(said.now_ms, TableLook(), "")
    found.looked_at_broker(said.now_ms, source_look(said), *found.committed())
    said.whole()
    found.looked_at_driver(said.now_ms, live(said))
    made = document(found, said.now_ms)
    assert (made["state"], made["lag"]["records"]) == ("running", None)


def test_a_broker_that_went_away_is_a_problem_and_what_it_said_stays_with_its_age(said: Said) -> None:
    found = seen(said, with_driver=False)
    assert found.failed(BROKER, "no answer") and not found.failed(BROKER, "no answer")
    later_ms = said.now_ms + 30_000
    made = document(found, later_ms)
    assert made["problems"] == ["no answer"] and made["sources"]["broker_ms"] == said.now_ms
    assert made["source_partitions_total"] == len(PARTITIONS)
    assert made["lag"]["seconds"] == 40.0, "the oldest record grows older"
    assert found.status(later_ms).lag is None
    found.looked_at_broker(later_ms, source_look(said), *found.committed())
    assert document(found, later_ms)["problems"] == []


def test_the_newest_commit_is_the_tables_own_where_all_mean_the_same(said: Said) -> None:
    found = seen(said)
    last = found.last_commit(said.now_ms)
    assert last is not None and (last.transaction, last.rows) == (said.last, 6_000)


def test_a_commit_that_was_heard_since_the_table_was_read_counts_until_it_is_read_again() -> None:
    said = Said()
    said.begin()
    said.whole()
    found = seen(said, with_driver=False)
    said.now_ms += 5_000
    newest = said.whole()
    last = found.last_commit(said.now_ms)
    assert last is not None and (last.transaction, last.age_ms) == (newest, 0)
    said.now_ms += 5_000
    older = table_look(said)
    assert older.instant is not None
    found.looked_at_table(said.now_ms, TableLook(exists=True, instant=older.instant, completed_ms=1), "r1")
    last = found.last_commit(said.now_ms)
    assert last is not None and last.age_ms == said.now_ms - 1, "the table knows of no newer one"


def test_a_driver_that_answered_and_does_not_any_more_is_a_problem(said: Said) -> None:
    found = seen(said)
    found.looked_at_driver(said.now_ms + 1_000, None)
    assert found.live is not None, "one late answer is no driver that is gone"
    gone_ms = said.now_ms + LIVE_KEPT_MS + 1_000
    found.looked_at_driver(gone_ms, None)
    made = document(found, gone_ms)
    assert made["problems"] == ["The driver of run r2 has not answered for 5 s."]
    assert made["workers"][0]["state"] == "unknown" and made["workers"][0]["memory_bytes"] is None
    assert made["services"] == [] and made["mode"] == "RUN"


def test_lag_is_as_old_as_the_oldest_that_is_known() -> None:
    def row(lag: int | None, lag_ms: int | None, verdict: str = "behind") -> dict[str, Any]:
        return {"lag": lag, "lag_ms": lag_ms, "verdict": verdict}

    assert lag_entry([row(0, 0), row(0, 0)]) == {"records": 0, "seconds": 0.0}
    assert lag_entry([row(5, None), row(3, 2_500)]) == {"records": 8, "seconds": 2.5}
    assert lag_entry([row(None, None, "no offset yet")]) == {"records": None, "seconds": None}
    assert lag_entry([row(5, None), row(0, 0)]) == {"records": 5, "seconds": None}
    assert lag_entry([row(0, 0), row(None, None, "not configured any more")])["seconds"] == 0.0
    assert lag_entry(None) == {"records": None, "seconds": None}


def test_the_table_is_read_again_where_a_run_came_up_and_where_only_the_topic_tells_of_a_commit() -> None:
    said = Said()
    said.begin()
    said.whole()
    found = seen(said, with_driver=False)
    assert not found.table_is_stale()
    said.whole()
    assert found.table_is_stale(), "anybody may write to the topic"
    found.looked_at_driver(said.now_ms, live(said))
    assert not found.table_is_stale(), "the driver knows"
    said.begin("r2", 2)
    assert found.table_is_stale()
    found.looked_at_table(said.now_ms, table_look(said), "r2")
    assert found.table_is_stale(), "the driver is another run's"
    found.looked_at_driver(said.now_ms, live(said))
    assert not found.table_is_stale()


# --- what a run is to do --------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [DRAIN, REACHED_END])
def test_a_run_that_ends_by_itself_is_told_from_one_that_died(reason: str) -> None:
    said = Said()
    said.begin()
    said.whole()
    found = unseen(said)
    assert found.mode() == "RUN"
    last = said.start()
    said.end(last, reason)
    assert found.mode() == "DRAIN"
    for worker in WORKERS:
        said.report(last, worker, 1)
    said.acknowledge(last, 1)
    assert found.mode() == "STOP"


def test_workers_that_all_left_in_peace_were_stopped_and_a_halt_is_one() -> None:
    said = Said()
    said.begin()
    said.whole()
    found = unseen(said)
    for worker in WORKERS:
        said.by(worker, ParticipantLeave(partitions=said._owned(worker)))
    assert found.mode() == "STOP"
    said.say(Halt(reason="poison"))
    assert found.mode() == "HALT"


def test_the_last_mode_of_a_driver_stays_with_its_run() -> None:
    said = Said()
    said.begin()
    said.whole()
    found = unseen(said)
    found.looked_at_driver(said.now_ms, live(said, mode="PAUSE"))
    found.looked_at_driver(said.now_ms + LIVE_KEPT_MS + 1, None)
    assert found.mode() == "PAUSE"
    said.begin("r2", 2)
    assert found.mode() == "RUN"


def test_nothing_heard_is_nothing_known() -> None:
    found = unseen()
    assert found.mode() is None
    assert RunHeard(fold=Fold(), whole=False).heard.commits == 0
    assert document(found, 1)["transactions"] == [] and TOPIC not in found.tried
    assert document(found, 1)["pipeline"] == PIPELINE
