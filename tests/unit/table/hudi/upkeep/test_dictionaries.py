"""Hudi's writer makes no dictionaries in tables with FLOAT or DOUBLE columns."""

from __future__ import annotations

from typing import Any

import pytest

from table.hudi.avro import to_avro
from table.hudi.upkeep.dictionaries import DICTIONARIES, leave_out_dictionaries
from table.schema import table_schema


class Session:
    def __init__(self, ddl: str) -> None:
        self._ddl = ddl
        self.said: dict[str, str] = {}

    def columns(self) -> str:
        return to_avro(table_schema(self._ddl, True), "t")

    def set_directly(self, name: str, value: str) -> None:
        self.said[name] = value


@pytest.mark.parametrize(
    ("ddl", "wanted"),
    [
        ("id STRING, v DOUBLE", "false"),
        ("id STRING, v FLOAT NOT NULL", "false"),
        ("id STRING, s STRUCT<x: STRUCT<y: DOUBLE>>", "false"),
        ("id STRING, n BIGINT, d DECIMAL(9,2), t TIMESTAMP", "true"),
    ],
)
def test_files_of_tables_with_float_columns_have_no_dictionaries_and_others_have(
    ddl: str, wanted: str
) -> None:
    session: Any = Session(ddl)
    leave_out_dictionaries(session, {})
    assert session.said == {DICTIONARIES: wanted}


def test_what_the_configuration_says_of_dictionaries_counts() -> None:
    session: Any = Session("id STRING, v DOUBLE")
    leave_out_dictionaries(session, {DICTIONARIES: "true"})
    assert session.said == {}
