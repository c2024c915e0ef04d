"""An ALTER TABLE in a database whose changes Debezium tells in Avro: workers' planes, Hudi, Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from table.port import UPSERT, TableSpec
from table.schema import POSITION_COLUMN
from tests.debezium_avro import envelope, event, optional
from tests.integration.test_following_table import Table, serve
from tests.registry_server import Registry

pytestmark = pytest.mark.integration

FIELDS = {"id": "int", "n": "int", "s": optional("string")}
OLD = json.dumps(envelope(FIELDS))
NEW = json.dumps(envelope({**FIELDS, "score": optional("double")}))


class Events(Table):
    """Of change events, whose columns are those of a row by the older schema."""

    envelope = "debezium"

    def _spec(self, _kind: str) -> TableSpec:
        return TableSpec(
            path=f"file://{self.path}",
            name="t",
            mode=UPSERT,
            ddl="id INT, n INT, s STRING",
            key_fields=("id",),
            bucket_count=2,
            ordering_field=POSITION_COLUMN,
            source_position=True,
            follows=True,
        )

    def value(self, text: str, one: dict[str, Any]) -> bytes:
        return event(self.registry, schema=json.loads(text), **one)

    def found(self) -> dict[int, tuple[Any, ...]]:
        """By key, without the position."""
        return {
            int(key): tuple(value for name, value in one.items() if name != POSITION_COLUMN)
            for key, one in self.rows().items()
        }


def change(lsn: int, number: int, n: int, *, op: str = "u", **more: Any) -> dict[str, Any]:
    return {"op": op, "lsn": lsn, "ts_ms": lsn, "after": {"id": number, "n": n, "s": "x", **more}}


def delete(lsn: int, number: int, **more: Any) -> dict[str, Any]:
    return {"op": "d", "lsn": lsn, "ts_ms": lsn, "before": {"id": number, "n": 0, "s": None, **more}}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[Events]:
    with Registry() as registry:
        made = Events(spark, tmp_path / "t", registry, "upsert")
        yield made
        made.close()


def test_a_column_that_the_database_gains_is_the_tables_with_its_first_row_and_deletes_go_on(
    table: Events,
) -> None:
    """One worker meets it between older events, the other only in deletes, which bring no column."""
    table.run(
        (0, [(OLD, change(1, 1, 1, op="c")), (OLD, change(2, 2, 2, op="c"))]),
        (1, [(OLD, change(1, 11, 1, op="c")), (OLD, change(2, 12, 2, op="r"))]),
    )
    assert table.found() == {1: (1, 1, "x"), 2: (2, 2, "x"), 11: (11, 1, "x"), 12: (12, 2, "x")}

    table.run((1, [(NEW, delete(3, 11, score=1.5))]))
    assert table.found() == {1: (1, 1, "x"), 2: (2, 2, "x"), 12: (12, 2, "x")}, "no column without a row"

    table.run(
        (0, [(OLD, change(3, 3, 3, op="c")), (NEW, change(4, 1, 9, score=0.5)), (NEW, delete(5, 2))]),
        (1, [(OLD, change(4, 12, 7))]),
    )
    expected = {1: (1, 9, "x", 0.5), 3: (3, 3, "x", None), 12: (12, 7, "x", None)}
    assert table.found() == expected
    serve(table, "upsert")
    assert table.found() == expected

    table.run((0, [(NEW, change(6, 3, 4, score=2.5))]), (1, [(NEW, delete(5, 12))]))
    expected |= {3: (3, 4, "x", 2.5)}
    del expected[12]
    assert table.found() == expected
    table.run((0, [(NEW, change(4, 1, 9, score=0.5)), (OLD, change(3, 3, 3, op="c"))]))
    assert table.found() == expected, "what a connector sends once more is older"
