"""Where another sink stands becomes the table's first offsets, or it is said why not."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_topic.messages import Offsets, SourcePartition
from lockstep.errors import ConfigError, Failed
from lockstep.migrate.adoption import (
    AdoptionPlan,
    Theirs,
    hdfs_file,
    plan_adoption,
    s3_object,
    sink_offsets,
    streamer_offsets,
)
from lockstep.migrate.theirs import group_of
from lockstep.offsets.operator_commit import move_offsets
from lockstep.offsets.standing import SourceView
from lockstep.output import ConsoleOutput
from lockstep.verify.chain import follow
from table.memory.table import MemoryTable
from table.memory.timeline import MemoryTimeline

P0, P1, P2 = (SourcePartition("events", number) for number in range(3))
OTHER = SourcePartition("another", 0)
VIEW = SourceView(
    cluster="c",
    topics={"events": "id"},
    partitions=(P0, P1, P2),
    earliest={P0: 5, P1: 0, P2: 0},
    end={P0: 10, P1: 3, P2: 0},
)


def planned(
    offsets: Offsets,
    *,
    alive: str = "",
    on_data_loss: Literal["fail", "earliest"] = "fail",
    starting: Literal["earliest", "latest"] = "earliest",
) -> AdoptionPlan:
    return plan_adoption(
        Theirs(said_by="consumer group connect-x", offsets=offsets, alive=alive),
        VIEW,
        pipeline="p",
        on_data_loss=on_data_loss,
        starting=starting,
        operator="ada",
        reason="taken over",
    )


def test_each_source_partition_goes_on_where_theirs_would() -> None:
    plan = planned({P0: 7, P1: 3, OTHER: 9})
    assert plan.state.offsets == {P0: 7, P1: 3, P2: 0} and plan.refusal == ""
    assert [row.effect for row in plan.rows] == [
        "at most 3 records are to be read",
        "all read",
        "theirs has none: it begins at its earliest",
    ]
    assert plan.left == (OTHER,)
    assert (plan.state.kind, plan.state.operator, plan.state.cluster) == ("genesis", "ada", "c")


def test_one_that_theirs_has_no_offset_of_begins_where_the_pipeline_says() -> None:
    assert planned({P1: 3}, starting="latest").state.offsets == {P0: 10, P1: 3, P2: 0}


@pytest.mark.parametrize(
    ("offsets", "sentence"),
    [
        ({P0: 11}, "events:0: beyond the end of the log: another topic, or another cluster"),
        ({P0: 4}, "events:0: retention removed [4, 5)"),
        ({P0: 11, P1: 4}, "events:0, and 1 more: beyond the end"),
        ({OTHER: 4}, "has no offset of the pipeline's topics"),
        ({}, "has no offset of the pipeline's topics"),
    ],
)
def test_where_a_run_could_not_begin_it_is_refused_with_why(offsets: Offsets, sentence: str) -> None:
    assert sentence in planned(offsets).refusal


def test_what_retention_removed_is_gone_over_where_the_pipeline_says_so() -> None:
    plan = planned({P0: 4}, on_data_loss="earliest")
    assert plan.refusal == "" and plan.state.offsets[P0] == 5


def test_a_sink_that_still_runs_is_refused() -> None:
    assert planned({P0: 7}, alive="2 consumers are in connect-x").refusal.startswith(
        "2 consumers are in connect-x"
    )


def test_a_plan_is_shown_to_people_and_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned({P0: 7})
    assert plan.to_json(executed=True)["partitions"][0] == {
        "topic": "events",
        "partition": 0,
        "theirs": 7,
        "earliest": 5,
        "end": 10,
        "after": 7,
        "effect": "at most 3 records are to be read",
    }
    for shown, executed, first in (
        (plan, False, "A dry run: nothing has changed. Do it with --yes."),
        (plan, True, "Done: the table's first commit holds their offsets."),
        (planned({P0: 11}), False, "It cannot be done: events:0: beyond the end"),
    ):
        ConsoleOutput().document({}, lambda shown=shown, executed=executed: shown.to_text(executed=executed))  # type: ignore[misc]
        assert capsys.readouterr().out.startswith(first)


def test_the_first_commit_is_a_genesis_that_later_commits_follow_and_a_second_is_refused() -> None:
    timeline = MemoryTimeline()
    table, plan = MemoryTable(timeline, "p"), planned({P0: 7, P1: 3})
    move_offsets(table, plan.state, {}, clock_ms=lambda: 1_000, sleep=lambda _s: None)
    found = table.newest()
    assert found is not None and found.offsets == {P0: 7, P1: 3, P2: 0} and found.kind == "genesis"
    assert follow([found]).broken == []
    with pytest.raises(Failed, match=r"somebody has committed since|the table refused the change"):
        again = planned({P0: 8}).state
        move_offsets(table, again, {}, clock_ms=lambda: 1_000, sleep=lambda _s: None)


# --- how theirs spells them ---------------------------------------------------------------------------


def test_a_checkpoint_of_hoodie_streamers_is_read() -> None:
    assert streamer_offsets("events,0:123,1:456") == {P0: 123, P1: 456}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "events",
        "events,",
        "events,0",
        "events,0:",
        "0:1",
        "a,b,0:1",
        "20240101",
        "events,0:-1",
        "events,0:1,",
    ],
)
def test_what_is_no_checkpoint_of_kafkas_is_refused(text: str) -> None:
    with pytest.raises(Failed, match="none of a Kafka source"):
        streamer_offsets(text)


@pytest.mark.parametrize("text", ["events,99999999999:1", "events,0:99999999999999999999"])
def test_a_number_that_is_no_partition_or_no_offset_is_refused(text: str) -> None:
    with pytest.raises(Failed, match="no source partition"):
        streamer_offsets(text)


def test_offsets_in_a_commit_of_hudis_sink_are_read() -> None:
    assert sink_offsets("0=123,1=456", "events") == {P0: 123, P1: 456}
    with pytest.raises(Failed, match="not of the form"):
        sink_offsets("0:123", "events")


@settings(max_examples=200, deadline=None)
@given(st.text("ab,:=0123456789+. ", max_size=40))
def test_whatever_a_commit_says_it_is_offsets_or_refused(text: str) -> None:
    for read in (streamer_offsets, lambda said: sink_offsets(said, "events")):
        try:
            assert all(offset >= 0 for offset in read(text).values())
        except Failed:
            continue


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("events+0+0000000003+0000000005.avro", (P0, 3, 5)),
        ("events+1+0+0.snappy.parquet", (P1, 0, 0)),
        ("ev.e-n_ts+2+10+20", (SourcePartition("ev.e-n_ts", 2), 10, 20)),
        ("events+0+5+3.avro", None),
        ("events+0+5.avro", None),
        ("55b6c_tmp.avro", None),
    ],
)
def test_a_file_of_confluents_hdfs_sink_says_what_is_in_it(
    name: str, found: tuple[SourcePartition, int, int] | None
) -> None:
    assert hdfs_file(name) == found


@pytest.mark.parametrize(
    ("name", "delim", "found"),
    [
        ("events+0+0000000003.avro", "+", (P0, 3)),
        ("events+1+0000000003.json.gz", "+", (P1, 3)),
        ("events-1-3.json", "-", (P1, 3)),
        ("events+0+3.headers.avro", "+", (P0, 3)),
        ("events.avro", "+", None),
    ],
)
def test_an_object_of_confluents_s3_sink_says_where_it_begins(
    name: str, delim: str, found: tuple[SourcePartition, int] | None
) -> None:
    assert s3_object(name, delim) == found


def test_connect_names_a_sinks_group_by_its_connector() -> None:
    assert group_of({"name": "x"}) == "connect-x"
    assert group_of({"name": "x", "consumer.override.group.id": "mine"}) == "mine"
    with pytest.raises(ConfigError, match="has no name"):
        group_of({})
