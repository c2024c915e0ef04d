"""What becomes of a table's columns when the configuration's differ."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from table.errors import Contradiction
from table.hudi.avro import to_avro
from table.hudi.avro_ddl import show
from table.hudi.evolution import PROMOTIONS, covers, evolve
from table.port import TableSpec
from table.schema import parse_ddl, table_schema

SPEC = TableSpec(
    path="/t",
    name="t",
    mode="upsert",
    ddl="",
    key_fields=("id",),
    partition_fields=("day",),
    ordering_field="ts",
)
KEYS = "id STRING NOT NULL, day STRING, ts INT NOT NULL"


def avro(ddl: str, name: str = "t") -> str:
    return to_avro(parse_ddl(f"{KEYS}, {ddl}" if ddl else KEYS), name)


def evolved(has: str, wanted: str) -> str:
    return evolve(avro(has), avro(wanted), SPEC)


def columns(schema: str) -> list[str]:
    """The columns after those of `KEYS`, as DDL."""
    fields = json.loads(schema)["fields"]
    return [
        f"{field['name']} {show(field['type'])}" + ("" if "null" in field["type"] else " NOT NULL")
        for field in fields[3:]
    ]


def refusal(has: str, wanted: str) -> str:
    with pytest.raises(Contradiction) as refused:
        evolved(has, wanted)
    sentence = str(refused.value)
    assert sentence.startswith("table /t: ")
    return sentence.removeprefix("table /t: ")


def test_a_table_without_columns_gets_the_configuration_s() -> None:
    assert evolve("", avro("a INT"), SPEC) == avro("a INT")


def test_where_nothing_changes_the_table_s_schema_stays_word_for_word() -> None:
    has = json.dumps(json.loads(avro("a INT, s STRUCT<x: INT>, d DECIMAL(5,2)")), indent=1)
    other_names_and_order = avro("d DECIMAL(5,2), s STRUCT<x: INT>, a INT", name="another")
    assert evolve(has, other_names_and_order, SPEC) == has


def test_new_columns_come_after_the_table_s_in_the_order_of_the_configuration() -> None:
    made = evolved("a INT, b STRING", "z DATE, b STRING, m MAP<STRING,DECIMAL(5,2)>, a INT")
    assert columns(made) == ["a INT", "b STRING", "z DATE", "m MAP<STRING,DECIMAL(5,2)>"]
    new = json.loads(made)["fields"][-1]
    assert new["default"] is None and new["type"][0] == "null"


def test_hudi_s_meta_columns_do_not_count() -> None:
    record = json.loads(avro("a INT"))
    record["fields"].insert(0, {"name": "_hoodie_commit_time", "type": ["null", "string"], "default": None})
    made = json.loads(evolve(json.dumps(record), avro("a INT, b INT"), SPEC))
    assert [field["name"] for field in made["fields"]] == ["_hoodie_commit_time", "id", "day", "ts", "a", "b"]


@pytest.mark.parametrize(
    ("has", "wanted", "made"),
    [
        ("s STRUCT<x: INT>", "s STRUCT<y: STRING, x: INT>", "s STRUCT<x: INT, y: STRING>"),
        ("s ARRAY<STRUCT<x: INT>>", "s ARRAY<STRUCT<x: INT, y: INT>>", "s ARRAY<STRUCT<x: INT, y: INT>>"),
        (
            "s MAP<STRING,STRUCT<x: INT>>",
            "s MAP<STRING,STRUCT<x: INT, y: INT>>",
            "s MAP<STRING,STRUCT<x: INT, y: INT>>",
        ),
        ("s STRUCT<x: INT NOT NULL>", "s STRUCT<x: INT>", "s STRUCT<x: INT>"),
        ("a INT NOT NULL", "a INT", "a INT"),
        ("a INT NOT NULL", "a BIGINT", "a BIGINT"),
        ("a INT NOT NULL", "a BIGINT NOT NULL", "a BIGINT NOT NULL"),
        ("a INT", "a INT NOT NULL", "a INT"),
        ("a INT", "a BIGINT NOT NULL", "a BIGINT"),
    ],
)
def test_fields_inside_nulls_and_types_grow(has: str, wanted: str, made: str) -> None:
    assert columns(evolved(has, wanted)) == [made]


@pytest.mark.parametrize(("old", "new"), sorted(PROMOTIONS))
def test_a_type_is_promoted_and_never_the_other_way_round(old: str, new: str) -> None:
    assert columns(evolved(f"a {old}", f"a {new}")) == [f"a {new}"]
    assert f"field a is {new}, the configuration says {old}: " in refusal(f"a {new}", f"a {old}")


@pytest.mark.parametrize(
    ("has", "wanted", "sentence"),
    [
        ("s STRUCT<x: INT>", "s STRUCT<x: BIGINT>", "field s.x is INT, the configuration says BIGINT: "),
        ("a ARRAY<INT>", "a ARRAY<BIGINT>", "field a[] is INT, the configuration says BIGINT: "),
        (
            "m MAP<STRING,FLOAT>",
            "m MAP<STRING,DOUBLE>",
            "field m{} is FLOAT, the configuration says ",
        ),
        (
            "a ARRAY<STRUCT<x: DECIMAL(5,2)>>",
            "a ARRAY<STRUCT<x: DECIMAL(9,2)>>",
            "field a[].x is DECIMAL(5,2), the configuration says DECIMAL(9,2): ",
        ),
    ],
)
def test_types_inside_a_column_stay_as_they_are(has: str, wanted: str, sentence: str) -> None:
    assert refusal(has, wanted).startswith(sentence)


def test_a_decimal_gets_digits_on_both_sides_and_loses_none_on_either() -> None:
    assert columns(evolved("a DECIMAL(5,2)", "a DECIMAL(9,4)")) == ["a DECIMAL(9,4)"]
    for narrower in ("DECIMAL(5,3)", "DECIMAL(4,2)", "DECIMAL(6,1)", "DOUBLE", "STRING"):
        assert "field a is DECIMAL(5,2)" in refusal("a DECIMAL(5,2)", f"a {narrower}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *[("INT", "FLOAT"), ("BIGINT", "FLOAT"), ("BIGINT", "DOUBLE")],  # would lose digits
        *[("INT", "STRING"), ("BOOLEAN", "STRING"), ("DATE", "STRING"), ("INT", "DECIMAL(12,2)")],
        *[
            ("DATE", "TIMESTAMP"),
            ("BIGINT", "TIMESTAMP"),
            ("STRUCT<x: INT>", "STRING"),
            ("ARRAY<INT>", "INT"),
        ],
    ],
)
def test_another_type_is_refused_with_both_and_what_to_write(old: str, new: str) -> None:
    assert refusal(f"a {old}", f"a {new}") == (
        f"field a is {old}, the configuration says {new}: values that are there cannot be read so: "
        f"write {old}, or write to another path"
    )


def test_a_field_that_the_configuration_lacks_is_refused_at_every_depth() -> None:
    assert refusal("a INT, b BIGINT NOT NULL", "a INT") == (
        "it has the field b BIGINT NOT NULL, the configuration has not: add it to record.schema"
    )
    assert "it has the field s[].x.y INT" in refusal(
        "s ARRAY<STRUCT<x: STRUCT<y: INT, z: INT>>>", "s ARRAY<STRUCT<x: STRUCT<z: INT>>>"
    )


def test_a_field_in_another_spelling_is_refused() -> None:
    assert "its field amount is Amount in the configuration: write amount" in refusal(
        "amount INT", "Amount INT"
    )


def test_a_new_field_that_is_never_null_is_refused_at_every_depth() -> None:
    assert refusal("a INT", "a INT, b INT NOT NULL") == (
        "it has no field b, the configuration says INT NOT NULL, and rows that are there have no value for "
        "it: take NOT NULL out of record.schema"
    )
    assert "it has no field m{}.y," in refusal(
        "m MAP<STRING,STRUCT<x: INT>>", "m MAP<STRING,STRUCT<x: INT, y: INT NOT NULL>>"
    )


def test_kafka_s_columns_are_not_added_to_a_table_without_them() -> None:
    has, wanted = (to_avro(table_schema(KEYS, kafka), "t") for kafka in (False, True))
    with pytest.raises(Contradiction, match=r"no field _kafka_topic.*set table\.kafka_columns = false"):
        evolve(has, wanted, SPEC)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("id", "id STRING NOT NULL", "id STRING"),
        ("day", "day STRING", "day DATE"),
        ("ts", "ts INT NOT NULL", "ts BIGINT NOT NULL"),
        ("ts", "ts INT NOT NULL", "ts INT"),
    ],
)
def test_fields_by_which_rows_and_files_are_found_stay_as_they_are(name: str, old: str, new: str) -> None:
    schema = to_avro(parse_ddl(KEYS.replace(old, new)), "t")
    assert schema != avro("")
    with pytest.raises(Contradiction) as refused:
        evolve(avro(""), schema, SPEC)
    has, wanted = old.partition(" ")[2], new.partition(" ")[2]
    assert str(refused.value) == (
        f"table /t: field {name} is {has}, the configuration says {wanted}: files and rows are found by it: "
        f"write in record.schema {has}, or write to another path"
    )


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, "TIMESTAMP"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "TIMESTAMP_NTZ"),
        ({"type": "int", "logicalType": "time-millis"}, "INT"),
        ({"type": "enum", "name": "c", "symbols": ["A"]}, "STRING"),
        ({"type": "string", "logicalType": "uuid"}, "STRING"),
        ({"type": "fixed", "name": "f", "size": 4}, "BINARY"),
        ({"type": "array", "items": {"type": "fixed", "name": "f", "size": 4}}, "ARRAY<BINARY>"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_type_that_ddl_has_no_word_for_is_refused_with_an_advice_that_can_be_followed(
    kind: dict[str, object], wanted: str
) -> None:
    theirs = json.loads(avro(""))
    theirs["fields"].append({"name": "x", "type": ["null", kind], "default": None})
    for ours in (avro(f"x {wanted}"), avro("")):
        with pytest.raises(Contradiction) as refused:
            evolve(json.dumps(theirs), ours, SPEC)
        said = str(refused.value)
        assert "Rewrite the table's rows with Spark into a new table, with a CAST" in said
        assert "write in record.schema" not in said and "add it to record.schema" not in said


def test_a_null_inside_arrays_and_maps_of_others_may_become_one() -> None:
    others = avro("a ARRAY<INT>, m MAP<STRING,INT>").replace('["null","int"]', '"int"')
    assert others != avro("a ARRAY<INT>, m MAP<STRING,INT>")
    made = evolve(others, avro("a ARRAY<INT>, m MAP<STRING,INT>"), SPEC)
    assert made == avro("a ARRAY<INT>, m MAP<STRING,INT>")


def covering(theirs: str, ours: str) -> bool:
    return covers(avro(ours), avro(theirs), SPEC)


def test_our_columns_cover_others_that_are_fewer_narrower_or_in_another_order() -> None:
    assert covering("a INT, b STRING", "b STRING, a INT")
    assert covering("a INT NOT NULL", "a BIGINT, b INT")
    assert covering("s STRUCT<x: INT, y: INT>", "s STRUCT<y: INT, x: INT>")


def test_our_columns_do_not_cover_nulls_that_only_others_have() -> None:
    assert not covering("a INT", "a INT NOT NULL")
    assert not covering("s STRUCT<x: INT>", "s STRUCT<x: INT NOT NULL>")


def test_that_spark_s_frames_call_key_and_ordering_nullable_does_not_count() -> None:
    theirs = KEYS.replace(" NOT NULL", "")
    assert covers(avro("a INT"), to_avro(parse_ddl(f"{theirs}, a INT"), "t"), SPEC)


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ("a INT, b STRING", "it has the field b STRING, the configuration has not: add it to record.schema"),
        ("a BIGINT", "field a is BIGINT, the configuration says INT"),
    ],
)
def test_columns_that_only_others_have_are_named(theirs: str, reason: str) -> None:
    with pytest.raises(Contradiction) as refused:
        covering(theirs, "a INT")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bytes", "BINARY"),
        ({"type": "int", "logicalType": "time-millis"}, "int time-millis"),
        (["int", "string"], '["int", "string"]'),
    ],
)
def test_what_ddl_cannot_say_is_shown_as_avro(kind: Any, text: str) -> None:
    assert show(kind) == text


def test_a_field_that_a_function_lays_rows_out_by_keeps_its_type() -> None:
    """The bucket of an INT is another than that of the same BIGINT."""
    spec = replace(SPEC, partition_fields=("n_bucket",), partition_terms=("bucket(4, n)",))
    assert columns(evolve(avro("n INT, m INT"), avro("n INT, m BIGINT"), spec)) == ["n INT", "m BIGINT"]
    with pytest.raises(Contradiction, match=r"field n is INT.*files and rows are found by it"):
        evolve(avro("n INT"), avro("n BIGINT"), spec)
    assert columns(evolve(avro("n INT NOT NULL"), avro("n INT"), spec)) == ["n INT"]
