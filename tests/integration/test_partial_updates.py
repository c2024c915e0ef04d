"""Why a row with an unavailable value is refused: what Hudi 1.2 makes of each of its partial updates.

`participant.records.unavailable` refuses such rows. If a test fails with a newer Hudi, the old value can
perhaps be kept instead.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from participant.records.placeholder import UNAVAILABLE
from participant.records.port import RecordSpec
from table.hudi.files import base_file, log_file
from table.hudi.files.log_writer import PLACE, RECORD_KEY, LogWriter
from tests.integration.test_upserts import Record, Upserts, upserts  # noqa: F401

pytestmark = pytest.mark.integration

COLUMNS = "id BIGINT, text STRING, raw BINARY, many ARRAY<STRING>, inside STRUCT<b: STRING>, ts BIGINT"
FILLING = {
    "hoodie.table.name": "filled",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
}
MODE = {
    "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
    "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": UNAVAILABLE,
}
"""Properties of a table whose readers keep the old value where the new one is the placeholder."""


def without_jvm(path: Path) -> list[dict[str, Any]]:
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    return [one for batch in batches for one in pa.record_batch(batch).to_pylist()]


def keep_in_table(spark: SparkSession, path: Path, properties: dict[str, str]) -> None:
    hudi = spark._jvm.org.apache.hudi
    conf = hudi.storage.hadoop.HadoopStorageConfiguration(spark._jsc.hadoopConfiguration())
    client = hudi.common.table.HoodieTableMetaClient.builder().setBasePath(str(path)).setConf(conf).build()
    java = spark._jvm.java.util.Properties()
    for name, value in properties.items():
        java.setProperty(name, value)
    hudi.common.table.HoodieTableConfig.update(client.getStorage(), client.getMetaPath(), java)


def test_hudi_fills_in_an_unavailable_text_and_no_value_of_another_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "filled"

    def put(number: int, value: str, ts: int) -> None:
        row = (number, value, value.encode(), [value], {"b": value}, ts)
        writer = spark.createDataFrame([row], COLUMNS).write.format("hudi").options(**FILLING)
        writer.mode("append").save(str(path))

    def read() -> dict[int, tuple[Any, ...]]:
        spark.catalog.clearCache()
        rows = spark.read.format("hudi").load(str(path)).collect()
        return {one.id: (one.text, bytes(one.raw).decode(), one.many[0], one.inside.b) for one in rows}

    put(1, "old", 1)
    keep_in_table(spark, path, MODE)
    put(1, UNAVAILABLE, 2)
    put(2, UNAVAILABLE, 2)
    lost = (UNAVAILABLE,) * 3
    assert read() == {1: ("old", *lost), 2: (UNAVAILABLE, *lost)}
    assert [one["text"] for one in without_jvm(path)] == [UNAVAILABLE] * 2  # that reader knows no such mode


def test_hudi_makes_a_row_of_garbage_of_some_columns_of_a_row_that_is_not_there(
    upserts: Callable[..., Upserts],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A block of some columns keeps the others. Of a missing row it makes values that nobody sent."""
    ddl = "id STRING NOT NULL, region STRING, amount BIGINT, ts BIGINT, more BIGINT"
    table = upserts(ddl=ddl, partition_fields=(), record=RecordSpec(), bucket_count=1, kafka_columns=False)
    whole = LogWriter._append_rows

    def of_some_columns(writer: Any, log: Any, rows: pa.Table) -> None:
        lacking = pc.equal(rows.column("amount"), -1)
        if (full := rows.filter(pc.invert(lacking))).num_rows:
            whole(writer, log, full)
        if (some := rows.filter(lacking)).num_rows:
            writer._append(log, block_of_some(writer, log, some.drop_columns(["amount"])))
            log.rows += some.num_rows

    monkeypatch.setattr(LogWriter, "_append_rows", of_some_columns)
    table.run([record("a", 1, 1), record("b", 2, 1)])
    table.run([record("a", -1, 2)])
    assert read_all(table) == {"a": (1, 2, 7), "b": (2, 1, 7)}
    table.run([record("c", -1, 2)])
    found = read_all(table)
    assert {name: found[name] for name in "ab"} == {"a": (1, 2, 7), "b": (2, 1, 7)}
    assert found.get("c") != (None, 2, 7)


def record(name: str, amount: int, ts: int) -> Record:
    value = {"id": name, "region": "x", "amount": amount, "ts": ts, "more": 7}
    return None, json.dumps(value).encode()


def read_all(table: Upserts) -> dict[str, tuple[Any, ...]]:
    table.spark.catalog.clearCache()
    frame = table.spark.read.format("hudi").load(str(table.path))
    rows = frame.select("id", "amount", "ts", "more").collect()
    return {one.id: (one.amount, one.ts, one.more) for one in rows}


def block_of_some(writer: Any, log: Any, rows: pa.Table) -> bytes:
    """A data block whose header says that its rows have some columns only."""
    data = rows.drop_columns([RECORD_KEY, PLACE])
    schema = json.loads(writer._layout.avro)
    named = {*data.column_names, *(field.name for field in base_file.meta_fields())}
    schema["fields"] = [field for field in schema["fields"] if field["name"] in named]
    seqnos = base_file.sequence_numbers(f"{writer._instant}_0", writer._rows, rows.num_rows)
    meta = base_file.meta_columns(
        instant=writer._instant,
        seqnos=seqnos,
        keys=rows.column(RECORD_KEY),
        partition=log.table_partition,
        name=log.file_id,
    )
    table = pa.table(meta + data.columns, schema=pa.schema([*base_file.meta_fields(), *data.schema]))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = sink.getvalue().to_pybytes()
    header = {log_file.INSTANT_TIME: writer._instant, log_file.SCHEMA: json.dumps(schema), 7: "true"}
    body = (
        struct.pack(">ii", 1, log_file.PARQUET_BLOCK)
        + log_file._map(header)
        + struct.pack(">q", len(content))
    )
    length = len(body) + len(content) + 4 + 8
    head = b"#HUDI#" + struct.pack(">q", length) + body
    return head + content + log_file._map({}) + struct.pack(">q", length + 6)
