"""What `table.partition_by` says is understood, or refused at its place."""

from __future__ import annotations

import pytest

from table.partitioners.expressions import (
    FUNCTIONS,
    TermError,
    fields_of,
    parse,
    parsed,
    sources_of,
    spelled,
)
from tests.unit.test_house import ROOT


@pytest.mark.parametrize(
    ("text", "column", "function", "field", "more"),
    [
        ("region", "region", "", "region", (0, "")),
        ("day(ts)", "ts_day", "day", "ts", (0, "")),
        (' hour ( ts , "Europe/Berlin" ) as  h', "h", "hour", "ts", (0, "Europe/Berlin")),
        ("minutes(15, ts)", "ts_minutes", "minutes", "ts", (15, "")),
        ("bucket(16, user_id)", "user_id_bucket", "bucket", "user_id", (16, "")),
        ("truncate(4, name) AS start", "start", "truncate", "name", (4, "")),
        ("day(_kafka_timestamp)", "kafka_day", "day", "_kafka_timestamp", (0, "")),
        ("hour(now())", "now_hour", "hour", "", (0, "")),
        ("day(epoch_ms(at))", "at_day", "day", "at", (0, "")),
        ("day", "day", "", "day", (0, "")),
    ],
)
def test_a_term_says_its_column_and_where_its_value_comes_from(
    text: str, column: str, function: str, field: str, more: tuple[int, str]
) -> None:
    term = parse(text)
    assert (term.column, term.function, term.source.field, (term.number, term.zone)) == (
        *(column, function, field),
        more,
    )


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("day( ts )", "day(ts) as ts_day"),
        ('day(ts, "UTC")', "day(ts) as ts_day"),
        ('minutes(15,epoch_ms(ts),"Asia/Tokyo") AS m', 'minutes(15, epoch_ms(ts), "Asia/Tokyo") as m'),
        ('format(parse(s,"yyyy-MM-dd"),"yyyy")', 'format(parse(s, "yyyy-MM-dd"), "yyyy") as s_format'),
        ("hour(now())", "hour(now()) as now_hour"),
        ("region", "region"),
    ],
)
def test_what_is_the_same_to_rows_is_spelled_alike_and_understood_again(text: str, same: str) -> None:
    assert spelled(parse(text)) == same
    assert spelled(parse(same)) == same


def test_every_function_is_understood_as_it_is_offered_and_has_its_row_in_the_document() -> None:
    document = (ROOT / "docs" / "partitioning.md").read_text(encoding="utf-8")
    for name, written in FUNCTIONS.items():
        assert parse(written).function == name
        assert f"| `{written}`" in document


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        ("", 1, "a field, or a function"),
        ("day(", 5, "where the time comes from"),
        ("day()", 5, "where the time comes from"),
        ("day(ts", 7, '")"'),
        ("day(ts;)", 7, '")"'),
        ("day(ts) foo", 9, '"as NAME"'),
        ("region as x", 1, '"as NAME" behind a function'),
        ("day(ts) as", 11, "a column's name"),
        ("day(ts) as d e", 14, "nothing more"),
        ("nuxi(ts)", 1, "a function that there is: year, month"),
        ("minutes(7, ts)", 9, "which divide an hour"),
        ("minutes(ts)", 9, "a whole number"),
        ("bucket(0, a)", 8, "a number from 1 to"),
        ("bucket(4, now())", 14, '")"'),
        ("bucket(4, _kafka_timestamp)", 11, "a field of records"),
        ("_kafka_timestamp", 1, "a function of it"),
        ('day(ts, "Mars/Base")', 10, "a time zone"),
        ("day(ago(ts))", 5, "now, epoch_s, epoch_ms, epoch_us, parse"),
        ('format(ts, "yyyyy")', 13, "not yyyyy"),
        ('day(parse(ts, "HH"))', 16, "a pattern with yyyy, MM and dd"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(text: str, place: int, wanted: str) -> None:
    with pytest.raises(TermError) as refused:
        parse(text)
    assert f"character {place}: wanted is" in str(refused.value) and wanted in str(refused.value)


def test_a_term_of_any_length_is_not_read() -> None:
    with pytest.raises(TermError, match="at most 300"):
        parse("x" * 301)


def test_two_terms_are_not_one_column_whatever_its_case() -> None:
    with pytest.raises(TermError, match=r"Day and day\(ts\) as day are both the column day"):
        parsed(["Day", "day(ts) as day"])


def test_fields_of_a_table_and_those_of_records_are_told_apart() -> None:
    texts = ["region", "day(ts)", "hour(ts)", "day(now())", "bucket(4, region)"]
    assert fields_of(texts) == ("region", "ts_day", "ts_hour", "now_day", "region_bucket")
    assert sources_of(texts) == ("region", "ts")
