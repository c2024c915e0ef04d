"""Files of a transaction: nothing lost or doubled, memory bounded, nothing left when it is discarded."""

from __future__ import annotations

import errno
import shutil
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_topic.messages import DataFile, SourcePartition
from participant.records.json.decoder import JsonDecoder
from participant.records.raw import RawBatch, Values
from table.errors import StorageError
from table.hudi.files import base_file
from table.hudi.files import base_writer as writer_module
from table.hudi.files.base_file import FILE_ID_PREFIX, KeyRange, sequence_numbers
from table.hudi.files.base_writer import TransactionWriter
from table.hudi.files.shaping import InsertRows, InsertShaper
from table.hudi.layout import HudiLayout
from table.memory.store import MemoryStore
from table.port import Written
from table.schema import table_schema
from table.store.local import LocalStore
from table.store.port import Sink

INSTANT = "20261120201248694"
DDL = "id STRING, day STRING, amount DOUBLE, n BIGINT, tags ARRAY<STRING>, at TIMESTAMP, price DECIMAL(10,2)"
LAYOUT = HudiLayout(
    path="",
    key_fields=("id",),
    key_format="plain",
    partition_fields=("day",),
    hive_style=False,
    url_encode=False,
    kafka_columns=True,
    target_file_bytes=100_000_000,
    ddl=DDL,
)
SCHEMA = table_schema(DDL, True)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / ".hoodie").mkdir()
    return tmp_path


def rows(count: int, *, days: int = 1, first: int = 0, topic: str = "events") -> InsertRows:
    values: list[bytes | None] = [
        b'{"id":"%s-%06d","day":"d%d","amount":%d.5,"n":%d,"tags":["x"],"at":"2026-01-01","price":"1.50"}'
        % (topic.encode(), n, n % days, n, n)
        for n in range(first, first + count)
    ]
    offsets = np.arange(first, first + count, dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition(topic, 0), offsets=offsets, timestamps_ms=offsets, values=Values.of(values)
    )
    return InsertShaper(LAYOUT, SCHEMA).shape(JsonDecoder(SCHEMA).decode(batch).rows(batch))


def open_writer(base: Path, **changes: Any) -> TransactionWriter:
    arguments: dict[str, Any] = {
        "store": LocalStore(base),
        "layout": replace(LAYOUT, target_file_bytes=changes.pop("target_file_bytes", 100_000_000)),
        "schema": SCHEMA,
        "instant": INSTANT,
        "writer_number": 4,
        "incarnation": "0123abcd",
        "pending_bytes_max": 64_000_000,
        "held_bytes_max": 8_000_000,
        "new_uuid": uuid.uuid4,
        **changes,
    }
    return TransactionWriter(**arguments)


def read(base: Path, files: tuple[DataFile, ...]) -> list[dict[str, Any]]:
    return [row for f in files for row in pq.read_table(base / f.path, partitioning=None).to_pylist()]


def data_files(base: Path) -> list[Path]:
    return sorted(base.rglob("*.parquet"))


def markers(base: Path) -> list[str]:
    root = base / ".hoodie" / ".temp" / INSTANT
    return sorted(str(p.relative_to(root)) for p in root.rglob("*.marker.CREATE"))


# --- what is written --------------------------------------------------------------------------------


def test_whoever_asked_is_told_of_each_step_of_the_writing(base: Path) -> None:
    """A worker that writes thousands of files is not silent: each piece and each file is a step."""
    told: list[Written] = []
    writer = open_writer(base, tell=told.append)
    writer.write(rows(500, days=50))
    files = writer.close()
    assert [one.steps for one in told] == list(range(1, len(told) + 1))
    assert len(told) >= 2 * len(files) == 100
    assert [one.files for one in told] == sorted(one.files for one in told)
    assert told[-1].files == len(files)
    assert 0 < told[-1].size_bytes <= sum(file.size_bytes for file in files)


def test_rows_come_back_with_their_meta_columns(base: Path) -> None:
    writer = open_writer(base)
    writer.write(rows(10, days=2))
    files = writer.close()
    assert [f.table_partition for f in files] == ["d0", "d1"]
    for file in files:
        table = pq.read_table(base / file.path, partitioning=None)
        assert table.column_names == [*base_file.META_COLUMNS, *SCHEMA.names]
        assert [table.schema.field(n).type for n in SCHEMA.names] == SCHEMA.types
        assert all(table.schema.field(n).type == pa.string() for n in base_file.META_COLUMNS)
        for row in table.to_pylist():
            assert row["_hoodie_commit_time"] == INSTANT
            assert row["_hoodie_commit_seqno"].startswith(f"{INSTANT}_4_")
            assert row["_hoodie_record_key"] == row["id"] == f"events-{row['_kafka_offset']:06}"
            assert row["_hoodie_partition_path"] == row["day"] == file.table_partition
            assert row["_hoodie_file_name"] == Path(file.path).name


def test_what_is_reported_is_what_is_on_the_disk(base: Path) -> None:
    writer = open_writer(base)
    writer.write(rows(1_000, days=3))
    files = writer.close()
    assert sorted(base / f.path for f in files) == data_files(base)
    for file in files:
        assert file.size_bytes == (base / file.path).stat().st_size
        assert file.rows == pq.read_metadata(base / file.path).num_rows
        assert base_file.parse_file_name(Path(file.path).name) == (
            *(file.body, Path(file.path).stem.split("_")[1], INSTANT),
        )
        assert file.body.startswith(f"{FILE_ID_PREFIX}-") and file.body.endswith("-0")


def test_sequence_numbers_are_unique_in_the_transaction(base: Path) -> None:
    writer = open_writer(base, target_file_bytes=1)
    for first in range(0, 5_000, 500):
        writer.write(rows(500, days=7, first=first))
        writer._encode_largest(0)
    found = [row["_hoodie_commit_seqno"] for row in read(base, writer.close())]
    assert len(set(found)) == len(found) == 5_000


def test_a_file_ends_at_the_target_size_and_no_row_is_lost(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "ROW_GROUP_ROWS", 1_000)
    writer = open_writer(base, target_file_bytes=5_000)
    for first in range(0, 10_000, 500):
        writer.write(rows(500, first=first))
    files = writer.close()
    assert len(files) > 2
    assert len({f.body for f in files}) == len(files)
    assert sorted(row["n"] for row in read(base, files)) == list(range(10_000))


def test_files_that_are_open_are_limited_and_the_longest_unused_ends_first(
    base: Path,
) -> None:
    store = LocalStore(base)
    store.capabilities = replace(store.capabilities, open_at_once=3)
    writer = open_writer(base, store=store, pending_bytes_max=0)
    most_open = 0
    for round_ in range(3):
        writer.write(rows(50, days=10, first=50 * round_))
        most_open = max(most_open, len(writer._open))
    files = writer.close()
    assert most_open <= 3
    assert len(files) == 30
    assert sorted(row["n"] for row in read(base, files)) == list(range(150))


def test_memory_of_open_files_is_limited_however_many_may_be_open(base: Path) -> None:
    """A file that waits for more of its table partition has a footer in the making, of each column."""
    writer = open_writer(base, pending_bytes_max=0, held_bytes_max=200_000)
    for round_ in range(3):
        writer.write(rows(100, days=50, first=100 * round_))
        assert 3 < len(writer._open) < 12 and writer.held_bytes <= 200_000
    files = writer.close()
    assert writer.held_bytes == 0
    assert sorted(row["n"] for row in read(base, files)) == list(range(300))


def test_a_table_partition_has_one_file_of_a_transaction_where_many_may_be_open(base: Path) -> None:
    """Though memory is short again and again, and some of its rows are encoded each time."""
    writer = open_writer(base, pending_bytes_max=100_000, held_bytes_max=32_000_000)
    for first in range(0, 4_000, 1_000):
        writer.write(rows(1_000, days=250, first=first))
    assert len(writer._open) > 200
    files = writer.close()
    assert len({file.table_partition for file in files}) == len(files) == 250


def test_many_rows_are_not_encoded_as_few_before_them_were(base: Path) -> None:
    """Of few rows no column is compressed: in the same file what follows would not be either."""
    writer = open_writer(base, pending_bytes_max=0)
    for first, count in ((0, 4), (4, 30), (34, 2_100), (2_134, 100)):
        writer.write(rows(count, first=first))
    files = writer.close()
    assert [file.rows for file in files] == [34, 2_200]
    few, many = (pq.read_metadata(base / file.path).row_group(0) for file in files)
    plain = [
        {
            one.path_in_schema
            for one in map(group.column, range(group.num_columns))
            if one.compression != "ZSTD"
        }
        for group in (few, many)
    ]
    assert plain[0] > plain[1]


def test_pending_memory_stays_below_its_limit_and_the_largest_goes_first(base: Path) -> None:
    limit = 400_000
    writer = open_writer(base, pending_bytes_max=limit)
    small = rows(10, days=1, first=1)
    writer.write(replace(small, table_partition=pa.array(["small"] * 10).dictionary_encode()))
    for first in range(0, 20_000, 500):
        writer.write(rows(500, days=2, first=first))
        assert 0 <= writer.pending_bytes <= limit
    assert "small" not in {file.parent.name for file in data_files(base)}
    writer.close()
    assert writer.pending_bytes == 0


def test_a_part_of_a_batch_does_not_keep_the_batch_in_memory(base: Path) -> None:
    writer = open_writer(base)
    derived = rows(10_000, days=1)
    codes = ["rare"] + ["common"] * 9_999
    writer.write(replace(derived, table_partition=pa.array(codes).dictionary_encode()))
    assert writer._backlog._crumbs.size_bytes < derived.nbytes / 50


def test_records_of_two_topics_share_a_file(base: Path) -> None:
    writer = open_writer(base)
    writer.write(rows(100, topic="events"))
    writer.write(rows(100, topic="audit"))
    files = writer.close()
    assert len(files) == 1
    found = Counter((r["_kafka_topic"], r["id"].split("-")[0]) for r in read(base, files))
    assert found == {("events", "events"): 100, ("audit", "audit"): 100}


def test_a_table_without_partitions_has_its_files_at_its_root(base: Path) -> None:
    writer = open_writer(base)
    derived = rows(3)
    writer.write(replace(derived, table_partition=pa.array([""] * 3).dictionary_encode()))
    (file,) = writer.close()
    assert "/" not in file.path and file.table_partition == ""
    assert markers(base) == [f"{file.path}.marker.CREATE"]
    assert "partitionDepth=0" in (base / ".hoodie_partition_metadata").read_text()


def test_nothing_written_is_nothing_reported(base: Path) -> None:
    writer = open_writer(base)
    writer.write(rows(0))
    assert writer.close() == ()
    assert data_files(base) == [] and markers(base) == []


def test_footers_hold_the_range_of_keys(base: Path) -> None:
    writer = open_writer(base)
    writer.write(rows(100, first=50))
    writer._encode_largest(0)
    writer.write(rows(50))
    (file,) = writer.close()
    footer = pq.read_metadata(base / file.path).metadata
    assert footer[b"hoodie_min_record_key"] == b"events-000000"
    assert footer[b"hoodie_max_record_key"] == b"events-000149"
    assert b"ARROW:schema" not in footer


def test_a_footer_tells_spark_that_dates_before_1582_are_of_its_own_calendar(base: Path) -> None:
    writer = open_writer(base)
    writer.write(rows(3))
    (file,) = writer.close()
    assert pq.read_metadata(base / file.path).metadata[b"org.apache.spark.version"] >= b"3.0.0"


def test_a_table_partition_gets_its_metadata_once(base: Path) -> None:
    for instant in (INSTANT, "20261120201299999"):
        writer = open_writer(base, instant=instant)
        writer.write(rows(4, days=2))
        writer.close()
    text = (base / "d1" / ".hoodie_partition_metadata").read_text()
    assert f"commitTime={INSTANT}\n" in text and "partitionDepth=1\n" in text
    assert sorted(p.name for p in (base / "d1").iterdir() if p.suffix != ".parquet") == [
        ".hoodie_partition_metadata"
    ]


# --- markers, faults, discard -------------------------------------------------------------------------


def test_every_file_has_a_marker_that_was_there_before_it(base: Path) -> None:
    seen: list[bool] = []

    class Watched(LocalStore):
        def sink(self, path: str, *, before: Callable[[], None] | None = None) -> Sink:
            partition, _, name = path.rpartition("/")
            marker = base_file.marker_path(INSTANT, partition, name)
            seen.append(self.stat(marker) is not None and self.stat(path) is None)
            return super().sink(path)

    writer = open_writer(base, store=Watched(base))
    writer.write(rows(30, days=3))
    files = writer.close()
    assert seen == [True] * 3
    assert markers(base) == sorted(f"{f.path}.marker.CREATE" for f in files)


def test_every_folder_of_a_file_is_durable_or_the_close_fails_and_says_which_is_not(base: Path) -> None:
    class Watched(LocalStore):
        def secure(self, path: str) -> int:
            secured.add(path)
            if path == refused:
                raise OSError(errno.EIO, "Input/output error")
            return super().secure(path)

    for refused in ("", "d7"):
        secured: set[str] = set()
        writer = open_writer(base, store=Watched(base))
        writer.write(rows(60, days=20))
        if refused:
            with pytest.raises(StorageError, match=r"/d7 of instant .* could not be written: Input/output"):
                writer.close()
            writer.discard()
            continue
        files = writer.close()
        assert secured == {f.path for f in files} | {f"d{n}" for n in range(20)}


def test_all_that_a_writer_makes_is_on_its_store_and_nowhere_else() -> None:
    store = MemoryStore()
    store.make_folder(".hoodie")
    writer = open_writer(Path("/nowhere"), store=store)
    writer.write(rows(100, days=2))
    found = [pq.read_table(store.source(file.path)).num_rows for file in writer.close()]
    assert found == [50, 50]
    assert sorted(store.names()) == [".hoodie", "d0", "d1"]


def test_discard_removes_files_and_leaves_markers(base: Path) -> None:
    writer = open_writer(base, target_file_bytes=1)
    writer.write(rows(300, days=3))
    writer._encode_largest(0)
    writer.write(rows(300))
    writer._encode_largest(0)
    assert data_files(base)
    writer.discard()
    assert data_files(base) == []
    assert len(markers(base)) == 4
    assert writer.pending_bytes == 0


def test_discard_removes_a_file_that_is_half_written(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = open_writer(base)
    writer.write(rows(100))
    writer._encode_largest(0)
    assert len(writer._open) == 1
    writer.discard()
    assert data_files(base) == []


def test_reported_files_are_never_discarded(base: Path) -> None:
    writer = open_writer(base)
    writer.write(rows(10))
    files = writer.close()
    writer.discard()
    assert [base / f.path for f in files] == data_files(base)


def test_two_incarnations_in_one_slot_never_meet_even_with_the_same_random_numbers(base: Path) -> None:
    def numbers() -> Callable[[], uuid.UUID]:
        fixed = iter(range(100))
        return lambda: uuid.UUID(int=next(fixed))

    names = []
    for incarnation in ("aaaa", "bbbb"):
        writer = open_writer(base, incarnation=incarnation, new_uuid=numbers())
        writer.write(rows(10))
        names += [f.path for f in writer.close()]
    assert len(set(names)) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_storage_error_that_names_the_file(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = pa.OSFile
    monkeypatch.setattr(pa, "OSFile", lambda path, mode: opened("/dev/full", mode))
    writer = open_writer(base)
    writer.write(rows(1_000))
    with pytest.raises(StorageError) as failed:
        writer.close()
    assert f"_{INSTANT}.parquet of instant {INSTANT} could not be written" in str(failed.value)
    assert "No space left on device" in str(failed.value)
    writer.discard()
    assert data_files(base) == []


def test_a_folder_that_cannot_be_made_is_a_storage_error(base: Path) -> None:
    (base / "d0").write_text("in the way")
    writer = open_writer(base)
    writer.write(rows(10))
    with pytest.raises(StorageError, match="d0"):
        writer.close()
    writer.discard()


def test_a_table_that_is_gone_is_a_storage_error_and_is_not_made_again(base: Path) -> None:
    writer = open_writer(base)
    writer.write(rows(10))
    shutil.rmtree(base)
    with pytest.raises(StorageError, match="there is no table here any more"):
        writer.close()
    writer.discard()
    assert not base.exists()


def test_a_failure_in_the_middle_leaves_no_file_after_discard(base: Path) -> None:
    (base / "d7").write_text("in the way")
    writer = open_writer(base, pending_bytes_max=0)
    with pytest.raises(StorageError):
        writer.write(rows(100, days=10))
    writer.discard()
    assert data_files(base) == []


def test_other_columns_than_announced_are_refused(base: Path) -> None:
    writer = open_writer(base)
    with pytest.raises(ValueError, match="were announced"):
        writer.write(replace(rows(1), table=pa.table({"id": ["x"]})))


# --- names ------------------------------------------------------------------------------------------


@given(st.integers(0, 2**128 - 1))
def test_a_file_id_is_a_uuid_of_ours_and_its_name_reads_back(number: int) -> None:
    file_id = base_file.new_file_id(number)
    assert str(uuid.UUID(file_id.removesuffix("-0"))) + "-0" == file_id
    name = base_file.file_name(file_id, "1-22-333", INSTANT)
    assert base_file.parse_file_name(name) == (file_id, "1-22-333", INSTANT)
    assert base_file.is_ours(name)


@pytest.mark.parametrize(
    "name", ["x.parquet", f".{FILE_ID_PREFIX}.log", f"{FILE_ID_PREFIX}-0_1-1-1_1.parquet.crc", ""]
)
def test_other_names_are_not_base_files(name: str) -> None:
    assert base_file.parse_file_name(name) is None
    assert not base_file.is_ours(name)


@given(st.integers(0, 10**11), st.integers(0, 300))
def test_sequence_numbers_are_of_one_width(start: int, count: int) -> None:
    found = sequence_numbers("i_4", start, count)
    found.validate(full=True)
    assert found.to_pylist() == [f"i_4_{n:012}" for n in range(start, start + count)]


@given(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=5), min_size=1, max_size=3))
def test_the_range_of_keys_is_in_the_order_of_java(groups: list[list[str]]) -> None:
    found = KeyRange()
    for group in groups:
        found.add(pa.chunked_array([group], pa.string()))
    everything = [key for group in groups for key in group]
    assert found.low == min(everything, key=lambda k: k.encode("utf-16-be"))
    assert found.high == max(everything, key=lambda k: k.encode("utf-16-be"))
