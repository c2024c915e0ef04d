"""Where columns come from, as it is spelled."""

from __future__ import annotations

import pytest

from participant.records.port import RecordSpec
from participant.records.sources import Source, parse


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("value", Source("value")),
        ("value.address.city", Source("value", ("address", "city"))),
        ("value.user-id.0", Source("value", ("user-id", "0"))),
        ("value.`odd.name`.`a``b`", Source("value", ("odd.name", "a`b"))),
        ("key", Source("key")),
        ("key.id", Source("key", ("id",))),
        ("header.ce_type", Source("header", ("ce_type",))),
        ("header.com.example:id", Source("header", ("com.example:id",))),
        ("header.`with blank`", Source("header", ("with blank",))),
        ("headers", Source("headers")),
        (" timestamp as DATE ", Source("timestamp", (), "DATE")),
        ("value.n AS DECIMAL(9, 2)", Source("value", ("n",), "DECIMAL(9, 2)")),
        ("value.values as STRING", Source("value", ("values",), "STRING")),
    ],
)
def test_a_source_is_what_it_spells(text: str, wanted: Source) -> None:
    assert parse(text) == wanted


@pytest.mark.parametrize("text", ["value.`odd.name`.x", "key.id", "header.a", "headers", "offset"])
def test_a_source_is_spelled_as_it_was(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nothing that a record has"),
        ("values.id", "nothing that a record has"),
        ("keys", "nothing that a record has"),
        ("address.city", "nothing that a record has"),
        ("value.", "not understood from '.' on"),
        ("value..a", "not understood"),
        ("value.a b", "not understood from 'b' on"),
        ("value.`a", "not understood"),
        ("topic.x", "not understood from '.x' on"),
        ("header", "names no header"),
        ("header.", "not understood from '.' on"),
        ("value.a as ", "not understood"),
        ("value.`a\0`", "a NUL or half"),
        ("header.`\udc00`", "half a surrogate pair"),
        ("value" + ".a" * 61, "61 levels; 60"),
        ("value." + "a" * 2_000, "longer than 2000"),
    ],
)
def test_what_spells_nothing_is_refused_with_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text)


@pytest.mark.parametrize(
    ("spelled", "whole"),
    [
        ("value.a", False),
        ("offset", False),
        ("key", True),
        ("key.id", True),
        ("header.a", True),
        ("headers", True),
    ],
)
def test_keys_and_headers_are_fetched_only_where_a_column_comes_from_them(spelled: str, whole: bool) -> None:
    assert RecordSpec(columns=(("c", spelled),)).wants_whole == whole
    assert not RecordSpec().wants_whole
