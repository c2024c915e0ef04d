"""Upserts in the bench: what is on the topic, what the rivals are told, what counts as a record."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench import queries
from bench.figures import Commit, Span, covered
from bench.load import _looped
from bench.rivals import hudi_commits, lockstep_run
from bench.rivals.base import Settings
from bench.rivals.registry import order, parse
from bench.rivals.structured_streaming import by_batches, options
from bench.workloads import KEYS, UPSERTS, WORKLOADS, Workload, key_of
from control_topic.messages import Range, SourcePartition
from lockstep.config import Config, load
from lockstep.errors import Failed
from table.hudi.files.buckets import buckets
from table.instants import CommittedFile, Instant
from table.state import TableState
from tests.hudi_avro import COMMIT, avro

LOG = CommittedFile(path="a/.x.log", rows=70, size_bytes=1)


# --- the topic ----------------------------------------------------------------------------------------


def test_each_pass_changes_every_key_once_and_in_another_order() -> None:
    first, second = (np.fromiter(map(key_of, range(n * KEYS, (n + 1) * KEYS)), np.int64) for n in (0, 1))
    assert np.array_equal(np.sort(first), np.arange(KEYS))
    assert np.array_equal(np.sort(second), np.arange(KEYS))
    assert np.count_nonzero(first == second) < KEYS / 1_000


def test_a_key_stays_in_its_source_partition_and_its_table_partition_while_its_ts_grows() -> None:
    numbers = range(0, 4 * KEYS, 401)
    seen: dict[str, tuple[int, str]] = {}
    before = 0
    for number in sorted({*numbers, *(_with_key_of(number) for number in numbers)}):
        row = json.loads(UPSERTS.value(number))
        assert row["ts"] > before
        before = row["ts"]
        place = (UPSERTS.source_partition(number), row["day"])
        assert seen.setdefault(row["event_id"], place) == place
    assert len(seen) < len(numbers), "no key came twice"
    assert len(set(seen.values())) == UPSERTS.source_partitions * UPSERTS.table_partitions


def _with_key_of(number: int) -> int:
    """The record of the first pass that has the same key."""
    return key_of(number) * pow(618_031, -1, KEYS) % KEYS


def test_the_buckets_of_all_table_partitions_hold_about_as_many_keys() -> None:
    rows = [json.loads(UPSERTS.value(number)) for number in range(100_000)]
    keys = pa.chunked_array([pa.array([row["event_id"] for row in rows])])
    found = Counter(
        zip((row["day"] for row in rows), buckets(keys, [UPSERTS.key], UPSERTS.buckets).tolist(), strict=True)
    )
    assert len(found) == UPSERTS.table_partitions * UPSERTS.buckets
    assert max(found.values()) < 1.1 * min(found.values())


def test_records_of_upserts_are_not_repeated() -> None:
    records = _looped(UPSERTS, 300_000)
    assert len({value for value, _ in (next(records) for _ in range(300_000))}) == 300_000


# --- what rivals are told -----------------------------------------------------------------------------


def _config(folder: Path, workload: Workload, sets: tuple[str, ...] = ()) -> Config:
    path = lockstep_run.write_config(
        folder,
        pipeline="p",
        bootstrap_servers="127.0.0.1:9092",
        topic="events",
        workload=workload,
        interval_s=5.0,
        settings=Settings(),
    )
    return load(path, sets=sets)


def test_lockstep_is_told_the_workload_s_table_and_to_compact_only_where_that_is_measured(
    tmp_path: Path,
) -> None:
    config = _config(tmp_path, UPSERTS)
    table = config.table
    assert (table.kind, table.key, table.ordering, table.buckets) == ("upsert", ("event_id",), "ts", 4)
    assert (table.partition_by, config.services.compaction) == (("day",), "off")
    compacting = _config(tmp_path, UPSERTS, lockstep_run.ALWAYS_COMPACTING).services
    assert (compacting.compaction, compacting.compaction_every) == ("async", 1)


@pytest.mark.parametrize("workload", [UPSERTS.as_inserts(), WORKLOADS["narrow"], WORKLOADS["tiny"]])
def test_lockstep_appends_what_is_no_upsert(tmp_path: Path, workload: Workload) -> None:
    assert _config(tmp_path, workload).table.kind == "insert"


def test_every_other_round_begins_with_the_upserts_that_are_compacted() -> None:
    entries = [parse(f"lockstep{which}") for which in ("", "-append", "-compacting")]
    assert order(entries, 1) == list(reversed(order(entries, 0)))


def test_structured_streaming_writes_the_same_table_and_does_not_compact_it() -> None:
    given = options(UPSERTS)
    assert given["hoodie.datasource.write.operation"] == "upsert"
    assert given["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"
    assert (given["hoodie.index.type"], given["hoodie.bucket.index.num.buckets"]) == ("BUCKET", "4")
    assert given["hoodie.bucket.index.hash.field"] == given["hoodie.datasource.write.recordkey.field"]
    assert given["hoodie.datasource.write.precombine.field"] == "ts"
    assert given["hoodie.compact.inline"] == "false"
    assert given["hoodie.datasource.compaction.async.enable"] == "false"
    assert "hoodie.combine.before.insert" not in given
    assert options(WORKLOADS["narrow"])["hoodie.datasource.write.operation"] == "bulk_insert"


# --- what counts --------------------------------------------------------------------------------------


def _instant(action: str, *, state: TableState | None = None) -> Instant:
    return Instant(requested="1", completed="2", action=action, state=state, files=(LOG, LOG))


def test_lockstep_s_upserts_count_by_their_ranges_and_all_others_by_their_rows() -> None:
    ranges = tuple(
        Range(partition=SourcePartition("events", number), start=0, next=100, records=100)
        for number in range(2)
    )
    state = TableState(pipeline="p", run="r", epoch=1, transaction="t", offsets={}, ranges=ranges)
    assert hudi_commits.rows(_instant("deltacommit", state=state)) == 200
    assert hudi_commits.rows(_instant("deltacommit")) == 140
    assert hudi_commits.rows(_instant("commit", state=state)) == 140


def test_compactions_bring_no_rows_and_are_listed_whether_complete_or_not(tmp_path: Path) -> None:
    timeline = tmp_path / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    version = "hoodie.table.version=9\nhoodie.timeline.layout.version=2\nhoodie.table.timeline.timezone=UTC\n"
    (tmp_path / ".hoodie" / "hoodie.properties").write_text(version)
    times = [f"20260101000000{number:03}" for number in range(6)]
    for name, operation in (
        (f"{times[0]}_{times[1]}.deltacommit", "UPSERT"),
        (f"{times[2]}_{times[3]}.commit", "COMPACT"),
        (f"{times[4]}_{times[5]}.replacecommit", "CLUSTER"),
    ):
        stats = {"a": [{"path": "a/x", "numWrites": 10}]}
        record = {"partitionToWriteStats": stats, "extraMetadata": {}, "operationType": operation}
        (timeline / name).write_bytes(avro(COMMIT, record))
    (timeline / f"{times[5]}.compaction.requested").touch()
    began_ms = 1_767_225_600_000
    assert hudi_commits.commits(tmp_path) == [Commit(at_ms=began_ms + 1, rows=10, files=1)]
    assert hudi_commits.compactions(tmp_path) == [(began_ms + 2, began_ms + 3), (began_ms + 5, None)]


def test_streaming_s_upserts_count_by_what_their_batches_took_from_the_topic() -> None:
    commits = [Commit(at_ms=1_000, rows=70, files=2), Commit(at_ms=2_000, rows=70, files=2)]
    batches = [{"records": 100}, {"records": 0}, {"records": 80}]
    assert [one.rows for one in by_batches(commits, batches)] == [100, 80]
    with pytest.raises(Failed, match="2 commits of 1 batches"):
        by_batches(commits, batches[:1])


def test_compactions_cover_a_part_of_the_steady_time() -> None:
    span = Span(start_ms=1_000, end_ms=2_000, rows=1)
    assert covered([(500, 1_200), (1_100, 1_300), (1_800, None)], span) == 0.5
    assert covered([(100, 900), (2_100, None)], span) == 0.0
    assert covered([(0, 5_000)], span) == 1.0


# --- queries ------------------------------------------------------------------------------------------


def test_the_expected_answer_is_that_of_each_key_s_newest_record() -> None:
    few_keys = replace(UPSERTS, key_of=lambda number: number % 300)
    newest = [json.loads(UPSERTS.value(number)) for number in range(700, 1_000)]
    count, users, ts, amount = queries.expected(few_keys, 1_000)
    assert (count, users) == (300, sum(row["user_id"] for row in newest))
    assert ts == sum(row["ts"] for row in newest)
    assert amount == pytest.approx(sum(row["amount"] for row in newest), rel=1e-12)


def _runs(**seconds: list[float]) -> list[dict[str, Any]]:
    return [
        {"table": name, "round": number, "seconds": one, "answer": [2, 7, 9, 0.5]}
        for name, taken in seconds.items()
        for number, one in enumerate(taken, -1)
    ]


def test_queries_are_compared_round_by_round_without_those_that_warm_up() -> None:
    runs = _runs(lockstep=[9.0, 1.0, 3.0], streaming=[1.0, 2.0, 2.0])
    assert queries.ratio(runs, queries.OURS, queries.THEIRS) == {"min": 0.5, "median": 1.0, "max": 1.5}


def test_only_the_newest_base_file_of_each_group_counts(tmp_path: Path) -> None:
    names = ("a/g1-0_1-0-1_20260101000000001.parquet", "a/g1-0_0-0-1_20260101000000002.parquet")
    kept = {*names[1:], "b/g1-0_0-0-1_20260101000000001.parquet"}
    for name in (*names, *kept, ".hoodie/metadata/files/x_1-0-1_20260101000000009.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = queries.newest_base_files(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in found} == kept


def _figures(**more: Any) -> dict[str, Any]:
    return {
        "expected": [2, 7, 9, 0.5],
        "tables": {name: {"compactions": 1} for name in ("lockstep", "streaming")},
        "digests": {"lockstep": ["1"], "streaming": ["1"]},
        "runs": _runs(lockstep=[1.0], streaming=[1.0]),
        **more,
    }


def test_tables_that_differ_from_the_topic_or_each_other_or_are_not_compacted_are_said() -> None:
    assert not queries.problems(_figures())
    assert "answered" in queries.problems(_figures(expected=[2, 7, 8, 0.5]))[0]
    assert "other rows" in queries.problems(_figures(digests={"lockstep": ["1"], "streaming": ["2"]}))[0]
    tables = {"lockstep": {"compactions": 0}, "streaming": {"compactions": 1}}
    assert queries.problems(_figures(tables=tables)) == ["the table by lockstep was compacted 0 times"]
