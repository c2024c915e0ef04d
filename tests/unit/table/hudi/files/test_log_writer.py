"""Log files of a transaction: what a reader makes of them is what all changes would have made."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_topic.messages import DataFile, SourcePartition
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch, Values
from participant.worker.stages import decoder
from table.errors import StorageError
from table.hudi.avro import to_avro
from table.hudi.definition import with_meta_columns
from table.hudi.files import log_writer as log_writer_module
from table.hudi.files.base_file import META_COLUMNS
from table.hudi.files.log_file import DELETE_BLOCK, DELETE_RECORD_LIST, PARQUET_BLOCK, Block, read_blocks
from table.hudi.files.log_writer import LogWriter
from table.hudi.files.upserts import Upserts, UpsertShaper
from table.hudi.layout import HudiLayout
from table.port import Written
from table.schema import table_schema
from table.store.local import LocalStore
from tests.merge_model import Change, Model

INSTANT = "20261122051234567"
DDL = "id STRING, region STRING, amount BIGINT, ts BIGINT, deleted BOOLEAN"
SCHEMA = table_schema(DDL, True)
LAYOUT = HudiLayout(
    path="",
    key_fields=("id",),
    key_format="plain",
    partition_fields=("region",),
    hive_style=False,
    url_encode=False,
    kafka_columns=True,
    target_file_bytes=100_000_000,
    ddl=DDL,
    mode="upsert",
    ordering_field="ts",
    bucket_count=2,
    avro=with_meta_columns(to_avro(SCHEMA, "changes")),
)
DECODER, SHAPER = decoder(LAYOUT, SCHEMA, RecordSpec(delete_field="deleted")), UpsertShaper(LAYOUT, SCHEMA)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / ".hoodie").mkdir()
    return tmp_path


def open_writer(base: Path, layout: HudiLayout = LAYOUT, **changes: Any) -> LogWriter:
    arguments: dict[str, Any] = {
        "store": LocalStore(base),
        "layout": layout,
        "schema": SCHEMA,
        "instant": INSTANT,
        "writer_number": 4,
        "incarnation": "0123abcd",
        "pending_bytes_max": 64_000_000,
        "held_bytes_max": 8_000_000,
        **changes,
    }
    return LogWriter(**arguments)


def derived(changes: Iterable[Change], layout: HudiLayout = LAYOUT) -> Upserts:
    values: list[bytes | None] = []
    keys: dict[int, bytes | None] = {}
    for number, one in enumerate(changes):
        region, name = one.key
        if one.tombstone:
            keys[number] = json.dumps({"id": name, "region": region}).encode()
            values.append(None)
            continue
        row = {"id": name, "region": region, "amount": one.amount, "ts": one.ts, "deleted": one.deleted}
        values.append(json.dumps(row).encode())
    offsets = np.arange(len(values), dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition("changes", 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
        keys=keys,
    )
    shaper = SHAPER if layout is LAYOUT else UpsertShaper(layout, SCHEMA)
    return shaper.shape(DECODER.decode(batch).rows(batch))


def blocks_of(base: Path, file: DataFile) -> list[Block]:
    return read_blocks((base / file.path).read_bytes())


def rows_of(block: Block) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(block.content)).to_pylist()
    return rows


def deletes_of(block: Block) -> list[dict[str, Any]]:
    content = io.BytesIO(block.content[8:])
    read = fastavro.schemaless_reader(content, DELETE_RECORD_LIST, None, return_record_name=True)
    assert isinstance(read, dict)
    return list(read["deleteRecordList"])


def changes_in(base: Path, files: Iterable[DataFile]) -> list[Change]:
    """What stands in the files, in the order in which a reader meets it."""
    found: list[Change] = []
    for file in files:
        for block in blocks_of(base, file):
            if block.kind == PARQUET_BLOCK:
                for row in rows_of(block):
                    key = (row["region"], row["id"])
                    found.append(Change(key=key, amount=row["amount"], ts=row["ts"]))
                continue
            for gone in deletes_of(block):
                key, (wrapper, by) = (gone["partitionPath"], gone["recordKey"]), gone["orderingVal"]
                always = wrapper.endswith(".IntWrapper")  # of a BIGINT, only what stands for none
                found.append(Change(key=key, ts=by["value"], deleted=not always, tombstone=always))
    return found


def change(name: str, ts: int, *, region: str = "eu", **more: Any) -> Change:
    return Change(key=(region, name), ts=ts, **more)


def test_whoever_asked_is_told_of_each_step_of_the_writing(base: Path) -> None:
    told: list[Written] = []
    writer = open_writer(base, tell=told.append)
    writer.write(
        derived(Change(key=(f"r{n % 20}", f"k{n}"), amount=n, ts=n, deleted=False) for n in range(200))
    )
    files = writer.close()
    assert [one.steps for one in told] == list(range(1, len(told) + 1))
    assert len(told) >= 2 * len(files) >= 40
    assert told[-1].files == len(files)
    assert 0 < told[-1].size_bytes <= sum(file.size_bytes for file in files)


def test_a_file_per_bucket_and_table_partition_holds_the_rows_with_their_meta_columns(base: Path) -> None:
    writer = open_writer(base)
    writer.write(derived(change(f"k{n}", n, region="eu" if n % 3 else "us", amount=n) for n in range(60)))
    files = writer.close()
    assert sorted((f.table_partition, f.body[:8]) for f in files) == [
        (region, bucket) for region in ("eu", "us") for bucket in ("00000000", "00000001")
    ]
    assert sum(f.rows for f in files) == 60 and not any(f.deletes for f in files)
    seen = set()
    for file in files:
        path = base / file.path
        assert path.name == f".{file.body}_{INSTANT}.log.1_4-281565161-{path.name.rpartition('-')[2]}"
        assert path.stat().st_size == file.size_bytes
        assert (base / ".hoodie/.temp" / INSTANT / f"{file.path}.marker.CREATE").exists()
        assert (path.parent / ".hoodie_partition_metadata").exists()
        (block,) = blocks_of(base, file)
        assert block.header == {0: INSTANT, 2: LAYOUT.avro}
        for row in rows_of(block):
            assert [row[name] for name in META_COLUMNS][0::2] == [INSTANT, row["id"], file.body]
            assert row["_hoodie_partition_path"] == file.table_partition == row["region"]
            seen.add(row["_hoodie_commit_seqno"])
    assert len(seen) == 60


def test_of_a_key_only_the_newest_version_is_written(base: Path) -> None:
    writer = open_writer(base)
    writer.write(derived([change("a", 5, amount=1), change("a", 3, amount=2)]))
    writer.write(derived([change("a", 5, amount=3), change("a", 4, amount=4)]))
    files = writer.close()
    assert [(one.amount, one.ts) for one in changes_in(base, files)] == [(3, 5)]
    assert sum(file.rows for file in files) == 1


def test_by_commit_time_the_later_version_is_written_whatever_it_holds(base: Path) -> None:
    layout = replace(LAYOUT, ordering_field="")
    writer = open_writer(base, layout)
    late = [change("a", 5), change("a", 3, amount=9), change("b", 1), change("b", 9, deleted=True)]
    writer.write(derived(late, layout))
    found = changes_in(base, writer.close())
    assert sorted((one.key[1], one.amount, one.deletes) for one in found) == [("a", 9, False), ("b", 0, True)]


def test_a_row_that_makes_its_group_due_is_not_undone_by_the_delete_that_came_before_it(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer_module, "BLOCK_ROWS", 2)
    layout = replace(LAYOUT, ordering_field="", bucket_count=1)
    writer = open_writer(base, layout)
    batch = [change("a", 1, deleted=True), change("a", 1, amount=7), change("b", 1)]
    writer.write(derived(batch, layout))
    model = Model(by_event_time=False)
    for one in changes_in(base, writer.close()):
        model.apply(one)
    assert sorted(key for _, key in model.rows()) == ["a", "b"]


def test_the_same_key_in_two_table_partitions_is_two_rows(base: Path) -> None:
    writer = open_writer(base, replace(LAYOUT, bucket_count=1))
    writer.write(derived(change("k", ts, region=region) for ts in (1, 2, 3) for region in ("eu", "us", "eu")))
    found = changes_in(base, writer.close())
    assert sorted((one.key, one.ts) for one in found) == [(("eu", "k"), 3), (("us", "k"), 3)]


changes = st.lists(
    st.builds(
        Change,
        key=st.tuples(st.sampled_from("ab"), st.sampled_from(["k1", "k2", "k3"])),
        amount=st.integers(0, 9),
        ts=st.integers(1, 5),
        deleted=st.booleans(),
        tombstone=st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=30,
)


def applied(found: Iterable[Change], before: Iterable[Change]) -> Model:
    model = Model(by_event_time=True)
    for one in (*before, *found):
        model.apply(one)
    return model


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=changes, now=st.lists(changes, min_size=1, max_size=3), wait=st.booleans())
def test_what_is_written_does_to_any_table_what_all_changes_would(
    tmp_path_factory: pytest.TempPathFactory, before: list[Change], now: list[list[Change]], wait: bool
) -> None:
    base = tmp_path_factory.mktemp("t")
    (base / ".hoodie").mkdir()
    writer = open_writer(base, pending_bytes_max=64_000_000 if wait else 1)
    for batch in now:
        writer.write(derived(batch))
    found = changes_in(base, writer.close())
    every = [one for batch in now for one in batch]
    assert applied(found, before).rows() == applied(every, before).rows()
    # and what comes after meets the same deletes
    later = [Change(key=(region, f"k{n}"), ts=ts) for region in "ab" for n in (1, 2, 3) for ts in (3,)]
    assert applied([*found, *later], before).rows() == applied([*every, *later], before).rows()


def test_memory_that_waits_is_bounded_and_blocks_are_appended_to_the_same_file(base: Path) -> None:
    writer = open_writer(base, pending_bytes_max=20_000)
    for first in range(0, 3_000, 100):
        writer.write(derived(change(f"k{n}", n) for n in range(first, first + 100)))
        assert writer.pending_bytes <= 20_000
    files = writer.close()
    assert len(files) == 2 and sum(file.rows for file in files) == 3_000
    assert all(len(blocks_of(base, file)) > 1 for file in files)
    assert writer.upload_s > 0


def test_a_discarded_writer_leaves_no_file_and_keeps_its_markers(base: Path) -> None:
    writer = open_writer(base, pending_bytes_max=1)
    writer.write(derived(change(f"k{n}", n) for n in range(50)))
    assert list(base.glob("eu/.*.log.*"))
    writer.discard()
    assert not list(base.glob("eu/.*.log.*"))
    assert list((base / ".hoodie/.temp").rglob("*.marker.CREATE"))


def test_reported_files_are_never_removed(base: Path) -> None:
    writer = open_writer(base)
    writer.write(derived([change("a", 1)]))
    (file,) = writer.close()
    writer.discard()
    assert (base / file.path).exists()


def test_storage_that_refuses_is_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "eu").write_text("a file where the folder should be")
    writer = open_writer(base)
    writer.write(derived([change("a", 1)]))
    with pytest.raises(StorageError, match=rf"eu.* of instant {INSTANT} could not be written"):
        writer.close()


def test_blocks_of_a_large_group_are_encoded_before_the_end(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer_module, "BLOCK_ROWS", 100)
    writer = open_writer(base)
    writer.write(derived(change(f"k{n}", n) for n in range(1_000)))
    assert writer.pending_bytes == 0
    assert sum(file.rows for file in writer.close()) == 1_000


def test_columns_that_were_not_announced_are_refused(base: Path) -> None:
    made = derived([change("a", 1)])
    with pytest.raises(ValueError, match="were announced"):
        open_writer(base).write(replace(made, rows=made.rows.drop_columns(["ts"])))


def test_a_delete_block_holds_ordered_deletes_and_those_that_always_win(base: Path) -> None:
    writer = open_writer(base)
    writer.write(derived([change("a", 7, deleted=True), change("c", 0, tombstone=True)]))
    files = writer.close()
    kinds = [block.kind for file in files for block in blocks_of(base, file)]
    assert set(kinds) == {DELETE_BLOCK} and sum(file.deletes for file in files) == 2
    assert all(isinstance(file.rows, int) and file.rows == 0 for file in files)
    found = {one.key[1]: one for one in changes_in(base, files)}
    assert (found["a"].ts, found["a"].tombstone, found["c"].tombstone) == (7, False, True)
    assert pa.types.is_int64(SCHEMA.field("ts").type)
