"""What `lockstep status` makes of the control topic, the table, the log and the driver's own answer."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from control_topic.messages import (
    EPOCH_LEAD_MAX,
    EPOCH_MAX,
    AbortCommit,
    AckCommit,
    Body,
    Control,
    CoordinatorClaim,
    EndCommit,
    Halt,
    Message,
    ParticipantReady,
    Range,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from lockstep.driver.rundir import read_run_file, remove_run_file, write_run_file
from lockstep.offsets.standing import OffsetRow
from lockstep.watch.next_end import NextEnd
from lockstep.watch.status import LastCommit, Observed, Status, conclude
from lockstep.watch.status_text import to_text
from lockstep.watch.told import Heard
from lockstep.watch.topic_fold import Fold, fold
from table.port import ServiceProgress

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
NOW = 1_000_000_000
COORDINATOR, WORKER_0, WORKER_1, DRIVER = "coordinator@worker-0", "worker-0", "worker-1", "driver"


class Topic:
    """Messages, one every 100 ms, the last one `ended_ms_ago`."""

    def __init__(self) -> None:
        self._said: list[Heard] = []

    def say(self, sender: str, body: Body, *, epoch: int = 3, run: str = "r1") -> Topic:
        message = Message(
            pipeline="p",
            run=run,
            epoch=epoch,
            sender=sender,
            incarnation=f"i-{sender}",
            sequence=len(self._said),
            sent_at_ms=0,
            body=body,
        )
        self._said.append(Heard(offset=len(self._said), time_ms=0, message=message))
        return self

    def forged(self, marked: bool) -> Topic:
        """The last one is not of any run."""
        self._said[-1] = replace(self._said[-1], marked=marked)
        return self

    def heard(self, *, ended_ms_ago: int = 1_000) -> list[Heard]:
        count = len(self._said)
        return [
            replace(one, time_ms=NOW - ended_ms_ago - 100 * (count - 1 - number))
            for number, one in enumerate(self._said)
        ]


START = StartCommit(
    transaction="t1",
    instant="100",
    committed={P0: 0, P1: 0},
    writers={P0: f"i-{WORKER_0}", P1: f"i-{WORKER_1}"},
)
WROTE = WriteStatus(transaction="t1", ranges=(Range(partition=P0, start=0, next=1, records=1),))
ACK = AckCommit(transaction="t1", instant="100", committed={P0: 1, P1: 0})
LAST = LastCommit(transaction="t0", instant="099", kind="data", epoch=3, rows=1_234, age_ms=2_000)


def begun() -> Topic:
    topic = Topic().say(DRIVER, RunAnnounce(), epoch=0)
    return topic.say(COORDINATOR, CoordinatorClaim()).say(COORDINATOR, START)


def row(lag: int = 0, verdict: str = "ok") -> OffsetRow:
    return OffsetRow(
        topic="events",
        partition=0,
        committed=10,
        earliest=0,
        end=10 + lag,
        lag=lag,
        group=10,
        verdict="behind" if lag and verdict == "ok" else verdict,
    )


def status(topic: Topic | None = None, *, ended_ms_ago: int = 1_000, **more: Any) -> Status:
    known = fold(topic.heard(ended_ms_ago=ended_ms_ago)) if topic is not None else Fold()
    return conclude(replace(observed(), **{"fold": known, **more}))


def observed() -> Observed:
    return Observed(
        pipeline="p",
        now_ms=NOW,
        fold=Fold(),
        last_commit=LAST,
        offsets=[row()],
        members=2,
        interval_ms=10_000,
        write_timeout_ms=60_000,
    )


def shown(found: Status) -> str:
    with open(os.devnull, "w") as nowhere:
        console = Console(width=200, record=True, file=nowhere)
        console.print(to_text(found))
        return console.export_text()


def test_the_next_end_by_the_clock_is_shown_while_somebody_is_there_to_end_it() -> None:
    end = NextEnd(reason="schedule", time_ms=NOW + 60_000, in_ms=60_000, shown="tomorrow in Berlin")
    running = status(next_end=end)
    assert "by transaction.schedule at tomorrow in Berlin, in " in shown(running)
    assert running.to_json()["next_end"] == asdict(end)
    assert status(next_end=end, members=0).next_end is None


# --- the fold ------------------------------------------------------------------------------------------


def test_a_worker_that_says_how_far_its_files_are_is_shown_so_and_is_no_stall() -> None:
    said = WriteProgress(transaction="t1", records=9, files=3_201, size_bytes=1, steps=7_000)
    topic = begun().say(COORDINATOR, EndCommit(transaction="t1")).say(WORKER_1, said)
    opened = topic.heard()
    opened = [replace(one, time_ms=one.time_ms - 400_000) for one in opened[:-1]] + opened[-1:]
    found = status(fold=fold(opened))
    assert found.state == "running"
    assert "NOT answered: i-worker-0, worker-1 (3,201 files so far)" in shown(found)
    silent = [replace(one, time_ms=one.time_ms - 400_000) for one in opened]
    assert status(fold=fold(silent)).state == "stalled"


def test_the_open_transaction_says_who_has_answered_and_who_has_not() -> None:
    topic = begun().say(COORDINATOR, EndCommit(transaction="t1")).say(WORKER_0, WROTE)
    current = status(topic).transaction
    assert current is not None
    assert (current.id, current.instant, current.ended) == ("t1", "100", True)
    assert (current.answered, current.missing) == ((WORKER_0,), (f"i-{WORKER_1}",))
    assert current.age_ms == 1_200


def test_a_worker_is_named_once_it_has_been_heard() -> None:
    topic = begun().say(WORKER_1, ParticipantReady())
    current = status(topic).transaction
    assert current is not None and WORKER_1 in current.missing


@pytest.mark.parametrize("end", [ACK, AbortCommit(transaction="t1", reason="timeout")])
def test_a_transaction_that_ended_is_open_no_more(end: Body) -> None:
    found = status(begun().say(COORDINATOR, end))
    assert found.transaction is None
    assert found.aborts == isinstance(end, AbortCommit)


def test_the_end_of_another_transaction_changes_nothing() -> None:
    topic = begun().say(COORDINATOR, replace(ACK, transaction="t0"))
    assert status(topic).transaction is not None


def test_a_repeated_start_does_not_make_the_transaction_younger() -> None:
    once, twice = begun(), begun().say(COORDINATOR, START)
    first, second = status(once).transaction, status(twice).transaction
    assert first is not None and second is not None
    assert second.age_ms == first.age_ms + 100


def test_a_stale_coordinator_changes_nothing() -> None:
    topic = begun().say("coordinator@worker-9", AbortCommit(transaction="t1", reason="late"), epoch=2)
    found = status(topic)
    assert found.transaction is not None
    assert (found.coordinator, found.epoch) == (COORDINATOR, 3)


def test_a_newer_coordinator_takes_over_and_what_was_open_is_not() -> None:
    topic = begun().say("coordinator@worker-1", CoordinatorClaim(), epoch=4)
    found = status(topic)
    assert (found.coordinator, found.epoch, found.transaction) == ("coordinator@worker-1", 4, None)


def test_the_highest_epoch_is_known_from_the_table_where_the_topic_is_gone() -> None:
    assert status(None, last_commit=replace(LAST, epoch=9)).epoch == 9


# --- the state -----------------------------------------------------------------------------------------


def test_a_pipeline_that_commits_is_running() -> None:
    found = status(begun(), offsets=[row(40)])
    assert (found.state, found.lag) == ("running", 40)
    assert shown(found).startswith("RUNNING: p, last commit 2.0 s ago, 40 offsets behind")
    assert found.advice == ()


def test_a_pipeline_with_nothing_to_do_is_idle_and_well() -> None:
    found = status(begun().say(COORDINATOR, ACK), ended_ms_ago=600_000, members=2)
    assert found.state == "idle"
    assert "up to date" in shown(found)


def test_what_a_producer_has_not_committed_yet_is_told_though_there_is_nothing_to_do() -> None:
    found = status(offsets=[replace(row(), undecided=900)])
    assert found.state == "idle"
    assert "up to date, 900 in open producer transactions" in shown(found)
    assert "events:0 from 10" in shown(found)


def test_a_transaction_that_does_not_end_is_a_stall_and_names_whom_it_waits_for() -> None:
    topic = begun().say(COORDINATOR, EndCommit(transaction="t1")).say(WORKER_0, WROTE)
    found = status(topic, ended_ms_ago=120_000, members=2, offsets=[row(40)])
    assert found.state == "stalled"
    assert f"Waiting for i-{WORKER_1}" in found.advice[0]
    assert shown(found).startswith("STALLED: p")


def test_records_that_wait_without_a_transaction_are_a_stall() -> None:
    topic = begun().say(COORDINATOR, ACK).say(WORKER_0, ParticipantReady())
    found = status(topic, ended_ms_ago=120_000, members=2, offsets=[row(40)])
    assert found.state == "stalled"
    fresh = status(topic, ended_ms_ago=2_000, members=2, offsets=[row(40)])
    assert fresh.state == "running"


def test_a_run_that_has_only_just_come_up_is_starting() -> None:
    topic = Topic().say(DRIVER, RunAnnounce(), epoch=0)
    assert status(topic, last_commit=None, offsets=[row(40)], members=0).state == "starting"
    assert status(topic, last_commit=None, ended_ms_ago=200_000, members=1).state == "stalled"


def test_where_nobody_was_heard_it_is_not_running() -> None:
    found = status(begun(), ended_ms_ago=60_000, offsets=[row(40)], members=0)
    assert (found.state, found.transaction, found.coordinator) == ("stopped", None, "")
    assert "lockstep run" in found.advice[0]
    assert shown(found).startswith("NOT RUNNING: p")


def test_a_run_that_has_just_left_is_not_running_whatever_was_said_last() -> None:
    topic = begun().say(COORDINATOR, ACK)
    assert status(topic, members=0).state == "stopped"
    assert status(topic, members=None, offsets=None).state in ("idle", "running")


def test_where_nothing_ever_was_it_has_never_run() -> None:
    assert status(None, last_commit=None, members=0).state == "never"


FORGED_EPOCHS = (4, EPOCH_LEAD_MAX, EPOCH_LEAD_MAX + 4, 2**63 - 1, EPOCH_MAX)


@pytest.mark.parametrize("epoch", FORGED_EPOCHS)
@pytest.mark.parametrize("marked", [True, False])
def test_no_forged_claim_hides_a_halt(epoch: int, marked: bool) -> None:
    topic = begun()
    topic.say(COORDINATOR, CoordinatorClaim(), epoch=epoch)
    topic.forged(marked)
    found = status(topic.say(COORDINATOR, Halt(reason="poison")))
    assert found.state == "halted"
    after = begun().say(COORDINATOR, Halt(reason="poison")).say(COORDINATOR, CoordinatorClaim(), epoch=epoch)
    after.forged(marked)
    assert status(after).state == "halted"


def test_no_forged_announcement_hides_the_halt_of_the_run_that_has_the_place() -> None:
    for run in ("forged", "r1"):
        topic = begun().say(COORDINATOR, Halt(reason="poison"))
        topic.say(DRIVER, RunAnnounce(table_epoch=9, started_at_ms=2**62), epoch=0, run=run)
        found = conclude(replace(observed(), fold=fold(topic.heard(), placed="r1", table_epoch=3)))
        assert (found.state, found.run) == ("halted", "r1")


def test_messages_that_are_certainly_no_runs_are_counted_and_ignored() -> None:
    topic = begun().say(COORDINATOR, CoordinatorClaim(), epoch=EPOCH_MAX)
    topic.say(COORDINATOR, Halt(reason="forged")).forged(marked=False)
    known = fold(topic.heard(), placed="r1", table_epoch=3)
    assert (known.ignored, known.epoch, known.halted) == (2, 3, None)


def test_what_an_earlier_run_says_is_no_word_of_the_one_that_has_the_place() -> None:
    topic = begun().say(COORDINATOR, Halt(reason="poison"))
    known = fold(topic.heard(), placed="r2", table_epoch=3)
    assert (known.run, known.halted, known.open_transaction) == ("r2", None, None)


def test_a_halt_is_told_with_its_reason() -> None:
    topic = begun().say(COORDINATOR, Halt(reason="events:0 at offset 7: not JSON"))
    found = status(topic, ended_ms_ago=3_600_000)
    assert found.state == "halted"
    assert found.halted == {"reason": "events:0 at offset 7: not JSON", "time": NOW - 3_600_000}
    text = shown(found)
    assert text.startswith("HALTED: p")
    assert "not JSON" in text
    assert "this halt is what the control topic says" in found.advice[1]


def test_a_later_run_is_not_halted_by_an_earlier_one() -> None:
    topic = begun().say(COORDINATOR, Halt(reason="poison"))
    topic.say(DRIVER, RunAnnounce(), epoch=0, run="r2")
    assert status(topic).halted is None
    topic.say("coordinator@worker-1", Halt(reason="late words of the old run"), run="r1", epoch=3)
    assert status(topic).halted is None


def test_aborts_in_a_row_are_told_with_the_last_reason() -> None:
    topic = begun().say(COORDINATOR, AbortCommit(transaction="t1", reason="first"))
    topic.say(COORDINATOR, replace(START, transaction="t2"))
    topic.say(COORDINATOR, AbortCommit(transaction="t2", reason="worker-1 died"))
    found = status(topic, offsets=[row(5)])
    assert any("2 transactions in a row" in line and "worker-1 died" in line for line in found.advice)


def test_a_broker_that_does_not_answer_hides_neither_table_nor_driver() -> None:
    found = status(None, offsets=None, members=None, problems=("the broker is away",))
    assert (found.lag, found.last_commit) == (None, LAST)
    assert "the broker is away" in shown(found)


def test_where_neither_driver_nor_broker_answers_nobody_says_that_no_run_is_alive() -> None:
    found = status(None, offsets=None, members=None)
    assert found.state == "unknown"
    assert "NOT KNOWN: p" in shown(found)
    assert "See to the broker first" in shown(found)
    assert status(None, offsets=None, members=None, live=live()).state != "unknown"


def test_partitions_that_cannot_go_on_come_with_what_to_do() -> None:
    found = status(begun(), offsets=[row(0, "other topic id")])
    assert any("--adopt" in line for line in found.advice)
    assert "other topic id" in shown(found)


# --- the driver's own answer ---------------------------------------------------------------------------


def live(**more: Any) -> dict[str, Any]:
    return {
        "run": "r9",
        "epoch": 12,
        "mode": "RUN",
        "halted": None,
        "commits": 5,
        "rows": 500,
        "workers": [
            {
                "slot": 0,
                "state": "writing",
                "partitions": ["events:0"],
                "buffered_bytes": 1_000,
                "pid": 42,
                "host": "h",
                "poison": None,
            },
            {
                "slot": 1,
                "state": "dead",
                "partitions": [],
                "buffered_bytes": 0,
                "pid": 43,
                "host": "h",
                "poison": None,
            },
        ],
        "coordinator": {
            "epoch": 12,
            "state": "started",
            "transaction": "t7",
            "instant": "107",
            "started_at_ms": NOW - 4_000,
            "answered": [],
            "missing": [f"i-{WORKER_0}"],
            "ignored": 0,
        },
        "failures": {"outage_ms": 0, "reasons": []},
        "table": {"busy_with": "commit", "queued": 0},
        **more,
    }


def test_what_the_driver_says_is_fresher_than_the_topic() -> None:
    found = status(begun(), live=live())
    assert (found.run, found.epoch, found.workers) == ("r9", 12, 1)
    assert found.transaction is not None
    assert (found.transaction.id, found.transaction.age_ms) == ("t7", 4_000)
    assert found.transaction.missing == (f"i-{WORKER_0}",)
    text = shown(found)
    for part in ("5 commits, 500 rows,", "worker-0", "busy with commit"):
        assert part in text


def test_records_that_were_rejected_are_shown_where_there_are_some() -> None:
    assert "5 commits, 500 rows, 2,500 rejected," in shown(status(begun(), live=live(rejects=2_500)))
    assert "rejected" not in shown(status(begun(), live=live(rejects=0)))


def test_how_far_the_table_is_complete_is_said_and_what_it_waits_for() -> None:
    known: dict[str, Any] = {
        "of": "created_at",
        "at_ms": NOW - 90_000,
        "held_by": "events:3",
        "source_partitions": 4,
        "idle": 1,
    }
    found = status(begun(), watermark=known, live=live(late=12, absurd=3))
    assert found.watermark is not None and found.watermark["behind_ms"] == 90_000
    text = " ".join(shown(found).split())
    assert "by created_at, 1 m 30 s behind; waits for events:3, 1 of 4 are idle" in text
    assert ", 12 late, 3 of an absurd time, mode run" in text
    nobody = shown(status(begun(), watermark={**known, "at_ms": None}))
    assert "nobody knows yet how far by created_at; waits for events:3" in nobody
    assert "every source partition is idle" in shown(status(begun(), watermark={**known, "held_by": None}))
    assert "complete" not in shown(status(begun()))


def test_what_does_not_go_on_in_a_worker_is_for_the_operator_to_know() -> None:
    workers = live()["workers"]
    workers[0]["alarms"] = ["events:0 at offset 7: nothing of it could be read for 30 s"]
    found = status(begun(), live=live(workers=workers))
    assert "worker-0: events:0 at offset 7: nothing of it could be read for 30 s" in found.advice
    assert "→ worker-0: events:0 at offset 7" in shown(found)


def service(**more: Any) -> dict[str, Any]:
    idle = ServiceProgress(
        name="compaction",
        mode="async",
        every=10,
        commits=7,
        running_ms=None,
        doing="",
        done=0,
        last_instant="",
        last_what="",
        last_took_ms=0,
        last_age_ms=None,
        failures=0,
        problem="",
    )
    return {**asdict(idle), **more}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({}, "compaction    async, 7 of 10 commits"),
        ({"running_ms": 12_000, "doing": "16 file groups"}, "running for 12.0 s (16 file groups)"),
        (
            {
                "last_instant": "107",
                "last_what": "4 file groups",
                "last_took_ms": 3_200,
                "last_age_ms": 60_000,
            },
            "last: instant 107, 4 file groups, took 3.2 s, 1 m 00 s ago",
        ),
        ({"failures": 3, "problem": "the disk is full"}, "FAILED 3 times: the disk is full"),
        ({"problem": "a plan is somebody else's"}, "a plan is somebody else's"),
    ],
)
def test_a_service_says_how_far_it_is_what_it_did_and_why_it_failed(said: dict[str, Any], line: str) -> None:
    assert line in shown(status(begun(), live=live(services=[service(**said)])))


def test_a_driver_that_answers_is_alive_though_the_topic_is_silent() -> None:
    assert status(None, live=live(coordinator=None), members=0).state == "idle"


def test_a_driver_that_sees_source_partitions_unread_has_nothing_of_having_nothing_to_do() -> None:
    told = "events:0 is read by no worker: consumer group p is rebalancing (for 40 s)"
    found = status(begun().say(COORDINATOR, ACK), live=live(coordinator=None, alarms=[told], stands=True))
    assert (found.state, found.lag) == ("stalled", 0)
    assert found.advice[0] == told
    assert not any("committed for too long" in line for line in found.advice)
    assert shown(found).startswith("STALLED: p")


def test_an_alarm_that_keeps_nobody_from_reading_is_no_stall() -> None:
    told = "worker-1 was started 61 s ago and has not reported"
    found = status(None, live=live(coordinator=None, alarms=[told], stands=False))
    assert (found.state, found.advice[0]) == ("idle", told)


def test_a_run_of_which_no_worker_reads_a_source_partition_has_something_to_do_at_once() -> None:
    workers = live()["workers"]
    workers[0]["partitions"] = []
    found = status(begun().say(COORDINATOR, ACK), live=live(coordinator=None, workers=workers))
    assert found.state == "running"
    assert "nothing to do" not in shown(found)


@pytest.mark.parametrize(("age_ms", "state"), [(2_000, "running"), (400_000, "stalled")])
def test_where_the_broker_is_away_nobody_says_that_there_is_nothing_to_do(age_ms: int, state: str) -> None:
    last = replace(LAST, age_ms=age_ms)
    away = {"offsets": None, "members": None, "problems": ("the broker is away",), "last_commit": last}
    found = status(None, live=live(coordinator=None), **away)
    assert (found.state, found.lag) == (state, None)
    assert "nothing to do" not in shown(found)


def test_a_driver_that_halts_says_so_before_the_topic_does() -> None:
    found = status(begun(), live=live(halted="poison"))
    assert found.halted is not None and found.halted["reason"] == "poison"


def test_the_json_form_has_the_contracts_keys_and_can_be_written() -> None:
    document = json.loads(json.dumps(status(begun(), live=live()).to_json()))
    assert {"coordinator", "epoch", "transaction", "last_commit", "lag", "halted"} <= set(document)
    assert document["lag"] == 0
    assert document["last_commit"]["age_ms"] == 2_000


# --- the run file --------------------------------------------------------------------------------------


@pytest.fixture
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def files(folder: Path) -> Sequence[Path]:
    return list(folder.iterdir())


def test_a_run_file_is_its_owners_alone_and_read_back(state_folder: Path) -> None:
    path = write_run_file("p/../q", run="r1", address="127.0.0.1:1", token="sesame")
    assert path.parent == state_folder
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert files(state_folder) == [path]
    entry = read_run_file("p/../q")
    assert entry is not None
    assert (entry.run, entry.address, entry.token, entry.pid) == ("r1", "127.0.0.1:1", "sesame", os.getpid())
    assert "sesame" not in repr(entry)


def test_only_its_own_run_takes_a_run_file_away(state_folder: Path) -> None:
    write_run_file("p", run="r1", address="a", token="t")
    write_run_file("p", run="r2", address="b", token="t")
    remove_run_file("p", run="r1")
    entry = read_run_file("p")
    assert entry is not None and entry.run == "r2"
    remove_run_file("p", run="r2")
    assert read_run_file("p") is None


def test_pipelines_whose_names_look_alike_have_files_of_their_own(state_folder: Path) -> None:
    write_run_file("a b", run="r1", address="a", token="t")
    write_run_file("a_b", run="r2", address="b", token="t")
    first, second = read_run_file("a b"), read_run_file("a_b")
    assert first is not None and second is not None
    assert (first.run, second.run) == ("r1", "r2")


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"pipeline": "p"}', "\x00"])
def test_a_damaged_run_file_is_as_good_as_none(state_folder: Path, damage: str) -> None:
    path = write_run_file("p", run="r1", address="a", token="t")
    path.write_text(damage)
    assert read_run_file("p") is None


# --- a run that is paused ------------------------------------------------------------------------------


def paused(**more: Any) -> dict[str, Any]:
    said = {"number": 1, "who": "me@here", "why": "a <b>disk</b>", "age_ms": 400_000, "action": "pause"}
    return {"paused": said, "settings": {}, "number": 1, "settled": 1, **more}


def test_a_run_that_is_paused_is_not_stalled_and_says_by_whom_and_what_to_do() -> None:
    stands = {"last_commit": replace(LAST, age_ms=400_000), "offsets": [row(lag=5)]}
    topic = begun().say(COORDINATOR, ACK).say(WORKER_0, ParticipantReady())
    assert status(topic, ended_ms_ago=400_000, live=live(coordinator=None), **stands).state == "stalled"
    found = status(
        topic, ended_ms_ago=400_000, live=live(coordinator=None, mode="PAUSE", control=paused()), **stands
    )
    assert found.state == "idle"
    assert found.advice[0] == "Paused by me@here: a <b>disk</b>. `lockstep resume` lets it go on."
    assert shown(found).startswith("PAUSED: p")
    assert found.to_json()["paused"] == {"who": "me@here", "why": "a <b>disk</b>", "age_ms": 400_000}


def test_a_pause_is_known_from_the_topic_where_the_driver_does_not_answer() -> None:
    topic = begun().say(COORDINATOR, ACK).say(DRIVER, Control(number=1, action="pause", who="me"), epoch=0)
    stands = {"last_commit": replace(LAST, age_ms=400_000), "offsets": [row(lag=5)]}
    found = status(topic, ended_ms_ago=400_000, **stands)
    assert (found.state, found.paused) == ("idle", {"who": "me", "why": None, "age_ms": 400_000})
    resumed = topic.say(DRIVER, Control(number=2, action="resume", who="me"), epoch=0)
    assert status(resumed, ended_ms_ago=400_000, **stands).paused is None
    assert status(topic.say(DRIVER, RunAnnounce(started_at_ms=5), epoch=0, run="r2")).paused is None


def test_a_run_that_ends_while_it_is_paused_is_paused_no_more() -> None:
    assert status(None, live=live(coordinator=None, control=paused(), stopping="SIGTERM")).paused is None


def test_source_partitions_that_nobody_reads_are_a_stall_in_a_paused_run_as_well() -> None:
    found = status(None, live=live(coordinator=None, control=paused(), stands=True, alarms=["unread"]))
    assert found.state == "stalled"


def test_what_was_set_is_shown_and_patience_goes_by_it() -> None:
    stands = {"last_commit": replace(LAST, age_ms=400_000), "offsets": [row(lag=5)]}
    settings = {"transaction.interval": 600_000, "transaction.max_records": 0, "of.a.newer.version": 1}
    now = live(coordinator=None, control=paused(paused=None, settings=settings))
    found = status(begun().say(COORDINATOR, ACK), ended_ms_ago=400_000, live=now, **stands)
    assert found.state == "running"
    line = "transaction.interval = 10m, transaction.max_records = no limit (until this run ends)"
    assert line in shown(found)


def test_a_transaction_that_came_to_nothing_is_no_trouble() -> None:
    topic = begun()
    for _ in range(3):
        nothing = AbortCommit(transaction="t1", reason="nothing to commit", cause="nothing_to_commit")
        topic.say(COORDINATOR, nothing)
    assert status(topic).aborts == 0
