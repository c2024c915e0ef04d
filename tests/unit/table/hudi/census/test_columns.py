"""Columns as they are now, and what each instant changed of them."""

from __future__ import annotations

import json

import pytest

from table.census import Column, ColumnChange
from table.hudi.avro import to_avro
from table.hudi.census.columns import CHANGES_MAX, SchemaHistory, changes_between, columns_of
from table.hudi.definition import with_meta_columns
from table.schema import parse_ddl


def avro(ddl: str, name: str = "t") -> str:
    return to_avro(parse_ddl(ddl), name)


def changed(before: str, after: str, *never_null: str) -> list[tuple[str, str, str]]:
    found = changes_between(avro(before), avro(after), never_null)
    return [(one.name, one.was, one.now) for one in found]


def test_columns_are_in_their_order_with_types_of_ddl_and_without_hudis() -> None:
    schema = with_meta_columns(avro("id STRING NOT NULL, at TIMESTAMP, inner STRUCT<a: INT, b: ARRAY<DATE>>"))
    assert columns_of(schema) == (
        Column(name="id", kind="STRING", nullable=False),
        Column(name="at", kind="TIMESTAMP", nullable=True),
        Column(name="inner", kind="STRUCT<a: INT, b: ARRAY<DATE>>", nullable=True),
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a INT", "a INT", []),
        ("a INT, b INT", "b INT, a INT", []),
        ("a INT", "a INT, b STRING", [("b", "", "STRING")]),
        ("a INT, b STRING", "a INT", [("b", "STRING", "")]),
        ("a INT", "a BIGINT", [("a", "INT", "BIGINT")]),
        ("a INT NOT NULL", "a INT", [("a", "INT NOT NULL", "INT")]),
        ("a DECIMAL(9,2)", "a DECIMAL(18,2)", [("a", "DECIMAL(9,2)", "DECIMAL(18,2)")]),
        ("s STRUCT<a: INT>", "s STRUCT<a: INT, b: DATE>", [("s.b", "", "DATE")]),
        ("s ARRAY<STRUCT<a: INT>>", "s ARRAY<STRUCT<a: INT, b: DATE>>", [("s[].b", "", "DATE")]),
        ("s MAP<STRING,STRUCT<a: INT>>", "s MAP<STRING,STRUCT<a: BIGINT>>", [("s{}.a", "INT", "BIGINT")]),
        ("s ARRAY<INT>", "s ARRAY<BIGINT>", [("s", "ARRAY<INT>", "ARRAY<BIGINT>")]),
        ("a INT", "a INT, s STRUCT<b: STRUCT<c: INT>>, t DATE", [("s", "", "STRUCT"), ("t", "", "DATE")]),
        ("a INT, s ARRAY<STRUCT<b: INT>>", "a INT", [("s", "ARRAY", "")]),
        (
            "s STRUCT<a: STRUCT<b: INT NOT NULL>>",
            "s STRUCT<a: STRUCT<b: INT, c: DATE>>",
            [("s.a.c", "", "DATE"), ("s.a.b", "INT NOT NULL", "INT")],
        ),
    ],
)
def test_what_changes_between_two_schemas_is_named_once_and_outermost(
    before: str, after: str, expected: list[tuple[str, str, str]]
) -> None:
    assert changed(before, after) == expected


def test_that_sparks_own_writers_let_keys_be_null_is_no_change() -> None:
    assert changed("id STRING NOT NULL, a INT", "id STRING, a INT", "id", "ts") == []
    assert changed("id STRING NOT NULL, a INT", "id STRING, a INT") == [("id", "STRING NOT NULL", "STRING")]
    assert changed("id INT NOT NULL", "id BIGINT", "id") == [("id", "INT", "BIGINT")]


def test_other_names_of_types_and_other_spellings_are_no_change() -> None:
    spaced = json.dumps(json.loads(avro("a INT, s STRUCT<b: INT>", "other")), indent=2)
    assert changes_between(avro("a INT, s STRUCT<b: INT>"), spaced, ()) == ()


def test_a_history_tells_each_change_by_its_instant_the_newest_first() -> None:
    history = SchemaHistory()
    assert history.told().columns == () and history.told().since == ""
    for number, ddl in enumerate(["a INT", "a INT", "a INT, b INT", "a INT, b INT", "a BIGINT, b INT"]):
        history.hear(f"i{number}", 1_000 + number, avro(ddl))
    told = history.told()
    assert (told.since, told.since_ms) == ("i0", 1_000)
    assert [one.name for one in told.columns] == ["a", "b"]
    assert [(one.instant, one.completed_ms, one.changes) for one in told.changes] == [
        ("i4", 1_004, (ColumnChange(name="a", was="INT", now="BIGINT"),)),
        ("i2", 1_002, (ColumnChange(name="b", was="", now="INT"),)),
    ]


def test_a_schema_that_is_damaged_is_an_error_and_leaves_what_was_known() -> None:
    history = SchemaHistory()
    history.hear("i0", 1, avro("a INT"))
    for damaged in ("{", "[]", '{"fields": 1}', '{"fields": [{}]}', '{"fields": [{"name": 1, "type": {}}]}'):
        with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
            history.hear("i1", 2, damaged)
    assert [one.name for one in history.told().columns] == ["a"]


def test_of_changes_without_end_the_newest_are_remembered() -> None:
    history = SchemaHistory()
    for number in range(CHANGES_MAX + 20):
        history.hear(f"i{number}", number, avro(f"a INT, b{number} INT"))
    told = history.told()
    assert len(told.changes) == CHANGES_MAX and told.changes[0].instant == f"i{CHANGES_MAX + 19}"
