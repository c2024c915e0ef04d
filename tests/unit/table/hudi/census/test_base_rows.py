"""The rows of a table with a column that the `hudi` reader does not know: of the base files alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from table.errors import Unavailable
from table.hudi.avro import to_avro
from table.hudi.census.base_rows import WholeReader
from table.hudi.files.base_file import file_name
from table.hudi.reader.reader import KAFKA_COLUMNS
from table.port import INSTANT
from table.schema import table_schema
from tests.hudi_avro import COMMIT, REPLACE, avro
from tests.timeline_files import Table, time
from tests.unit.table.hudi.census.test_census import TOKEN, group

UNKNOWN = ("inside STRUCT<at: TIMESTAMP_NTZ>", "headers MAP<STRING,STRING>")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t", **{"hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.name": "t"})


def write(table: Table, number: int, instant: int, offsets: list[int], folder: str = "a") -> Path:
    file = table.base / folder / file_name(group(number), TOKEN, time(instant))
    file.parent.mkdir(exist_ok=True)
    count = len(offsets)
    columns = {
        "_kafka_offset": pa.array(offsets, pa.int64()),
        "_kafka_topic": pa.array(["t"] * count),
        "_kafka_partition": pa.array([0] * count, pa.int32()),
        "_hoodie_commit_time": pa.array([time(instant)] * count),
        "id": pa.array(["x"] * count),
    }
    pq.write_table(pa.table(columns), file)
    return file


def done(column: str, *files: Path, replaced: dict[str, list[str]] | None = None) -> bytes:
    """A completed instant that lists these files."""
    schema = to_avro(table_schema(f"id STRING, {column}", kafka_columns=True), "t")
    stats = {file.parent.name: [{"path": f"{file.parent.name}/{file.name}"}] for file in files}
    record = {"partitionToWriteStats": stats, "extraMetadata": {"schema": schema}, "operationType": "INSERT"}
    if replaced is None:
        return avro(COMMIT, record)
    return avro(REPLACE, {**record, "partitionToReplaceFileIds": replaced})


def found(table: Table) -> dict[str, list[tuple[str, int]]]:
    try:
        rows = WholeReader(str(table.base)).rows()
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        pytest.fail(f"the table is not opened: {error!r}")
    assert rows.kafka_columns
    read = {}
    for file in rows.files:
        batches = [batch for batch in file.batches if batch.num_rows]
        assert all(batch.schema.names == [INSTANT, *KAFKA_COLUMNS] for batch in batches)
        read[file.name] = [
            (row[INSTANT], row["_kafka_offset"]) for batch in batches for row in batch.to_pylist()
        ]
    return read


@pytest.mark.parametrize("column", UNKNOWN)
def test_a_group_has_the_rows_of_its_newest_complete_file_and_one_that_was_replaced_has_none(
    table: Table, column: str
) -> None:
    first = write(table, 1, 1, [0, 1])
    newest = write(table, 1, 2, [0, 1, 2])
    write(table, 1, 4, [9])
    write(table, 2, 1, [7], folder="b")
    write(table, 4, 2, [8])  # which no commit lists
    other = write(table, 3, 3, [7], folder="b")
    for instant, file in ((1, first), (2, newest)):
        table.add(f"{time(instant)}_{time(instant)}.commit", done(column, file))
    replaced = done(column, other, replaced={"b": [group(2)]})
    table.add(f"{time(3)}_{time(3)}.replacecommit", replaced)
    table.add(f"{time(4)}.commit.requested")
    assert found(table) == {
        f"a/{newest.name}": [(time(2), 0), (time(2), 1), (time(2), 2)],
        f"b/{other.name}": [(time(3), 7)],
    }


def test_a_file_that_cannot_be_read_hides_no_other(table: Table) -> None:
    broken, whole = write(table, 1, 1, [0]), write(table, 2, 2, [1])
    broken.write_bytes(b"PAR1")
    table.add(f"{time(1)}_{time(1)}.commit", done(UNKNOWN[0], broken))
    table.add(f"{time(2)}_{time(2)}.commit", done(UNKNOWN[0], whole))
    files = {file.name: file.batches for file in WholeReader(str(table.base)).rows().files}
    with pytest.raises(Unavailable, match=broken.name):
        list(files[f"a/{broken.name}"])
    assert sum(batch.num_rows for batch in files[f"a/{whole.name}"]) == 1
