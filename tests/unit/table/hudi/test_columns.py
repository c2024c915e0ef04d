"""What a commit says of a table's columns where workers have met more of them; and Avro as columns again."""

from __future__ import annotations

import json
import random

import pytest

from table.errors import Contradiction
from table.hudi.avro import to_avro
from table.hudi.avro_columns import from_avro
from table.hudi.columns import has_all, widened, with_others
from table.hudi.definition import Definition, with_meta_columns, with_the_tables
from table.port import TableSpec
from table.schema import SchemaError, parse_ddl, table_schema
from table.widening import Disunited, ddl_of, united
from tests.unit.table.test_widening import columns

SPEC = TableSpec(path="/t", name="t", mode="insert", ddl="a INT", kafka_columns=False, follows=True)


def avro(ddl: str, spec: TableSpec = SPEC) -> str:
    return to_avro(table_schema(ddl, spec.kafka_columns), "t")


@pytest.mark.parametrize("seed", range(10))
def test_hudi_s_rules_and_those_of_columns_that_several_say_are_the_same(seed: int) -> None:
    chance = random.Random(f"avro {seed}")
    for _ in range(50):
        has, wanted = columns(chance), columns(chance)
        schema = to_avro(has, "t")
        assert from_avro(schema) == has
        try:
            both = united(has, wanted)
        except Disunited as why:
            with pytest.raises(Contradiction) as refused:
                widened(schema, {ddl_of(wanted): "schema 7"}, SPEC)
            assert str(why) in str(refused.value) and "(schema 7)" in str(refused.value)
            continue
        assert from_avro(widened(schema, {ddl_of(wanted): ""}, SPEC)) == both


def test_what_adds_nothing_leaves_the_schema_word_for_word() -> None:
    schema = json.dumps(json.loads(avro("a BIGINT, s STRUCT<x: INT>")), indent=1)
    assert widened(schema, {}, SPEC) == schema
    assert widened(schema, {"a INT": "", "s STRUCT<x: INT>": ""}, SPEC) == schema


def test_whatever_order_workers_come_in_the_columns_are_the_same() -> None:
    said = ["a INT, b STRING", "a INT, c DATE, b STRING", "a BIGINT"]
    made = {widened(avro("a INT"), dict.fromkeys(order, ""), SPEC) for order in (said, said[::-1])}
    assert [ddl_of(from_avro(one)) for one in made] == ["`a` BIGINT, `b` STRING, `c` DATE"]


def test_what_others_have_added_stays_and_what_they_say_otherwise_is_refused() -> None:
    ours = avro("a INT, b STRING")
    theirs = avro("a INT, theirs DATE, b STRING")
    both = with_others(ours, theirs, SPEC)
    assert set(from_avro(both).names) == {"a", "b", "theirs"}
    assert with_others(both, theirs, SPEC) == both
    with pytest.raises(Contradiction, match="field b is STRING and would be INT"):
        with_others(ours, avro("a INT, b INT"), SPEC)


def test_a_run_that_follows_begins_with_what_the_table_has() -> None:
    spec = TableSpec(path="/t", name="t", mode="insert", ddl="a INT, b STRING", follows=True)
    has = with_meta_columns(avro("a BIGINT, c DATE", spec))
    found = with_the_tables(Definition(properties={}, schema=has), spec)
    assert parse_ddl(found.ddl) == parse_ddl("a BIGINT, b STRING, c DATE")
    assert with_the_tables(Definition(properties={}), spec) is spec


def test_a_type_of_a_foreign_writer_that_no_column_is_of_is_named() -> None:
    odd = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "e", "type": {"type": "int", "logicalType": "x"}}],
    }
    with pytest.raises(SchemaError, match="the table's field e is "):
        from_avro(json.dumps(odd))


@pytest.mark.parametrize(
    ("ours", "theirs", "has"),
    [
        ("a INT", "a INT", True),
        ("a INT, b STRING", "b STRING, a INT NOT NULL", True),
        ("a INT NOT NULL", "a INT", True),
        ("a INT", "a INT, b STRING", False),
        ("a INT", "a BIGINT", False),
        ("a DECIMAL(9,2)", "a DECIMAL(9,2)", True),
        ("a DECIMAL(9,2)", "a DECIMAL(9,3)", False),
        ("a DATE", "a INT", False),
        ("a STRUCT<b: INT, c: DATE>", "a STRUCT<c: DATE>", True),
        ("a STRUCT<b: INT>", "a STRUCT<b: INT, c: DATE>", False),
        ("a ARRAY<STRUCT<b: INT>>", "a ARRAY<STRUCT<b: INT, c: DATE>>", False),
        ("a MAP<STRING,STRUCT<b: INT>>", "a MAP<STRING,STRUCT<b: INT>>", True),
        ("a MAP<STRING,STRUCT<b: INT>>", "a MAP<STRING,STRUCT<b: BIGINT>>", False),
        ("a STRUCT<b: INT>", "a INT", False),
    ],
)
def test_a_schema_has_all_of_another_whatever_its_order_and_what_may_be_null(
    ours: str, theirs: str, has: bool
) -> None:
    assert has_all(avro(ours), avro(theirs)) is has
    assert has_all(avro(ours), "") and not has_all("", avro(theirs))
