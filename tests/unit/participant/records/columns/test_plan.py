"""What decoders are asked for, given the table's columns and where they come from."""

from __future__ import annotations

import pytest

from participant.records.columns.plan import key_plan, plan
from participant.records.sources import REST_FIELD
from table.schema import SchemaError, parse_ddl


def refused(ddl: str, **sources: str) -> str:
    with pytest.raises(SchemaError) as caught:
        plan(parse_ddl(ddl), sources)
    return str(caught.value)


def test_what_is_not_spelled_is_read_as_ever() -> None:
    ddl = "a INT NOT NULL, s STRUCT<x: STRING NOT NULL, l: ARRAY<STRUCT<m: INT>>>, d DECIMAL(9,2)"
    assert plan(parse_ddl(ddl), {}).value == parse_ddl(ddl)


def test_a_field_is_read_once_whoever_wants_it() -> None:
    made = plan(
        parse_ddl("city STRING, zip STRING NOT NULL, again STRING, address STRUCT<street: STRING>"),
        {"city": "value.address.city", "zip": "value.address.zip", "again": "value.address.city"},
    )
    assert made.value == parse_ddl("address STRUCT<city: STRING, zip: STRING, street: STRING>")


def test_a_required_column_of_a_field_at_the_top_is_required_of_the_decoder() -> None:
    made = plan(parse_ddl("a INT NOT NULL, b INT NOT NULL"), {"a": "value.x", "b": "value.y.z"})
    assert made.value == parse_ddl("x INT NOT NULL, y STRUCT<z: INT>")


def test_of_keys_and_values_each_has_what_comes_from_it() -> None:
    made = plan(parse_ddl("id BIGINT, region STRING, n INT"), {"id": "key.id", "region": "key.at.region"})
    assert made.key == parse_ddl("id BIGINT, at STRUCT<region: STRING>")
    assert made.value == parse_ddl("n INT")


def test_columns_that_come_from_no_field_are_not_asked_of_a_decoder() -> None:
    made = plan(parse_ddl("raw BINARY, k STRING, o BIGINT"), {"raw": "value", "k": "key", "o": "offset"})
    assert not len(made.value) and not len(made.key)


def test_a_field_is_read_as_what_it_is_there() -> None:
    made = plan(parse_ddl("n BIGINT, at TIMESTAMP"), {"n": "value.n as STRING", "at": "value.ms as MILLIS"})
    assert made.value == parse_ddl("n STRING, ms BIGINT")


@pytest.mark.parametrize(
    ("ddl", "sources", "words"),
    [
        ("a INT", {"b": "value.a"}, "has b, which is no column"),
        ("a INT", {"A": "value.a"}, "has A, which is no column"),
        ("a INT", {"a": "valu.a"}, "column a: 'valu.a' is nothing that a record has"),
        ("a INT, b STRING", {"b": "value.a"}, "columns a and b both come from value.a, as INT and as STRING"),
        ("a INT, b INT", {"b": "value.a.b"}, "b comes from within value.a, which column a takes for INT"),
        ("a INT, b INT", {"a": "value.x.b", "b": "value.x"}, "value.x, as an object and as INT"),
        (
            "a STRUCT<x: INT>, b STRING",
            {"b": "value.a.x"},
            "columns a and b both come from value.a.x, as INT and as STRING",
        ),
        ("a ARRAY<INT>", {"a": "key"}, "no ARRAY is made of a BINARY"),
        ("a INT", {"a": "value.b as BOOLEAN"}, "column a, from value.b: no INT is made of a BOOLEAN"),
        ("a INT", {"a": "value.b as WHATEVER"}, "'WHATEVER' is neither a type nor one of SECONDS"),
        ("a BIGINT", {"a": "value.b as MILLIS"}, "MILLIS are made a TIMESTAMP of numbers, not BIGINT"),
        ("a INT", {"a": "timestamp"}, "not INT"),
        ("a DATE", {"a": "timestamp as STRING"}, "its day is: write timestamp as DATE"),
        ("a MAP<STRING, INT>", {"a": "headers"}, "it is MAP<STRING, BINARY>"),
        ("a BINARY", {"a": "topic"}, "no BINARY is made of a STRING"),
        (
            "a INT",
            {"a": "value._kafka_x.y"},
            "whose names begin with _kafka_ or _source_position are not read",
        ),
        ("a INT", {"a": "key._source_position"}, "are not read"),
    ],
)
def test_what_cannot_be_is_refused_by_name(ddl: str, sources: dict[str, str], words: str) -> None:
    assert words in refused(ddl, **sources)


def test_what_is_left_over_is_read_last_under_a_name_that_no_field_is_read_by() -> None:
    made = plan(parse_ddl("extra STRING, a INT, b INT"), {"b": "value.extra"}, "extra")
    assert made.value.names == ["a", "extra", REST_FIELD]


@pytest.mark.parametrize(
    ("ddl", "sources", "words"),
    [
        ("a INT", {}, "record.rest = 'extra' is no column of record.schema: add extra STRING"),
        ("a INT, extra INT", {}, "is JSON, for a STRING that may be null"),
        ("a INT, extra STRING NOT NULL", {}, "is JSON, for a STRING that may be null"),
        ("a INT, extra STRING", {"extra": "key"}, "stands in record.columns as well"),
        ("a INT, extra STRING", {"a": "offset"}, 'write extra = "value" below [record.columns]'),
    ],
)
def test_what_cannot_be_left_over_is_refused(ddl: str, sources: dict[str, str], words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        plan(parse_ddl(ddl), sources, "extra")
    assert words in str(caught.value)


# --- keys of records without a value ------------------------------------------------------------------------


def test_a_record_without_a_value_has_in_its_key_the_fields_that_key_a_row() -> None:
    made = plan(
        parse_ddl("id BIGINT, tenant STRING, region STRING, src STRING, n INT"),
        {"id": "value.user.id", "region": "key.at.region", "src": "header.src"},
    )
    columns, fields = key_plan(made.columns, ["id", "tenant", "region", "src"])
    assert [str(one.source) for one in columns] == ["key.id", "key.tenant", "key.at.region", "header.src"]
    assert list(fields) == list(parse_ddl("id BIGINT, tenant STRING, at STRUCT<region: STRING>"))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("value", "a record without a value has none"),
        ("headers", "has none"),
        ("timestamp", "has another one than the row"),
        ("offset", "has another one than the row"),
    ],
)
def test_a_row_is_not_keyed_by_what_its_delete_cannot_have(source: str, words: str) -> None:
    kinds = {"headers": "MAP<STRING, STRING>", "timestamp": "TIMESTAMP", "offset": "BIGINT"}
    made = plan(parse_ddl(f"a {kinds.get(source, 'STRING')}"), {"a": source})
    with pytest.raises(SchemaError, match=words):
        key_plan(made.columns, ["a"])
