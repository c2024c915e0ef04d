"""What the page says of a table's files and columns: bounded, cut, and nothing before it was counted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from lockstep.watch.page import page_document
from lockstep.watch.page_table import (
    CHANGES_SHOWN_MAX,
    COLUMNS_OF_A_CHANGE_MAX,
    COLUMNS_SHOWN_MAX,
    NAME_LENGTH_MAX,
    TYPE_LENGTH_MAX,
)
from lockstep.watch.seen import FILES, TABLE, Seen
from table.census import Census, Column, ColumnChange, SchemaCensus, SchemaChange, Tally
from tests.watched import HOSTILE, NOW_MS, settings, table_census


def told(census: Census | None) -> tuple[Any, Any]:
    """Files and schema."""
    found = Seen(settings=settings(), asks_driver=False)
    if census is not None:
        found.counted_files(NOW_MS, census)
    table = page_document(found.page(NOW_MS + 1_000))["table"]
    assert json.loads(json.dumps(table)) == table
    return table["files"], table["schema"]


def test_nothing_is_said_before_it_was_counted() -> None:
    assert told(None) == (None, None)


def test_a_count_is_told_whole() -> None:
    files, schema = told(table_census())
    assert (files["files"], files["bytes"], files["small_files"]) == (32, 122_000_000, 31)
    assert (files["log_files"], files["log_bytes"], files["small_below_bytes"]) == (4, 20_000, 60_000_000)
    assert (files["counted_ms"], files["checked_ms"], files["at_least"]) == (NOW_MS, NOW_MS, False)
    assert [one["small_files"] for one in files["worst"]] == [30, 1]
    assert files["worst"][1]["path"] == f"region={HOSTILE}", "whoever shows it escapes it"
    assert schema["columns"][1] == {"name": "amount", "type": "BIGINT", "nullable": True}
    assert schema["changes"][0]["columns"][0] == {"name": "amount", "was": "INT", "now": "BIGINT"}
    assert [one["was"] for one in schema["changes"][0]["columns"]] == ["INT", None, "DATE"]
    assert schema["changes"][0]["columns"][2]["now"] is None
    assert schema["since_instant"] == "20260101000000001"


def test_a_table_of_no_columns_yet_has_no_schema() -> None:
    files, schema = told(table_census(schema=SchemaCensus()))
    assert files is not None and schema is None


def test_thousands_of_columns_and_changes_are_bounded_and_long_ones_cut() -> None:
    many = tuple(Column(name=f"c{number}", kind="INT", nullable=True) for number in range(5_000))
    wide = tuple(ColumnChange(name=f"c{number}", was="", now="INT") for number in range(3_000))
    odd = Column(name="n" * 10_000, kind="STRUCT<" + "a: INT," * 5_000, nullable=True)
    changes = tuple(
        SchemaChange(instant=f"{number:017}", completed_ms=number, changes=wide) for number in range(90)
    )
    _, schema = told(table_census(schema=SchemaCensus(columns=(odd, *many), changes=changes)))
    assert (len(schema["columns"]), schema["columns_total"]) == (COLUMNS_SHOWN_MAX, 5_001)
    assert (len(schema["changes"]), schema["changes_total"]) == (CHANGES_SHOWN_MAX, 90)
    assert len(schema["changes"][0]["columns"]) == COLUMNS_OF_A_CHANGE_MAX
    assert schema["changes"][0]["columns_total"] == 3_000
    assert len(schema["columns"][0]["name"]) == NAME_LENGTH_MAX and schema["columns"][0]["name"][-1] == "…"
    assert len(schema["columns"][0]["type"]) == TYPE_LENGTH_MAX
    assert len(json.dumps(schema)) < 100_000


def test_what_others_named_is_in_one_line() -> None:
    tally = Tally(10)
    tally.add("a\nb\x1b[2J", [1])
    files, _ = told(table_census(files=tally.total(is_whole=False)))
    assert files["at_least"] and not any(one in files["worst"][0]["path"] for one in "\n\x1b")


def test_a_count_that_is_still_right_says_until_when_and_one_of_a_table_that_is_gone_is_gone() -> None:
    found = Seen(settings=settings(), asks_driver=False)
    census = table_census()
    found.counted_files(NOW_MS, census)
    found.counted_files(NOW_MS + 300_000, census)
    assert found.counted is not None
    assert (found.counted.at_ms, found.counted.checked_ms) == (NOW_MS, NOW_MS + 300_000)
    found.counted_files(NOW_MS + 600_000, replace(census))
    assert found.counted.at_ms == NOW_MS + 600_000
    found.counted_files(NOW_MS + 900_000, None)
    assert found.counted is None


def test_a_count_that_failed_is_a_problem_beside_the_one_before_it_and_said_once() -> None:
    found = Seen(settings=settings(), asks_driver=False)
    found.counted_files(NOW_MS, table_census())
    assert found.failed(FILES, "the store is away") and not found.failed(FILES, "the store is away")
    found.failed(TABLE, "the store is away")
    document = page_document(found.page(NOW_MS + 1))
    assert document["problems"].count("the store is away") == 1
    assert document["table"]["files"]["files"] == 32
    found.counted_files(NOW_MS + 2, table_census())
    found.looked_at_topic(NOW_MS + 2)
    assert FILES not in found.problems


def test_a_count_grows_no_older_where_the_wall_clock_is_set() -> None:
    found = Seen(settings=settings(), asks_driver=False)
    found.counted_files(NOW_MS, table_census())
    found.clock_was_set(3_600_000)
    assert found.counted is not None and found.counted.at_ms == NOW_MS + 3_600_000
