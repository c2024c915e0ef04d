"""Change data on real Spark and Hudi: what is sent again takes nothing back, and how rows are repaired."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from participant.records.port import RecordSpec
from participant.records.registry.settings import RegistrySettings
from tests import debezium_avro as in_avro
from tests.debezium_events import POSTGRESQL, event
from tests.integration.test_upserts import Record, Upserts, upserts
from tests.registry_server import Registry

__all__ = ["upserts"]

pytestmark = pytest.mark.integration

CHANGE_DATA = {
    "ddl": "id STRING NOT NULL, region STRING, amount BIGINT, ts BIGINT",
    "partition_fields": (),
    "ordering_field": "_source_position",
    "source_position": True,
}


def change(op: str, name: str, lsn: int, amount: int = 0) -> Record:
    row = {"id": name, "region": "a", "amount": amount, "ts": lsn}
    sides = {"before": {"id": name}} if op == "d" else {"after": row}
    return json.dumps({"id": name}).encode(), event(op, source={**POSTGRESQL, "lsn": lsn}, **sides)


def tombstone(name: str) -> Record:
    return json.dumps({"id": name}).encode(), None


def held(table: Upserts) -> dict[str, int]:
    return {name: amount for (_region, name), (amount, _ts) in table.rows().items()}


def compact(spark: SparkSession, table: Upserts) -> None:
    spark.sql(
        f"call run_compaction(op => 'scheduleandexecute', path => '{table.path}',"
        " options => 'hoodie.compact.inline.max.delta.commits=1')"
    ).collect()


def test_a_delete_and_its_tombstone_that_are_sent_again_leave_a_newer_row(
    upserts: Callable[..., Upserts],
) -> None:
    table = upserts(**CHANGE_DATA)
    gone = [change("d", "k", 20), tombstone("k")]
    table.run([change("c", "k", 10, 1)])
    table.run(gone)
    assert held(table) == {}
    table.run([change("c", "k", 30, 3)])
    table.run(gone)  # between commits, before the event of the newer row comes again
    assert held(table) == {"k": 3}
    table.run([change("c", "k", 30, 3), change("u", "k", 40, 4)])
    assert held(table) == {"k": 4}


def test_a_row_whose_delete_was_compacted_is_back_until_a_stretch_that_is_sent_again_has_deleted_it_again(
    spark: SparkSession, upserts: Callable[..., Upserts]
) -> None:
    table = upserts(**CHANGE_DATA)
    stretch = [change("c", "k", 10, 1), change("u", "k", 15, 2), change("d", "k", 20), tombstone("k")]
    table.run([*stretch, change("c", "other", 21, 1)])
    compact(spark, table)
    table.run(stretch[:2])
    assert held(table) == {"k": 2, "other": 1}
    table.run(stretch[2:])
    assert held(table) == {"other": 1}
    compact(spark, table)
    table.run(stretch)  # within one transaction nobody sees it
    assert held(table) == {"other": 1}


def test_a_new_snapshot_repairs_what_was_deleted_and_compacted_before(
    spark: SparkSession, upserts: Callable[..., Upserts]
) -> None:
    """As docs/upserts.md tells an operator to."""
    table = upserts(**CHANGE_DATA)
    table.run([change("c", f"k{n}", 10 + n, n) for n in range(6)])
    snapshot = [change("r", f"k{n}", 100, 100 + n) for n in range(6)]
    table.run(snapshot)
    assert held(table) == {f"k{n}": n for n in range(6)}  # a snapshot alone never takes a change back
    spark.sql(f"create table repaired using hudi location '{table.path}'")
    try:
        spark.sql("delete from repaired where id in ('k1', 'k2', 'k3')")
    finally:
        spark.sql("drop table repaired")
    compact(spark, table)
    table.run([change("u", "k3", 120, 333), *snapshot])  # a change from while the snapshot ran counts
    repaired = {"k1": 101, "k2": 102, "k3": 333}
    assert held(table) == {"k0": 0, "k4": 4, "k5": 5} | repaired


def test_change_data_in_avro_is_rows_and_deletes_in_the_columns_that_debeziums_types_mean(
    spark: SparkSession, tmp_path: Path
) -> None:
    after = {
        "id": 1,
        "paid": Decimal("12.34"),
        "due": 20_783,
        "made": 1_795_705_445_678_901,
        "seen": "2026-11-26T15:04:05.678901Z",
        "free": {"scale": 3, "value": (-1234).to_bytes(2, "big", signed=True)},
        "note": "ä",
    }
    others = [{"id": number, "paid": Decimal(number)} for number in (2, 3)]
    with Registry() as registry:
        settings = RegistrySettings(url=registry.url, cache_folder=str(tmp_path / "schemas"))
        table = Upserts(
            spark,
            tmp_path / "t",
            record=RecordSpec(format="avro", key_format="avro", envelope="debezium", registry=settings),
            **{**CHANGE_DATA, "ddl": in_avro.DDL},
        )
        try:
            created = [in_avro.event(registry, "c", 10 + one["id"], after=one) for one in (after, *others)]
            table.run([(in_avro.key(registry, number), value) for number, value in enumerate(created, 1)])
            gone = in_avro.event(registry, "d", 20, before=others[0])
            changed = in_avro.event(registry, "u", 21, before=after, after={**after, "note": "b"})
            table.run(
                [
                    (in_avro.key(registry, 2), gone),
                    (in_avro.key(registry, 2), None),
                    (in_avro.key(registry, 1), changed),
                    (in_avro.key(registry, 3), None),
                ]
            )
            spark.catalog.clearCache()
            spark.read.format("hudi").load(str(table.path)).createOrReplaceTempView("in_avro")
            (found,) = spark.sql(
                "select id, cast(paid as string), cast(due as string), cast(made as string),"
                " unix_micros(seen), cast(free as string), note from in_avro"
            ).collect()
        finally:
            table.table.close()
    assert tuple(found) == (
        *(1, "12.34", "2026-11-26", "2026-11-26 15:04:05.678901"),
        *(1_795_705_445_678_901, "-1.2340", "b"),
    )
