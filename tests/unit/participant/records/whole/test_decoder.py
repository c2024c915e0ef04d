"""Values and keys as one column: whatever is in them, and nothing beside it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from participant.records.envelopes.plain import Plain
from participant.records.port import Asked
from participant.records.raw import Values
from participant.records.whole import decoder as whole
from participant.records.whole.format import BytesFormat, StringFormat, WholeFormat
from table.schema import SchemaError, parse_ddl, table_schema
from tests.decoding import batch

TEXT, DATA = StringFormat(), BytesFormat()


def read(of: WholeFormat, ddl: str, *values: bytes | None) -> tuple[list[object], dict[int, str]]:
    decoded = of.values(table_schema(ddl, kafka_columns=True)).decode(batch(values))
    decoded.table.validate(full=True)
    (column,) = decoded.table.columns
    return column.to_pylist(), decoded.rejects.by_place()


def test_a_text_is_what_it_is_with_its_newlines_zeros_and_blanks() -> None:
    texts = ["a", "", " \n\n", "\0", '{"id": 1}', "ä\u2028🙂", "\ufeff"]
    assert read(TEXT, "line STRING", *(text.encode() for text in texts)) == (texts, {})


def test_half_a_character_is_a_reject_though_the_next_value_has_the_other_half() -> None:
    found = read(TEXT, "line STRING NOT NULL", b"a", b"\xc3", b"\xa4", b"\xed\xa0\x80", None, "ä".encode())
    assert found == (["a", "ä"], {1: "not UTF-8", 2: "not UTF-8", 3: "not UTF-8", 4: "null value"})


def test_bytes_are_what_they_are() -> None:
    values = [b"\xff\x00\n", b"", b"\n", b"plain"]
    assert read(DATA, "line BINARY NOT NULL", *values, None) == (values, {4: "null value"})


def test_more_than_one_array_can_hold_is_held_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "BUFFER_BYTES_MAX", 10)
    values = [b"abc", b"", b"d" * 30, b"e", b"\n"]
    column = whole.column_of(Values.of(values), pa.binary())
    assert column.to_pylist() == values and column.num_chunks > 1


@pytest.mark.parametrize(
    ("of", "ddl", "sentence"),
    [
        (
            TEXT,
            "a STRING, b STRING",
            "a value of format string is one column of type STRING; record.schema has a STRING, b STRING",
        ),
        (TEXT, "a BINARY", "is one column of type STRING; record.schema has a BINARY"),
        (
            DATA,
            "a STRING",
            "a value of format bytes is one column of type BINARY; record.schema has a STRING",
        ),
    ],
)
def test_a_schema_of_other_columns_is_refused_before_a_run(of: WholeFormat, ddl: str, sentence: str) -> None:
    with pytest.raises(SchemaError, match=sentence):
        of.values(parse_ddl(ddl))


def test_a_key_of_several_columns_or_another_type_is_refused_before_a_run() -> None:
    for ddl in ("a STRING, b STRING", "a BIGINT"):
        with pytest.raises(
            SchemaError, match=r"a key of format string is one column of type STRING; table.key"
        ):
            TEXT.keys(list(parse_ddl(ddl)))


def test_a_plain_text_as_a_key_deletes_the_row_that_it_names_and_no_other_spelling_does() -> None:
    schema = parse_ddl("line STRING NOT NULL")
    asked = Asked(schema=schema, upserts=True, key_columns=list(schema))
    decoded = (
        Plain()
        .decoder(asked, TEXT, TEXT)
        .decode(batch([None, b"a", None, None, None], {0: b"7", 2: b"\xff", 3: b"", 4: b'"a"'}))
    )
    assert decoded.table.column("line").to_pylist() == ["a"]
    assert decoded.tombstones is not None
    assert decoded.tombstones.columns.column("line").to_pylist() == ["7", '"a"']
    assert decoded.tombstones.places.tolist() == [0, 4]
    assert decoded.rejects.by_place() == {
        2: "the Kafka key of a record without a value: not UTF-8",
        3: "a record without a value and without a key deletes no row",
    }
