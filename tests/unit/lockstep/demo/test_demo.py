"""The demo's pure pieces: its events, what it reads out of the control topic, its kills, how it looks."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from rich.console import Console

from control_topic.messages import (
    AbortCommit,
    CoordinatorClaim,
    ParticipantJoin,
)
from lockstep.commands.demo import check_interval
from lockstep.commands.demo import command as demo_command
from lockstep.demo import avro
from lockstep.demo.kills import Kill, KillPlan, two_kills
from lockstep.demo.proof import Counted, Counts
from lockstep.demo.records import KEY, PARTITION_BY, SCHEMA, event, records, spread
from lockstep.demo.report import DemoReport, Ran
from lockstep.demo.telling import sentence
from lockstep.demo.view import LineView, LiveView, Scene, make_view
from lockstep.output import ConsoleOutput, JsonOutput
from participant.records.avro.format import AvroFormat
from participant.records.json.format import JsonFormat
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests.heard_topic import P0, P1, T1, T2, W1, Topic, announced


@pytest.fixture
def topic() -> Topic:
    return announced()


# --- events -----------------------------------------------------------------------------------


def test_an_event_is_json_with_every_field_of_the_schema_and_about_160_bytes() -> None:
    fields = parse_ddl(SCHEMA).names
    sizes = []
    for number in (0, 1, 999_999, 123_456_789):
        value = event(number)
        sizes.append(len(value))
        assert list(json.loads(value)) == fields
    assert {*KEY, PARTITION_BY} <= set(fields)
    assert all(145 <= size <= 180 for size in sizes)


def test_the_same_number_gives_the_same_event_and_another_number_another_id() -> None:
    assert event(7) == event(7)
    ids = {json.loads(event(number))["event_id"] for number in range(1_000)}
    assert len(ids) == 1_000


def test_an_event_in_avro_is_the_row_that_it_is_in_json() -> None:
    schema, numbers = parse_ddl(SCHEMA), [0, 1, 2, 86_399, 999_999, 123_456_789]
    batches = [
        RawBatch(
            partition=P0,
            offsets=np.arange(len(numbers)),
            timestamps_ms=np.arange(len(numbers)),
            values=Values.of(values),
        )
        for values in ([event(one) for one in numbers], [avro.value(one, 7)[5:] for one in numbers])
    ]
    given = RecordSpec(format="avro", framing="none", schema_text=avro.SCHEMA_TEXT)
    in_json = JsonFormat().values(schema).decode(batches[0])
    in_avro = AvroFormat(given).values(schema).decode(batches[1])
    assert in_avro.table.to_pylist() == in_json.table.to_pylist() and not in_avro.rejects
    assert avro.value(0, 7).startswith(b"\0\0\0\0\7")
    assert [one.value for one in avro.records(3, 2, 7)] == [avro.value(number, 7) for number in range(3)]


def test_events_are_spread_over_all_source_partitions_and_none_is_forgotten() -> None:
    assert spread(10, 4) == {0: 3, 1: 3, 2: 2, 3: 2}
    for events in (0, 1, 5, 1_000_003):
        dealt = spread(events, 4)
        assert sum(dealt.values()) == events
        assert dealt == {p: len(range(p, events, 4)) for p in range(4)}
    assert Counter(one.source_partition for one in records(11, 4)) == spread(11, 4)


# --- what is told ---------------------------------------------------------------------------------


def test_an_abort_is_told_with_its_reason(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(AbortCommit(transaction=T1, reason="storage is away"))
    assert any("storage is away" in sentence for sentence in told_of(topic))


@pytest.mark.parametrize("who", [W1, f"worker-1 ({W1})"])
def test_an_abort_names_the_worker_and_not_its_incarnation(topic: Topic, who: str) -> None:
    topic.send(ParticipantJoin(partitions=(P1,)), sender="worker-1", who=W1)
    topic.opened(T1, {P0: 0})
    topic.send(AbortCommit(transaction=T1, reason=f"{who} is gone"))
    assert told_of(topic)[-1] == f"transaction {T1[:8]} is aborted: worker-1 is gone"


def test_a_join_that_is_repeated_is_told_once_and_a_claim_too(topic: Topic) -> None:
    before = len(topic.news)
    for _ in range(3):
        topic.send(ParticipantJoin(partitions=(P0, P1)), sender="worker-1", who=W1)
        topic.send(CoordinatorClaim(), epoch=1)
    assert told_of(topic)[before:] == [
        "worker-1 joins with source partitions events:0, events:1",
        "coordinator@worker-0 now decides what is committed, in epoch 1: a coordinator of a lower one is "
        "obeyed no more",
    ]
    topic.send(ParticipantJoin(partitions=(P0,)), sender="worker-1", who=W1)
    assert told_of(topic)[-1] == "worker-1 now with source partition events:0"


def told_of(topic: Topic) -> list[str]:
    return [sentence(one, topic.known) for one in topic.news]


# --- kills --------------------------------------------------------------------------------------


def workers(*, dead: int | None = None) -> list[dict[str, Any]]:
    return [
        {
            "slot": slot,
            "pid": 100 + slot,
            "state": "dead" if slot == dead else "writing",
            "partitions": ["events:0"],
            "coordinator": slot == 0,
        }
        for slot in range(2)
    ]


def test_first_a_worker_dies_that_only_writes_and_later_the_coordinators() -> None:
    plan = KillPlan(2, two_kills())
    assert plan.due(fraction=0.1, writing=True, workers=workers()) is None
    assert plan.due(fraction=0.3, writing=False, workers=workers()) is None
    assert plan.due(fraction=0.3, writing=True, workers=workers(dead=0)) is None
    first = plan.due(fraction=0.3, writing=True, workers=workers())
    assert first is not None and first[1] == 101
    first[0].done_ms = 1_000
    assert plan.due(fraction=0.9, writing=True, workers=workers()) is None, "commits have not gone on yet"
    assert plan.committed(900) is None, "that commit was before the kill"
    assert plan.committed(4_000) is first[0]
    assert first[0].outage_ms == 3_000
    second = plan.due(fraction=0.9, writing=True, workers=workers())
    assert second is not None and second[1] == 100
    assert not plan.is_over


# --- how it looks -------------------------------------------------------------------------------


def scene_of(topic: Topic) -> Scene:
    topic.opened(T1, {P0: 0, P1: 0})
    topic.reported(T1, P0, 0, 50_000)
    topic.acknowledged(T1, {P0: 50_000, P1: 0})
    topic.opened(T2, {P0: 50_000, P1: 0})
    topic.send(AbortCommit(transaction=T2, reason="worker-1: its process died"))
    return Scene(
        title="100,000 events",
        known=topic.known,
        began_ms=0,
        wanted={P0: 50_000, P1: 50_000},
        sent={P0: 50_000, P1: 20_000},
        workers=workers(dead=1),
    )


def test_the_live_view_shows_progress_workers_transactions_and_what_was_said(topic: Topic) -> None:
    screen = io.StringIO()
    view = LiveView(Console(file=screen, width=120, height=40, force_terminal=True, color_system=None))
    view.say("SIGKILL for worker-1")
    view.show(scene_of(topic))
    view.close()
    shown = screen.getvalue()
    for expected in ("50,000", "worker-1", "dead", T1[:8], "committed", "aborted", "SIGKILL for worker-1"):
        assert expected in shown


def test_without_a_terminal_every_commit_is_a_line_and_told_once(topic: Topic) -> None:
    stream = io.StringIO()
    view = make_view(ConsoleOutput(stream))
    assert isinstance(view, LineView)
    scene = scene_of(topic)
    view.show(scene)
    view.show(scene)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1
    assert "50,000 records in 1 files" in lines[0] and "50,000 of 100,000" in lines[0]


def test_in_the_json_form_only_the_report_is_written() -> None:
    stream = io.StringIO()
    view = make_view(JsonOutput(stream))
    view.say("something")
    view.close()
    assert stream.getvalue() == ""


# --- the report ---------------------------------------------------------------------------------


def report(*, rows: int = 10, verified: bool = True) -> DemoReport:
    kill = Kill(victim="a worker", coordinator=False, at_fraction=0.2, worker="worker-1", pid=7)
    kill.done_ms, kill.resumed_ms = 1_000, 4_500
    ran = Ran(
        started_as="demo",
        records=10,
        produced_bytes=1_600,
        running_ms=2_000,
        total_ms=9_000,
        commits=(),
        aborts=(),
        epoch=2,
        kills=(kill, Kill(victim="the coordinator's worker", coordinator=True, at_fraction=0.6)),
        kept=None,
        port=9092,
        lake_port=0,
    )
    finding = Counted(
        records=10,
        counts=(Counts(reader="Spark SQL", rows=rows, offsets=10, events=10),),
        files=3,
        verdict={"exact": verified, "rows": rows, "missing": 0, "duplicated": 1 - verified, "unexpected": 0},
    )
    return DemoReport(ran=ran, finding=finding)


def told(what: DemoReport) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(what.to_text())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_is_exact_only_where_every_reader_says_so() -> None:
    assert report().exact
    assert not report(rows=11).exact
    assert not report(verified=False).exact
    assert "NOT exact" in told(report(rows=11))
    assert "1 duplicated" in told(report(verified=False))


def test_the_report_says_how_long_each_kill_took_and_which_did_not_happen() -> None:
    text = told(report())
    assert "worker-1 (process 7): the next commit 3.5 s later" in text
    assert "not killed" in text
    document = json.loads(json.dumps(report().to_json()))
    assert document["kills"][0]["outage_ms"] == 3_500
    assert document["exact"] is True


@pytest.mark.parametrize("interval", ["2", "1m", "50ms", "soon"])
def test_an_interval_that_makes_no_demo_is_refused_before_anything_starts(interval: str) -> None:
    with pytest.raises(click.BadParameter):
        check_interval(click.Context(demo_command), demo_command.params[1], interval)
    assert check_interval(click.Context(demo_command), demo_command.params[1], "2s") == "2s"


def test_change_events_in_avro_are_refused_before_anything_starts() -> None:
    done = CliRunner().invoke(demo_command, ["--cdc", "--format", "avro"])
    assert done.exit_code == 2 and "with --cdc change events are JSON" in done.output


def test_two_numbers_of_a_place_never_collide_in_one() -> None:
    from lockstep.demo.proof import places

    rows = pa.table({"_kafka_partition": pa.array([0, 1], pa.int32()), "_kafka_offset": [2**33, 0]})
    assert len(set(places(rows).to_pylist())) == 2
