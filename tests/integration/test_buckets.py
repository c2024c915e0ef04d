"""Buckets and log files, held against Hudi's own classes and against what Spark makes of them."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from table.hudi.avro import to_avro
from table.hudi.files.base_file import (
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
    parse_file_name,
)
from table.hudi.files.buckets import buckets
from table.hudi.files.keys import EMPTY_FIELD, NULL_FIELD, complex_keys
from table.hudi.files.log_file import (
    DELETE_BLOCK,
    INSTANT_TIME,
    SCHEMA,
    Delete,
    bucket_file_id,
    data_block,
    delete_block,
    is_log_file,
    log_file_name,
    parse_log_file_name,
    read_blocks,
)
from table.schema import parse_ddl

pytestmark = pytest.mark.integration

MANY = 2**31 - 1
"""So many buckets tell any two hashes apart."""
PIECES = [*",,::", "id:", "sid:", ",st:", NULL_FIELD, EMPTY_FIELD, *"\"'\\ü", "日本", *"😀𝄞x\0\n "]
PIECES += ["10", "Smith", "%3A"]
INSTANT = "20261120201248694"


def odd_keys(count: int) -> list[str]:
    chance = random.Random(20)
    return ["".join(chance.choices(PIECES, k=chance.randint(0, 9))) for _ in range(count)]


def comes_back(key: str, fields: Sequence[str]) -> bool:
    """Whether Hudi 1.2.0's search for the values in a key ends."""
    if "," not in key or ":" not in key:
        return True
    at, last = 0, key.rindex(":")
    while True:
        colon = key.index(":", at)
        comma = key.find(",", colon, last)
        if comma < 0:
            return colon == last or key[at:colon] in fields or not any(fields)
        at = key.rindex(",", comma, key.index(":", comma)) + 1


def hudi_buckets(spark: SparkSession, keys: Sequence[str], fields: Sequence[str], count: int) -> list[int]:
    """`BucketIdentifier.getBucketId` of each key, called by Spark: one query for all."""
    frame = spark.createDataFrame(list(enumerate(keys)), "n int, key string").coalesce(1)
    name = "org.apache.hudi.index.bucket.BucketIdentifier"
    call = f"reflect('{name}', 'getBucketId', key, '{','.join(fields)}', {count})"
    found = dict(map(tuple, frame.selectExpr("n", f"int({call})").collect()))
    return [found[n] for n in range(len(keys))]


@pytest.mark.parametrize("fields", [("id",), ("sid", "st"), ("",)])
def test_the_bucket_of_an_odd_key_is_hudis(spark: SparkSession, fields: tuple[str, ...]) -> None:
    keys = [key for key in odd_keys(700) if comes_back(key, fields)]
    assert sum("," in key and ":" in key for key in keys) > 150
    found = buckets(pa.chunked_array([keys], pa.string()), fields, MANY)
    assert dict(zip(keys, found.tolist(), strict=True)) == dict(
        zip(keys, hudi_buckets(spark, keys, fields, MANY), strict=True)
    )


def test_the_bucket_of_a_key_of_several_fields_is_hudis(spark: SparkSession) -> None:
    fields = ("sid", "st")
    values = [value or None for value in odd_keys(1200)]
    columns = [pa.chunked_array([half], pa.string()) for half in (values[::2], values[1::2])]
    keys = [key for key in complex_keys(fields, columns).keys.to_pylist() if comes_back(key, fields)]
    assert len(keys) > 500
    found = buckets(pa.chunked_array([keys], pa.string()), fields, 256)
    assert found.tolist() == hudi_buckets(spark, keys, fields, 256)


def test_a_buckets_file_id_is_hudis(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    identifier = jvm.org.apache.hudi.index.bucket.BucketIdentifier
    assert f"{identifier.newBucketFileIdPrefix(255, True)}-0" == bucket_file_id(255)
    assert identifier.bucketIdFromFileId(bucket_file_id(255)) == 255


# --- log files ----------------------------------------------------------------------------------------

ORDERINGS: dict[str, tuple[Any, Any, Any]] = {
    "INT": (-1, 1, 2),
    "BIGINT": (-1, 0, 2**40),
    "DOUBLE": (0.1, 0.2, 0.3),
    "STRING": ("a", "b", "ü"),
    "DATE": (date(1969, 1, 1), date(1969, 12, 31), date(2026, 1, 1)),
    "TIMESTAMP": (
        datetime(1969, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    ),
    "DECIMAL(10,2)": (Decimal("-1.50"), Decimal("0.00"), Decimal("12345678.90")),
}
"""An earlier, a middle and a later value of each type."""
MERGED = ["BIGINT", "DATE", "TIMESTAMP", "DECIMAL(10,2)"]
"""INT and DOUBLE do as BIGINT. A STRING does not: Hudi 1.2.0 gives a data block's row that of a later row."""


def log_schema(schema: pa.Schema, name: str) -> str:
    avro = json.loads(to_avro(schema, name))
    meta = [{"name": column, "type": ["null", "string"], "default": None} for column in META_COLUMNS]
    return json.dumps(avro | {"fields": meta + avro["fields"]})


def parquet(schema: pa.Schema, instant: str, name: str, rows: Sequence[tuple[Any, ...]]) -> bytes:
    """A parquet file of rows that begin with their key, with the meta columns."""
    keys = [row[0] for row in rows]
    meta = {COMMIT_TIME: instant, RECORD_KEY: None, PARTITION_PATH: "", FILE_NAME: name}
    columns: dict[str, Any] = {column: [meta.get(column, "1_0_1")] * len(rows) for column in META_COLUMNS}
    columns[RECORD_KEY] = keys
    for n, field in enumerate(schema):
        columns[field.name] = pa.array([row[n] for row in rows], field.type)
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, store_schema=False)
    return file.getvalue()


def whole(instant: str, schema: str, content: bytes) -> bytes:
    head, tail = data_block(instant, schema, len(content))
    return head + content + tail


def test_hudis_reader_finds_our_blocks(spark: SparkSession, tmp_path: Path) -> None:
    schema = parse_ddl("id STRING, at BIGINT")
    avro = log_schema(schema, "t")
    name = log_file_name(bucket_file_id(7), INSTANT, "1-2-3")
    content = parquet(schema, INSTANT, name, [("k", 1)])
    kinds = {ddl: parse_ddl(f"at {ddl}").field("at").type for ddl in ORDERINGS}
    deletes = {
        ddl: [*(Delete("ü,😀:", "p=a", value) for value in values), Delete("k", "")]
        for ddl, values in ORDERINGS.items()
    }
    blocks = [delete_block(INSTANT, avro, deletes[ddl], kinds[ddl]) for ddl in ORDERINGS]
    (tmp_path / name).write_bytes(b"".join([whole(INSTANT, avro, content), *blocks]))

    jvm: Any = spark._jvm
    hudi = jvm.org.apache.hudi
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())
    path = hudi.storage.StoragePath(f"file://{tmp_path / name}")
    file = hudi.common.model.HoodieLogFile(path)
    assert (file.getFileId(), file.getLogWriteToken(), file.getDeltaCommitTime()) == parse_log_file_name(name)
    reader = hudi.common.table.log.HoodieLogFormat.newReader(
        hudi.storage.HoodieStorageUtils.getStorage(path, conf),
        file,
        hudi.common.schema.HoodieSchema.parse(avro),
    )
    found = []
    while reader.hasNext():
        found.append(reader.next())
    assert [block.getBlockType().toString() for block in found] == [
        "PARQUET_DATA_BLOCK",
        *["DELETE_BLOCK"] * len(blocks),
    ]
    for block in found:
        header = {
            entry.getKey().ordinal(): entry.getValue() for entry in block.getLogBlockHeader().entrySet()
        }
        assert header == {INSTANT_TIME: INSTANT, SCHEMA: avro}
    assert found[0].getBlockContentLocation().get().getBlockSize() == len(content)
    for ddl, block in zip(ORDERINGS, found[1:], strict=True):
        records = list(block.getRecordsToDelete())
        assert [(r.getRecordKey(), r.getPartitionPath()) for r in records] == [
            (delete.key, delete.table_partition) for delete in deletes[ddl]
        ]
        assert records[-1].getOrderingValue() == 0
    reader.close()


def name_of(ddl: str) -> str:
    return ddl.partition("(")[0].lower()


def base_file(table: Path) -> tuple[str, str]:
    """File id and instant of the only base file."""
    [(file_id, _, instant)] = filter(None, (parse_file_name(path.name) for path in table.iterdir()))
    return file_id, instant


def make_table(spark: SparkSession, path: Path, ddl: str, rows: Sequence[tuple[str, Any]]) -> None:
    """A merge-on-read table ordered by column `at`, with rows of v = 0 in one base file."""
    spark.sql(
        f"create table {path.name} (id string, v int, at {ddl}) using hudi location 'file://{path}'"
        " tblproperties (type='mor', primaryKey='id', preCombineField='at', 'hoodie.metadata.enable'='false')"
    )
    values = ", ".join(f"('{key}', 0, cast('{value}' as {ddl}))" for key, value in rows)
    spark.sql(f"insert into {path.name} values {values}")


@pytest.mark.parametrize("ddl", MERGED)
def test_spark_merges_and_compacts_our_blocks_by_their_ordering_values(
    spark: SparkSession, tmp_path: Path, ddl: str
) -> None:
    early, middle, late = ORDERINGS[ddl]
    path = tmp_path / f"merged_{name_of(ddl)}"
    old = ["kept", "gone", "unordered", "newer", "older", "revived", "stale"]
    make_table(spark, path, ddl, [(key, middle) for key in old])
    file_id, instant = base_file(path)

    schema = parse_ddl(f"id STRING, v INT, at {ddl}")
    avro = log_schema(schema, path.name)
    name = log_file_name(file_id, instant, "1-2-3")
    first = [("newer", 1, late), ("older", 1, early), ("a", 1, middle), ("b", 1, middle), ("c", 1, middle)]
    deletes = [
        Delete("kept", "", early),
        Delete("gone", "", late),
        Delete("unordered", ""),
        Delete("a", "", early),
        Delete("b", "", late),
        Delete("c", ""),
        Delete("revived", "", middle),
        Delete("stale", "", late),
    ]
    second = [("revived", 2, late), ("stale", 2, middle)]
    (path / name).write_bytes(
        whole(instant, avro, parquet(schema, instant, name, first))
        + delete_block(instant, avro, deletes, schema.field("at").type)
        + whole(instant, avro, parquet(schema, instant, name, second))
    )
    expected = {"kept": 0, "newer": 1, "older": 0, "a": 1, "revived": 2}
    assert content_of(spark, path) == expected

    options = "hoodie.compact.inline.max.delta.commits=1,hoodie.metadata.enable=false"
    spark.sql(
        f"call run_compaction(op => 'scheduleAndExecute', table => '{path.name}', options => '{options}')"
    ).collect()
    assert len([file for file in path.iterdir() if parse_file_name(file.name)]) == 2
    assert content_of(spark, path) == expected


@pytest.mark.parametrize("ddl", [ddl for ddl in ORDERINGS if ddl != "DATE"])
def test_our_deletes_are_sparks_byte_for_byte(spark: SparkSession, tmp_path: Path, ddl: str) -> None:
    """But for a DATE: Spark's writer makes something of it that its own Avro schema has no place for."""
    _, middle, late = ORDERINGS[ddl]
    path = tmp_path / f"deleted_{name_of(ddl)}"
    make_table(spark, path, ddl, [("kept", middle), ("gone", middle)])
    gone = [("gone", 1, late, True)]
    options = {
        "hoodie.table.name": path.name,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "at",
        "hoodie.metadata.enable": "false",
    }
    frame = spark.createDataFrame(gone, f"id string, v int, at {ddl}, _hoodie_is_deleted boolean")
    frame.write.format("hudi").options(**options).mode("append").save(f"file://{path}")
    kind = parse_ddl(f"at {ddl}").field("at").type
    assert only_delete_block(path) == content_of_deletes([Delete("gone", "", late)], kind)


def test_a_delete_without_an_ordering_value_is_what_sql_writes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "deleted_by_sql"
    make_table(spark, path, "BIGINT", [("kept", 1), ("gone", 1)])
    spark.sql(f"delete from {path.name} where id = 'gone'")
    assert only_delete_block(path) == content_of_deletes([Delete("gone", "")], pa.int64())


def content_of(spark: SparkSession, path: Path) -> dict[str, int]:
    rows = spark.read.format("hudi").load(f"file://{path}").select("id", "v").collect()
    return {row["id"]: row["v"] for row in rows}


def only_delete_block(path: Path) -> bytes:
    """The content of the only block of the table's only log file."""
    [log] = [file for file in path.iterdir() if is_log_file(file.name)]
    [block] = read_blocks(log.read_bytes())
    assert block.kind == DELETE_BLOCK
    assert {INSTANT_TIME, SCHEMA} <= block.header.keys()
    return block.content


def content_of_deletes(deletes: Sequence[Delete], kind: pa.DataType) -> bytes:
    [block] = read_blocks(delete_block(INSTANT, "{}", deletes, kind))
    return block.content
