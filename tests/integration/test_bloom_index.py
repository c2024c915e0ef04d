"""A foreign writer that looks rows up by Hudi's BLOOM index, on an insert table of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.integration.test_copied_files import make
from tests.integration.test_foreign_writers import TOLD
from tests.integration.test_upserts import Upserts, record
from tests.merge_model import Change

pytestmark = pytest.mark.integration

__all__ = ["make"]


def upsert(table: Upserts, index: str, changes: list[Change]) -> None:
    """By Spark's datasource, which looks up where each row is."""
    rows = [(one.key[1], one.amount, one.ts, False, one.key[0]) for one in changes]
    frame = table.spark.createDataFrame(
        rows, "id string, amount bigint, ts bigint, deleted boolean, region string"
    )
    columns = table.spark.read.format("hudi").load(str(table.path)).columns
    kafka = [name for name in columns if name.startswith("_kafka")]
    for name in kafka:
        kind = dict(table.spark.read.format("hudi").load(str(table.path)).dtypes)[name]
        frame = frame.selectExpr("*", f"cast(null as {kind}) as {name}")
    options: dict[str, Any] = {
        **TOLD,
        "hoodie.table.name": "changes",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.index.type": index,
        "hoodie.metadata.enable": "false",
    }
    frame.write.format("hudi").options(**options).mode("append").save(str(table.path))


def test_upserts_of_others_by_the_index_simple_find_rows_and_by_the_index_bloom_fail_and_change_nothing(
    make: Callable[..., Upserts],
) -> None:
    """Files of ours have no filter of Hudi's, without which its BLOOM index looks no key up."""
    table = make()
    table.run([record(Change(key=("a", f"k{n}"), amount=n, ts=n)) for n in range(20)])
    before = table.rows()
    with pytest.raises(Py4JJavaError):
        upsert(table, "BLOOM", [Change(key=("a", "k3"), amount=300, ts=1)])
    assert table.rows() == before
    upsert(
        table, "SIMPLE", [Change(key=("a", "k3"), amount=300, ts=1), Change(key=("a", "n1"), amount=1, ts=1)]
    )
    assert table.rows() == {**before, ("a", "k3"): (300, 1), ("a", "n1"): (1, 1)}
