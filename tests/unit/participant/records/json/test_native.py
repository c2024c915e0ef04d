"""The native decoder: what it does not take the strict one looks at; where it is missing that one reads."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_topic.messages import SourcePartition
from participant.records import native as shared
from participant.records.json import native
from participant.records.json.decoder import JsonDecoder
from participant.records.json.format import JsonFormat
from participant.records.json.native import NativeDecoder, row_decoder
from participant.records.native import NativeMissing, native_module
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch, Values
from table.schema import SchemaError, parse_ddl
from tests.decoding import fates
from tests.json_decoders import compiled

SCHEMA = parse_ddl("a BIGINT, b STRING")
DEEP = b'{"a":7,"z":' + b"[" * 200 + b"]" * 200 + b"}"
"""The native decoder leaves it to the strict one, which takes it."""
needs_module = pytest.mark.skipif(not compiled(), reason="participant.records._native is not compiled here")


def batch_of(values: list[bytes | None]) -> RawBatch:
    offsets = np.arange(len(values), dtype=np.int64) * 7 + 1_000
    return RawBatch(
        partition=SourcePartition("events", 3),
        offsets=offsets,
        timestamps_ms=offsets + 5,
        values=Values.of(values),
    )


@pytest.fixture
def without_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, shared.NAME, None)  # so Python says that it is not there
    native_module.cache_clear()
    yield
    native_module.cache_clear()


# --- where it is there --------------------------------------------------------------------------------


@needs_module
def test_what_it_leaves_to_the_strict_decoder_is_a_row_in_its_place() -> None:
    values = [b'{"a":1}', DEEP, b'{"a":"x"}', b'{"a":2}', DEEP, b"", None, b'{"a":3,"b":"c"}']
    decoded = NativeDecoder(SCHEMA).decode(batch_of(values))
    assert decoded.table.schema == SCHEMA
    assert fates(decoded, len(values)) == [
        {"a": 1, "b": None},
        {"a": 7, "b": None},
        "field a: not a BIGINT but a string",
        {"a": 2, "b": None},
        {"a": 7, "b": None},
        "empty value",
        "null value",
        {"a": 3, "b": "c"},
    ]
    assert [(one.index, one.offset) for one in decoded.rejects] == [(2, 1_014), (5, 1_035), (6, 1_042)]


@needs_module
def test_where_every_record_is_a_row_after_all_none_is_left_out() -> None:
    decoded = NativeDecoder(SCHEMA).decode(batch_of([DEEP, b'{"a":1}', DEEP]))
    assert decoded.table.column("a").to_pylist() == [7, 1, 7]
    assert decoded.kept is None and not decoded.rejects


@needs_module
def test_a_good_batch_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = NativeDecoder(SCHEMA)
    monkeypatch.setattr(decoder._strict, "decode", lambda batch: pytest.fail("read twice"))
    values: list[bytes | None] = [b'{"a":%d,"b":"\\u00e9 %d"}' % (i, i) for i in range(1_000)]
    decoded = decoder.decode(batch_of([*values, b' {"b" : null , "c":[{"d":1e5}]} \r\n']))
    assert decoded.table.column("a").to_pylist() == [*range(1_000), None]
    assert decoded.table.column("b").to_pylist() == [*(f"é {i}" for i in range(1_000)), None]


@needs_module
def test_only_what_is_bad_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = NativeDecoder(SCHEMA)
    strict, seen = decoder._strict.decode, []
    monkeypatch.setattr(
        decoder._strict, "decode", lambda batch: (seen.append(list(batch.values)), strict(batch))[1]
    )
    values: list[bytes | None] = [b'{"a":%d}' % i for i in range(1_000)]
    values[314] = b'{"a":oops}'
    decoded = decoder.decode(batch_of(values))
    assert seen == [[b'{"a":oops}']]
    assert [reject.index for reject in decoded.rejects] == [314]
    assert decoded.table.column("a").to_pylist() == [i for i in range(1_000) if i != 314]


@needs_module
def test_a_batch_after_a_bad_one_is_read_like_any_other() -> None:
    schema = parse_ddl("a STRUCT<x: ARRAY<MAP<STRING, BIGINT>>, y: STRING NOT NULL>, b STRING, c BOOLEAN")
    decoder = NativeDecoder(schema)
    good = b'{"a":{"x":[{"k":1,"l":null},null],"y":"z"},"b":"text","c":true}'
    torn: list[bytes | None] = [good[:end] for end in range(len(good))]
    for values in (torn, [good], [*torn, good, *torn], [good, good]):
        found = fates(decoder.decode(batch_of(values)), len(values))
        row = {"a": {"x": [[("k", 1), ("l", None)], None], "y": "z"}, "b": "text", "c": True}
        assert [one for one in found if isinstance(one, dict)] == [row] * values.count(good)


@needs_module
def test_more_than_fits_into_one_buffer_is_the_strict_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BUFFER_BYTES_MAX", 100)
    values: list[bytes | None] = [b'{"a":%d}' % i for i in range(500)]
    decoded = NativeDecoder(SCHEMA).decode(batch_of(values))
    assert decoded.table.column("a").to_pylist() == list(range(500))


@needs_module
def test_offsets_of_texts_never_overflow() -> None:
    decoder = native_module().Decoder(SCHEMA)
    with pytest.raises(ValueError, match="2147483647 are the most"):
        decoder.decode(bytes(native_module().BYTES_MAX + 1), np.array([0, 2**31], dtype=np.int64))


@needs_module
@pytest.mark.parametrize("starts", [[0, 3, 8], [0, 8, 4], [0, 9], [-8, 8], [0, 2**62], [4, 4]])
def test_values_that_do_not_stand_one_behind_the_other_are_refused(starts: list[int]) -> None:
    decoder = native_module().Decoder(SCHEMA)
    with pytest.raises(ValueError, match="not one behind the other"):
        decoder.decode(b'{"a":1}\n', np.array(starts, dtype=np.int64))


@needs_module
def test_values_that_are_no_bytes_or_numbers_are_refused() -> None:
    decoder = native_module().Decoder(SCHEMA)
    for values, starts in (
        ("{}", np.zeros(1, dtype=np.int64)),
        (b"{}\n", np.array([0, 3], dtype=np.int32)),
        (b"", 1),
    ):
        with pytest.raises((TypeError, BufferError, ValueError)):
            decoder.decode(values, starts)


@needs_module
def test_types_beyond_the_depth_that_is_read_natively_are_the_strict_decoders() -> None:
    kind: pa.DataType = pa.int64()
    for _ in range(70):
        kind = pa.list_(kind)
    schema = pa.schema([pa.field("a", kind), pa.field("b", pa.string())])
    with pytest.raises(NativeMissing, match=r"not read here|nested deeper"):
        NativeDecoder(schema)
    assert isinstance(row_decoder(schema), JsonDecoder)


@needs_module
def test_a_schemas_capsule_that_somebody_has_emptied_is_refused_and_not_looked_into() -> None:
    capsule = SCHEMA.__arrow_c_schema__()
    assert pa.Schema._import_from_c_capsule(capsule) == SCHEMA
    with pytest.raises(ValueError, match="somebody has taken what was in it"):
        native_module().Decoder(SimpleNamespace(__arrow_c_schema__=lambda: capsule))


@needs_module
def test_what_is_no_capsule_of_a_schema_is_refused() -> None:
    _, array = pa.array([1]).__arrow_c_array__()
    for other in (array, b"arrow_schema", None):
        with pytest.raises((TypeError, ValueError)):
            native_module().Decoder(SimpleNamespace(__arrow_c_schema__=lambda other=other: other))


@needs_module
@pytest.mark.parametrize("wide", [True, False])
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_text_is_what_python_reads_wherever_it_begins_and_ends(wide: bool, data: st.DataObject) -> None:
    """Texts are looked at 16 bytes at a time: what ends one, and what follows, may stand at any of them."""
    letters = st.sampled_from(
        ["a", "é", "😀", '"', "\\", "/", "\n", "\0", "\x7f", "\u2028", "0123456789abcdef"]
    )
    texts = data.draw(st.lists(st.lists(letters, max_size=40).map("".join), min_size=1, max_size=4))
    values: list[bytes | None] = [
        json.dumps({"b": text, "a": 1}, ensure_ascii=data.draw(st.booleans())).encode() for text in texts
    ]
    decoded = NativeDecoder(SCHEMA, wide=wide).decode(batch_of(values))
    assert decoded.table.column("b").to_pylist() == texts


@needs_module
@settings(max_examples=2_000, deadline=None)
@given(
    st.floats(allow_nan=False).map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
)
def test_a_double_is_the_nearest_one(spelled: str) -> None:
    spelled = spelled.replace("inf", "Infinity")
    decoded = NativeDecoder(parse_ddl("a DOUBLE")).decode(batch_of([b'{"a":%s}' % spelled.encode()]))
    (found,) = fates(decoded, 1)
    wanted = float(spelled) + 0.0
    if math.isinf(wanted) and "Inf" not in spelled:
        assert isinstance(found, str)
    elif isinstance(found, dict):
        assert found["a"].hex() == wanted.hex()
    else:
        assert "too big" in found, "Arrow takes no exponent beyond its own bound, not even of a zero"


# --- where it is not ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_module")
def test_without_the_module_the_plain_decoder_reads_and_it_is_said_why() -> None:
    assert isinstance(row_decoder(SCHEMA), JsonDecoder)
    assert isinstance(JsonFormat().values(SCHEMA), JsonDecoder)
    said = JsonFormat().reads_by(SCHEMA)
    assert said.startswith("plain: Arrow") and said.endswith(
        "_native was not compiled when Lockstep was installed)"
    )


@pytest.mark.usefixtures("without_module")
def test_who_asks_for_the_native_decoder_gets_no_other() -> None:
    with pytest.raises(
        SchemaError, match=r'record\.decoder = "native", but .* was not compiled .*; install with cargo'
    ):
        JsonFormat(RecordSpec(decoder="native")).values(SCHEMA)


def test_who_asks_for_the_plain_decoder_gets_it() -> None:
    read = JsonFormat(RecordSpec(decoder="plain"))
    assert isinstance(read.values(SCHEMA), JsonDecoder)
    assert "the configuration asks for it" in read.reads_by(SCHEMA)


@needs_module
def test_where_it_is_there_the_native_decoder_reads() -> None:
    for wanted in ("auto", "native"):
        read = JsonFormat(RecordSpec(decoder=wanted))
        assert isinstance(read.values(SCHEMA), NativeDecoder)
        assert read.reads_by(SCHEMA) == "native, in one pass"


@pytest.mark.usefixtures("without_module")
def test_a_module_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    old: Any = SimpleNamespace(INTERFACE=shared.INTERFACE - 1)
    monkeypatch.setitem(sys.modules, shared.NAME, old)
    with pytest.raises(NativeMissing, match="compiled for another version: install Lockstep again"):
        native_module()
