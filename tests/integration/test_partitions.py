"""Tables of several partition fields: what Spark writes beside Lockstep lands in the same folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTable
from pyspark.sql import SparkSession

from table.errors import Contradiction
from tests.data_files import data_files
from tests.integration.test_foreign_writers import INSERT, TOLD, Foreign
from tests.integration.test_upserts import Upserts, record
from tests.merge_model import Change

pytestmark = pytest.mark.integration

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
CODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "insert": {**INSERT, "properties": {}},
    "insert, keyless, hive style": {**INSERT, "key_fields": (), "properties": HIVE},
    "insert, two keys, encoded": {**INSERT, "key_fields": ("id", "region"), "properties": CODED},
    "upsert": {"properties": {}},
    "upsert, hive style, encoded": {"properties": {**HIVE, **CODED}},
}
FIRST = [Change(key=("ab"[n % 2], f"k{n}"), amount=n // 2 % 2, ts=n) for n in range(8)]
"""Regions a and b, amounts 0 and 1: four table partitions."""


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., tuple[Upserts, Foreign]]]:
    made: list[tuple[Upserts, Foreign]] = []

    def make(**changes: Any) -> tuple[Upserts, Foreign]:
        by = {"partition_fields": ("region", "amount"), "kafka_columns": False}
        table = Upserts(spark, tmp_path / "t", **{**by, **changes})
        table.run([record(one) for one in FIRST])
        told = TOLD if table.spec.mode == "insert" else {}  # the other kind keeps it with the table
        made.append((table, Foreign(spark, tmp_path / "t", tmp_path, told)))
        return made[-1]

    yield make
    for table, foreign in made:
        foreign.close()
        table.table.close()


def folders(table: Upserts) -> dict[str, str]:
    """id -> folder, as rows say it; each row's file is in it."""
    table.spark.catalog.clearCache()
    read = table.spark.read.format("hudi").load(str(table.path))
    rows = read.selectExpr("id", "_hoodie_partition_path p", "region", "amount").collect()
    for row in rows:
        assert (table.path / row["p"]).is_dir()
        assert [part.rpartition("=")[2] for part in row["p"].split("/")] == [
            row["region"],
            str(row["amount"]),
        ]
    return {row["id"]: row["p"] for row in rows}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_spark_inserts_merges_and_deletes_is_in_the_same_folders(
    make: Callable[..., tuple[Upserts, Foreign]], layout: str
) -> None:
    table, foreign = make(**LAYOUTS[layout])
    before = folders(table)
    assert len(set(before.values())) == 4
    foreign.run("insert into {t} (id, ts, deleted, region, amount) select 'n1', 90L, false, 'a', 1L")
    foreign.run(
        "merge into {t} t using (select 'k2' id, 'a' region, 1L amount, 95L ts, false deleted"
        " union all select 'n2', 'b', 0L, 96L, false) s"
        " on t.id = s.id and t.region = s.region and t.amount = s.amount"
        " when matched then update set id = s.id, ts = s.ts"
        " when not matched then insert (id, ts, deleted, region, amount)"
        " values (s.id, s.ts, s.deleted, s.region, s.amount)"
    )
    foreign.run("delete from {t} where id = 'k3'")
    after = folders(table)
    assert set(after) == (set(before) | {"n1", "n2"}) - {"k3"}
    assert set(after.values()) == set(before.values())
    assert after["n1"] == after["k2"] == before["k2"]
    if "insert" not in layout:  # ours meets what Spark wrote
        table.run([record(Change(key=("a", "n1"), amount=1, ts=99))])
        assert folders(table) == after


@pytest.mark.parametrize("layout", ["insert", "insert, keyless, hive style", "insert, two keys, encoded"])
def test_a_query_reads_no_file_of_table_partitions_that_it_does_not_ask_for(
    make: Callable[..., tuple[Upserts, Foreign]], layout: str
) -> None:
    """All other files hold rubbish."""
    table, _ = make(**LAYOUTS[layout])
    kept = folders(table)["k2"]
    for path in data_files(table.path):
        if path.parent != table.path / kept:
            path.write_bytes(b"rubbish".ljust(path.stat().st_size, b"."))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    read = table.spark.read.format("hudi").load(str(table.path))
    found = read.where("region = 'a' and amount = 1").select("id").collect()
    assert sorted(row[0] for row in found) == ["k2", "k6"]
    filters = [("region", "=", "a"), ("amount", "=", "1")]
    batches = HudiTable(str(table.path)).read(HudiReadOptions(filters=filters))
    assert sorted(one for batch in batches for one in pa.record_batch(batch)["id"].to_pylist()) == [
        "k2",
        "k6",
    ]


@pytest.mark.parametrize("keys", [("id",), ("id", "amount")], ids="+".join)
def test_a_table_that_spark_made_with_a_custom_key_generator_is_written_as_it_writes(
    spark: SparkSession, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    """All of its fields SIMPLE."""
    options = {
        "hoodie.table.name": "changes",
        "hoodie.datasource.write.recordkey.field": ",".join(keys),
        "hoodie.datasource.write.partitionpath.field": "region:SIMPLE,amount:SIMPLE",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.datasource.write.operation": "bulk_insert",
    }
    ddl = "id STRING, region STRING, amount BIGINT, ts BIGINT, deleted BOOLEAN"
    frame = spark.createDataFrame([("s1", "a", 1, 1, False), ("s2", "b", 0, 1, False)], ddl)
    frame.write.format("hudi").options(**options).mode("overwrite").save(str(tmp_path / "t"))
    by = {"partition_fields": ("region", "amount"), "kafka_columns": False, "key_fields": keys}
    table = Upserts(spark, tmp_path / "t", **{**INSERT, "ddl": ddl, **by})
    try:
        table.run([record(one) for one in FIRST])
        found = folders(table)
        assert (found["s1"], found["s2"]) == (found["k2"], found["k1"]) == ("a/1", "b/0")
        keyed = (
            table.spark.read.format("hudi").load(str(table.path)).select("id", "_hoodie_record_key", "amount")
        )
        for name, key, amount in keyed.collect():
            assert key == (name if len(keys) == 1 else f"id:{name},amount:{amount}")
    finally:
        table.table.close()


def test_another_order_of_the_fields_is_refused(make: Callable[..., tuple[Upserts, Foreign]]) -> None:
    make(**INSERT)
    with pytest.raises(Contradiction, match=r"partition\.fields is region,amount.*says amount,region"):
        make(**INSERT, partition_fields=("amount", "region"))
