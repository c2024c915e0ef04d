"""What of an object no field is named for, by each decoder: as it was spelled."""

from __future__ import annotations

from typing import Any

import pytest

from participant.records.json.decoder import JsonDecoder, with_rest
from participant.records.json.format import JsonFormat
from participant.records.json.native import NativeDecoder
from participant.records.port import Decoded, Decoder, RecordSpec
from participant.records.sources import REST_FIELD
from table.schema import parse_ddl
from tests.json_decoders import NARROW, NATIVE, PLAIN, skip_unless_there
from tests.unit.participant.records.columns.made import batch

EACH = pytest.mark.parametrize("name", [PLAIN, NATIVE, NARROW])
DDL = "a INT, s STRUCT<x: STRING, deep: STRUCT<y: INT>>, l ARRAY<STRUCT<z: INT>>, m MAP<STRING, INT>"


def reads(name: str, ddl: str = DDL) -> Decoder:
    skip_unless_there(name)
    if name == PLAIN:
        return JsonDecoder(parse_ddl(ddl), rest=True)
    return NativeDecoder(parse_ddl(ddl), wide=name == NATIVE, rest=True)


def rest(decoded: Decoded) -> list[str | None]:
    decoded.table.validate(full=True)
    found: list[str | None] = decoded.table.column(REST_FIELD).to_pylist()
    return found


def of(name: str, *values: bytes) -> list[str | None]:
    decoded = reads(name).decode(batch(list(values)))
    assert not len(decoded.rejects)
    return rest(decoded)


@EACH
@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("{}", None),
        ('{"a": 1}', None),
        ('{"a": 1, "b": 2}', '{"b":2}'),
        ('{ "b" : 2 , "a" : 1 }', '{"b":2}'),
        (
            '{"b":1.50,"c":1E+30,"d":-0,"e":12345678901234567890}',
            '{"b":1.50,"c":1E+30,"d":-0,"e":12345678901234567890}',
        ),
        (
            '{"b":"\\u00e9\\/ é 😀 \\n","c":[ 1 , {"d" : null } ],"d":{ }}',
            '{"b":"\\u00e9\\/ é 😀 \\n","c":[ 1 , {"d" : null } ],"d":{ }}',
        ),
        ('{"b":1,"b":2}', '{"b":1,"b":2}'),
        ('{"\\u0062":1,"A":2,"":3}', '{"\\u0062":1,"A":2,"":3}'),
        ('{"a":1,"\\u0061b":2}', '{"\\u0061b":2}'),
        ('{"s":{"x":"t"}}', None),
        ('{"s":{"x":"t","k":[1]},"c":0}', '{"s":{"k":[1]},"c":0}'),
        ('{"s":{"deep":{"y":1,"z":2}}}', '{"s":{"deep":{"z":2}}}'),
        ('{"s":{"deep":{"y":1},"n":{}}}', '{"s":{"n":{}}}'),
        ('{"s" : {"q": 1, "deep": {"q": 2}, "r": 3}}', '{"s":{"q":1,"deep":{"q":2},"r":3}}'),
        ('{"\\u0073":{"q":1}}', '{"\\u0073":{"q":1}}'),
        ('{"s":null,"t":null}', '{"t":null}'),
        ('{"l":[{"z":1,"q":2}],"m":{"k":1},"n":true}', '{"n":true}'),
        (' {"b":"}"}\t', '{"b":"}"}'),
    ],
)
def test_it_is_an_object_of_the_members_that_are_no_fields(name: str, value: str, left: str | None) -> None:
    assert of(name, value.encode()) == [left]


@EACH
def test_each_row_has_its_own_and_a_reject_leaves_nothing_behind(name: str) -> None:
    values = [b'{"a":%d,"b":%d}' % (n, n) if n % 3 else b'{"b":%d,"a":"no"}' % n for n in range(200)]
    values[100:103] = [b'{"s":{"q":1,"x":2}}', b'{"a":1}', b'{"b":1']
    decoded = reads(name).decode(batch(values))
    kept = [n for n in range(200) if n % 3 and n not in (100, 101, 102)]
    kept = sorted([*kept, 101])
    assert decoded.kept is not None and decoded.kept.tolist() == kept
    assert rest(decoded) == [None if n == 101 else f'{{"b":{n}}}' for n in kept]


@EACH
@pytest.mark.parametrize(
    "bad", [b'{"b":tru}', b'{"b":01}', b'{"b":"\x01"}', b'{"b":[1,]}', b'{"b":\xff}', b'{"b" 1}']
)
def test_what_is_no_json_is_a_reject_where_nobody_named_it_either(name: str, bad: bytes) -> None:
    decoded = reads(name).decode(batch([bad, b'{"b":1}']))
    assert rest(decoded) == ['{"b":1}']
    (reject,) = decoded.rejects
    assert reject.index == 0 and reject.reason


@EACH
def test_what_is_nested_ever_so_deeply_is_kept_or_a_reject_and_ends_nobody(name: str) -> None:
    levels = [60, 70, 400, 100_000]
    values = [b'{"b":' + b"[" * depth + b"]" * depth + b"}" for depth in levels]
    decoded = reads(name).decode(batch([*values, b'{"c":1}']))
    kept: list[Any] = decoded.kept.tolist() if decoded.kept is not None else list(range(5))
    assert {0, 1, 4} <= set(kept) and 3 not in kept
    assert rest(decoded)[:2] == [value.decode() for value in values[:2]]


@EACH
def test_no_values_have_the_column_too(name: str) -> None:
    assert rest(reads(name).decode(batch([]))) == []


@EACH
def test_a_column_that_is_read_in_python_does_not_move_it(name: str) -> None:
    values = [b'{"m":{"a":1,"a":2},"b":0}', b'{"m":{"a":1},"b":1}']
    decoded = reads(name).decode(batch(values))
    assert rest(decoded) == ['{"b":1}']
    assert decoded.kept is not None and decoded.kept.tolist() == [1]


def test_the_format_reads_it_where_it_is_asked_for_it() -> None:
    schema = with_rest(parse_ddl("a INT"), rest=True)
    for decoder in ("plain", "auto"):
        form = JsonFormat(RecordSpec(decoder=decoder))
        decoded = form.values(schema).decode(batch([b'{"a":1,"b":2}']))
        assert decoded.table.to_pylist() == [{"a": 1, REST_FIELD: '{"b":2}'}]
        assert form.reads_by(schema)
