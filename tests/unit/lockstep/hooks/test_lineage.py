"""What OpenLineage is told, in its own words."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from control_topic.messages import Range, SourcePartition
from lockstep.errors import ConfigError
from lockstep.hooks import openlineage
from lockstep.hooks.commits import Commit, Mark
from lockstep.hooks.lineage import STATES, Lineage, LineageOf, Named, catalog_named, run_id, table_named
from lockstep.hooks.openlineage import LineageSink, endpoint_of
from lockstep.hooks.port import Ending, HowEnded, SinkError
from tests.hook_receiver import Receiver

SECRET = "correct-horse-battery-staple"
RUN = "0011223344556677"
OF = LineageOf(
    namespace="lockstep",
    pipeline="events",
    version="0.1.0",
    brokers="SASL_SSL://broker-1:9093,broker-2:9093",
    topics=("orders", "returns"),
    record=[("id", "STRING"), ("tags", "ARRAY")],
    table=Named(namespace="s3://lake", name="events"),
    table_columns=[("id", "STRING"), ("_kafka_offset", "BIGINT")],
    storage="hudi",
)
COMMIT = Commit(
    mark=Mark(4, 17, "20260101120000000"),
    run=RUN,
    transaction="t1",
    kind="data",
    completed_ms=1_767_268_801_500,
    rows=8,
    size_bytes=150,
    files=2,
    rejects=0,
    ranges=(
        Range(partition=SourcePartition("orders", 0), start=2, next=10, records=6),
        Range(partition=SourcePartition("orders", 1), start=2, next=10, records=2),
    ),
)


def told(of: LineageOf = OF, **changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Lineage(of).committed(replace(COMMIT, **changes)))
    return document


def test_a_commit_is_a_running_event_of_its_run() -> None:
    event = told()
    assert event["eventType"] == "RUNNING" and event["eventTime"] == "2026-01-01T12:00:01.500Z"
    assert event["producer"] == "urn:lockstep:0.1.0"
    assert event["run"]["runId"] == run_id("events", RUN) and UUID(event["run"]["runId"])
    assert (event["job"]["namespace"], event["job"]["name"]) == ("lockstep", "events")
    assert event["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert event["run"]["facets"]["processing_engine"]["version"] == "0.1.0"


def test_its_inputs_are_the_topics_with_the_records_schema_and_how_many_came_from_each() -> None:
    orders, returns = told()["inputs"]
    assert (orders["namespace"], orders["name"]) == ("kafka://broker-1:9093", "orders")
    fields = [(one["name"], one["type"]) for one in orders["facets"]["schema"]["fields"]]
    assert fields == [("id", "STRING"), ("tags", "ARRAY")]
    assert orders["inputFacets"]["inputStatistics"]["rowCount"] == 8
    assert returns["name"] == "returns" and returns["inputFacets"] == {}


def test_its_output_is_the_table_with_its_columns_the_instant_as_its_version_and_what_was_written() -> None:
    (table,) = told()["outputs"]
    assert (table["namespace"], table["name"]) == ("s3://lake", "events")
    assert [one["name"] for one in table["facets"]["schema"]["fields"]] == ["id", "_kafka_offset"]
    assert table["facets"]["version"]["datasetVersion"] == "20260101120000000"
    assert table["facets"]["storage"]["storageLayer"] == "hudi"
    statistics = table["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (8, 150, 2)
    assert "symlinks" not in table["facets"]
    (named,) = told(replace(OF, catalog=catalog_named("thrift://a:9083,thrift://b:9083", "lake", "events")))[
        "outputs"
    ]
    (other,) = named["facets"]["symlinks"]["identifiers"]
    assert (other["namespace"], other["name"], other["type"]) == ("hive://a:9083", "lake.events", "TABLE")


def test_commits_of_a_run_that_was_killed_are_told_as_its_own() -> None:
    assert told(run="another")["run"]["runId"] != told()["run"]["runId"]


@pytest.mark.parametrize("how", HowEnded)
def test_a_run_ends_as_it_ended(how: HowEnded) -> None:
    event = json.loads(Lineage(OF).ended(RUN, 0, Ending(how=how, reason="x" * 5_000)))
    assert event["eventType"] == STATES[how].value
    if how is HowEnded.WELL:
        assert "errorMessage" not in event["run"]["facets"]
    else:
        assert event["run"]["facets"]["errorMessage"]["message"] == "x" * 1_000


def test_tables_are_named_as_others_name_them() -> None:
    assert table_named("file", "", "/data/lake/events") == Named(namespace="file", name="/data/lake/events")
    assert table_named("s3a", "lake", "/a/events") == Named(namespace="s3://lake", name="a/events")
    assert table_named("gs", "lake", "/events") == Named(namespace="gs://lake", name="events")
    assert table_named("hdfs", "nn:8020", "/events") == Named(namespace="hdfs://nn:8020", name="/events")


def test_events_go_to_the_api_unless_another_path_is_said() -> None:
    assert endpoint_of("https://l.example.org") == "https://l.example.org/api/v1/lineage"
    assert endpoint_of("https://l.example.org/") == "https://l.example.org/api/v1/lineage"
    assert endpoint_of("https://l.example.org/x/y?z=1") == "https://l.example.org/x/y?z=1"


def test_a_server_gets_them_with_the_key() -> None:
    with Receiver() as receiver:
        sink = LineageSink(receiver.url, SECRET, lambda: Lineage(OF), run=RUN)
        sink.begin()
        sink.deliver(COMMIT)
        sink.end(Ending(how=HowEnded.WELL, reason="stopped"))
        assert [one.document["eventType"] for one in receiver.taken] == ["START", "RUNNING", "COMPLETE"]
        assert {one.path for one in receiver.taken} == {"/api/v1/lineage"}
        assert {one.headers["Authorization"] for one in receiver.taken} == {f"Bearer {SECRET}"}
        receiver.does = 500
        with pytest.raises(SinkError) as caught:
            sink.deliver(COMMIT)
        assert SECRET not in str(caught.value) and SECRET not in sink.place


def test_a_file_gets_an_event_a_line(tmp_path: Path) -> None:
    path = tmp_path / "lineage.json"
    for _ in range(2):
        sink = LineageSink(f"file://{path}", "", lambda: Lineage(OF), run=RUN)
        sink.begin()
        sink.deliver(COMMIT)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "RUNNING"] * 2
    assert not stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH
    gone = LineageSink(f"file://{tmp_path}/no/such/folder.json", "", lambda: Lineage(OF), run=RUN)
    with pytest.raises(SinkError, match="No such file"):
        gone.begin()


def test_a_library_that_is_missing_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openlineage, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install .lockstep\[openlineage\]"):
        LineageSink("https://l.example.org", "", lambda: Lineage(OF), run=RUN)
