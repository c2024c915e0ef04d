"""Columns that several say, made one; rows that are given the columns which they lack."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from table.schema import parse_ddl
from table.widening import Disunited, aligned, ddl_of, full_name, united


def made(has: str, wanted: str, *fixed: str) -> str:
    return ddl_of(united(parse_ddl(has), parse_ddl(wanted), fixed=fixed))


def plain(text: str) -> str:
    return text.replace("`", "")


@pytest.mark.parametrize(
    ("has", "wanted", "becomes"),
    [
        ("a INT", "a INT", "a INT"),
        ("a INT", "b STRING", "a INT, b STRING"),
        ("a INT, b STRING", "c DATE, a INT", "a INT, b STRING, c DATE"),
        ("a INT", "b STRING NOT NULL", "a INT, b STRING"),
        ("a INT NOT NULL", "a INT", "a INT NOT NULL"),
        ("a INT", "a BIGINT", "a BIGINT"),
        ("a BIGINT", "a INT", "a BIGINT"),
        ("a INT", "a DOUBLE", "a DOUBLE"),
        ("a FLOAT", "a DOUBLE", "a DOUBLE"),
        ("a DECIMAL(10,2)", "a DECIMAL(12,3)", "a DECIMAL(12,3)"),
        ("a DECIMAL(12,3)", "a DECIMAL(10,2)", "a DECIMAL(12,3)"),
        ("a STRUCT<x: INT>", "a STRUCT<y: INT NOT NULL>", "a STRUCT<x: INT, y: INT>"),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<y: DATE>>", "a ARRAY<STRUCT<x: INT, y: DATE>>"),
        ("a MAP<STRING, STRUCT<x: INT>>", "a MAP<STRING, STRUCT<y: INT>>", None),
    ],
)
def test_what_both_say_and_what_one_alone_says_is_there(has: str, wanted: str, becomes: str | None) -> None:
    becomes = becomes or "a MAP<STRING, STRUCT<x: INT, y: INT>>"
    assert plain(made(has, wanted)) == becomes
    assert parse_ddl(made(has, wanted)) == parse_ddl(becomes)


@pytest.mark.parametrize(
    ("has", "wanted", "why"),
    [
        ("a INT", "a STRING", "field a is INT and would be STRING: no type of the table holds both"),
        ("a BIGINT", "a DOUBLE", "field a is BIGINT and would be DOUBLE"),
        ("a DECIMAL(10,2)", "a DECIMAL(9,3)", r"field a is DECIMAL\(10,2\) and would be"),
        ("a STRUCT<x: INT>", "a STRUCT<x: BIGINT>", r"field a\.x is INT and would be BIGINT"),
        ("a ARRAY<INT>", "a ARRAY<BIGINT>", r"field a\[\] is INT"),
        ("a MAP<STRING, INT>", "a MAP<STRING, BIGINT>", r"field a{} is INT"),
        ("a STRUCT<x: INT>", "a INT", "field a is STRUCT<`x`: INT> and would be INT"),
        ("userId INT", "userid INT", "field userid is there as userId"),
        ("a STRUCT<x: INT>", "a STRUCT<X: INT>", r"field a\.X is there as a\.x"),
    ],
)
def test_what_no_column_can_be_is_refused_and_named(has: str, wanted: str, why: str) -> None:
    with pytest.raises(Disunited, match=why):
        made(has, wanted)


def test_a_column_by_which_rows_are_found_stays_as_it_is() -> None:
    with pytest.raises(Disunited, match="field a is INT and would be BIGINT, and rows or files are found"):
        made("a INT", "a BIGINT", "a")
    assert plain(made("a BIGINT", "a INT", "a")) == "a BIGINT"


SCALARS = ("INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE", "DECIMAL(10,2)", "DECIMAL(12,4)")


def drawn(chance: random.Random, depth: int = 2) -> str:
    shape = chance.randrange(8) if depth else 0
    if shape < 5:
        return chance.choice(SCALARS)
    if shape == 5:
        return f"ARRAY<{drawn(chance, depth - 1)}>"
    if shape == 6:
        return f"MAP<STRING, {drawn(chance, depth - 1)}>"
    names = chance.sample("xyz", chance.randint(1, 3))
    return f"STRUCT<{', '.join(f'{one}: {drawn(chance, depth - 1)}' for one in names)}>"


def columns(chance: random.Random) -> pa.Schema:
    names = chance.sample("abcd", chance.randint(1, 4))
    return parse_ddl(", ".join(f"{name} {drawn(chance)}" for name in names))


@pytest.mark.parametrize("seed", range(20))
def test_whoever_comes_first_the_same_columns_come_of_it_and_what_was_united_is_no_news(seed: int) -> None:
    chance = random.Random(f"united {seed}")
    for _ in range(50):
        one, other = columns(chance), columns(chance)
        try:
            both = united(one, other)
        except Disunited:
            with pytest.raises(Disunited):
                united(other, one)
            continue
        again = united(other, one)
        assert {field.name: by_name(field.type) for field in both} == {
            field.name: by_name(field.type) for field in again
        }
        assert united(both, one) == united(both, other) == united(both, both) == both
        assert parse_ddl(ddl_of(both)) == both


def by_name(kind: pa.DataType) -> object:
    """A type, whatever the order of its fields."""
    if pa.types.is_struct(kind):
        return {one.name: by_name(one.type) for one in kind}
    if pa.types.is_list(kind):
        return [by_name(kind.value_type)]
    return ("map", by_name(kind.item_type)) if pa.types.is_map(kind) else full_name(kind)


def test_rows_are_given_what_they_lack_also_within_structs_lists_and_maps_and_of_a_slice() -> None:
    narrow = parse_ddl(
        "n INT, f FLOAT, d DECIMAL(4,1), s STRUCT<x: INT>, l ARRAY<STRUCT<x: INT>>, "
        "m MAP<STRING, STRUCT<x: INT>>"
    )
    rows = [
        {"n": 1, "f": 0.5, "d": Decimal("1.5"), "s": {"x": 1}, "l": [{"x": 1}, None], "m": [("k", {"x": 1})]},
        {"n": None, "f": None, "d": None, "s": None, "l": None, "m": None},
        {"n": 3, "f": 1.5, "d": Decimal("2.5"), "s": {"x": None}, "l": [], "m": []},
        {"n": 4, "f": 2.0, "d": Decimal("0.1"), "s": {"x": 4}, "l": [{"x": 4}], "m": [("k", None)]},
    ]
    wide = united(
        narrow,
        parse_ddl(
            "n BIGINT, f DOUBLE, d DECIMAL(6,2), s STRUCT<y: STRING>, l ARRAY<STRUCT<y: DATE>>, "
            "m MAP<STRING, STRUCT<y: INT>>, z STRING"
        ),
    )
    table = pa.Table.from_pylist(rows, narrow)
    for part, expected in ((table, rows), (table.slice(1), rows[1:]), (table.slice(1, 2), rows[1:3])):
        given = aligned(part, wide)
        assert given.schema == wide
        given.validate(full=True)
        assert given.to_pylist() == [widened(row) for row in expected]
    assert aligned(table, narrow) is table


def widened(row: dict[str, object]) -> dict[str, object]:
    def inside(value: object) -> object:
        if isinstance(value, dict):
            return {**value, "y": None}
        if isinstance(value, list):
            return [(one[0], inside(one[1])) if isinstance(one, tuple) else inside(one) for one in value]
        return value

    return {**{name: inside(value) for name, value in row.items()}, "z": None}
