"""Deletes by a field: a delete needs what names and orders its row, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from participant.records.port import Decoded
from tests.unit.participant.records.columns.made import batch, made

DDL = "id BIGINT NOT NULL, email STRING NOT NULL, n DECIMAL(10,2), deleted BOOLEAN"
UNWRAPPED = {"deleted": "value.__deleted as STRING"}


def decoded(*values: dict[str, Any] | None, mapped: bool = False, ddl: str = DDL, **how: Any) -> Decoded:
    field = "__deleted" if mapped else "deleted"
    flags = {True: "true", False: "false"} if mapped else {True: True, False: False}
    rows = [
        {
            field if name == "deleted" else name: flags.get(one, one) if name == "deleted" else one
            for name, one in value.items()
        }
        if value is not None
        else None
        for value in values
    ]
    reads = made(ddl, UNWRAPPED if mapped else {}, key=["id"], delete_field="deleted", **how)
    raw = [json.dumps(row).encode() if row is not None else None for row in rows]
    return reads.decode(batch(raw, [b'{"id": 9}'] * len(raw)))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("reads", ["plain", "auto"])
def test_a_delete_may_lack_required_columns_and_a_row_may_not(mapped: bool, reads: str) -> None:
    found = decoded(
        {"id": 1, "email": "a", "n": "1.5", "deleted": False},
        {"id": 2, "email": None, "n": None, "deleted": True},
        None,
        {"id": 3, "deleted": True},
        {"id": 4, "email": None, "deleted": False},
        {"id": 5},
        {"id": 6, "email": "b", "deleted": None},
        mapped=mapped,
        decoder=reads,
    )
    assert found.table.column("id").to_pylist() == [1, 2, 3, 6]
    assert found.deleted is not None
    assert found.deleted.tolist() == [False, True, True, False]
    assert found.kept is not None
    assert found.kept.tolist() == [0, 1, 3, 6]
    assert found.tombstones is not None
    assert found.tombstones.places.tolist() == [2]
    reasons = found.rejects.by_place()
    assert sorted(reasons) == [4, 5]
    assert all(why.startswith("required ") and "email" in why for why in reasons.values())


@pytest.mark.parametrize("mapped", [False, True])
def test_a_delete_without_its_key_or_its_table_partition_is_refused(mapped: bool) -> None:
    found = decoded(
        {"id": None, "email": "a", "region": "x", "deleted": True},
        {"id": 1, "email": "a", "deleted": True},
        {"id": 2, "region": "x", "deleted": True},
        mapped=mapped,
        ddl=f"{DDL}, region STRING NOT NULL",
        partition_by=("region",),
    )
    assert found.table.column("id").to_pylist() == [2]
    reasons = found.rejects.by_place()
    assert "id" in reasons[0]
    assert "region" in reasons[1]
