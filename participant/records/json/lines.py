"""A faster JSON reader for batches that are plain enough: polars', made as strict as Arrow's by counting.

polars reads a line as an object, checks UTF-8, numbers and escapes, and refuses a value of another type. It
is generous in three ways: where a field is there twice the first one counts, a STRING takes any value and
spells it out, and half a surrogate pair becomes a NUL. So a batch is taken only where counting proves that
nothing of that kind is in it. Of a batch of n values of a schema of f fields, s of them STRING, which hold no
`\\u` at all, and where no field came out null:

1. The buffer holds n newlines, one behind each value. So a line is a value, and row i is value i.
2. It holds n `{`, one at the beginning of each value, and no `[`. So no value holds an object or array.
3. Each value holds each field at least once, since none is null. So it holds at least f colons that end a
   name; in a name of the schema itself there is neither colon nor quote. Every colon inside a STRING that was
   read is in the columns. Where the buffer holds no more colons than these together, no value holds a field
   twice, or one that the schema does not name.
4. So each value has f names, which take 2 f quotes, and f values. A STRING that was spelled as one takes two
   quotes more, and those inside it are in its column; one that was spelled as a number, `true` or `false`
   takes none. Where the buffer holds 2 n (f + s) quotes and those in the columns, every STRING was one.

Anything else is Arrow's to read, or to refuse. The result is the same: a test over random documents holds the
two against each other. What this relies on is tried with the version of polars that is installed (`works`).
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from participant.records.raw import Values

REFUSED_MAX = 6
"""A batch that was refused is followed by 2 that are not tried; after this many in a row, by 64."""

KINDS = {
    pa.string(): "String",
    pa.bool_(): "Boolean",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float64(): "Float64",
}


class LineReader:
    """For one flat schema. Not for several threads: it remembers how well it did."""

    def __init__(self, polars: Any, schema: pa.Schema) -> None:
        self._polars = polars
        self._schema = schema
        self._types = {field.name: getattr(polars, KINDS[field.type]) for field in schema}
        self._strings = [i for i, field in enumerate(schema) if field.type == pa.string()]
        self._refused = 0
        self._rest = 0

    def read(self, values: Values) -> pa.Table | None:
        """The values as a table of the schema, a row each; None where that is not proved."""
        if self._rest:
            self._rest -= 1
            return None
        table = self._read(values)
        self._refused = 0 if table is not None else min(REFUSED_MAX, self._refused + 1)
        self._rest = (1 << self._refused) if self._refused else 0
        return table

    def _read(self, values: Values) -> pa.Table | None:
        count, fields = len(values), len(self._schema)
        data = np.frombuffer(values.data, dtype=np.uint8)
        if _count(data, b"\n") != count or _count(data, b"{") != count:
            return None
        # one byte is found ten times as fast as two
        if b"[" in values.data or (b"\\" in values.data and b"\\u" in values.data):
            return None
        try:
            frame = self._polars.read_ndjson(values.data, schema=self._types)
        except self._polars.exceptions.PolarsError:
            return None
        if frame.height != count:
            return None
        read = frame.to_arrow(compat_level=self._polars.CompatLevel.oldest())
        if any(column.null_count for column in read.columns):
            return None
        table = self._finished(read)
        inside = [
            np.frombuffer(chunk.buffers()[2], dtype=np.uint8)
            for i in self._strings
            for chunk in table.column(i).chunks
            if len(chunk) and chunk.buffers()[2] is not None
        ]
        colons = count * fields + sum(_count(text, b":") for text in inside)
        quotes = 2 * count * (fields + len(self._strings)) + sum(_count(text, b'"') for text in inside)
        return table if _count(data, b":") == colons and _count(data, b'"') == quotes else None

    def _finished(self, read: pa.Table) -> pa.Table:
        """The schema's own types; a negative zero is zero, whichever reader reads it."""
        table = read.cast(self._schema)
        for i, field in enumerate(self._schema):
            if field.type == pa.float64():
                table = table.set_column(i, field, pc.add(table.column(i), 0.0))
        return table


def line_reader(schema: pa.Schema) -> LineReader | None:
    """A reader for this schema; None where it has other types, or polars cannot be had."""
    if not len(schema) or not all(field.type in KINDS for field in schema) or not works():
        return None
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    return LineReader(_polars(), nullable)


@cache
def works() -> bool:
    """Whether polars is installed, and is as strict as the proof needs."""
    polars = _polars()
    return polars is not None and all(_refuses(polars, *one) for one in _MUST_BE_REFUSED)


@cache
def _polars() -> Any:
    # one thread for a worker, as everything else of its data plane; read when polars is imported
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    try:
        import polars
    except ImportError:
        return None
    return polars


def _refuses(polars: Any, kind: str, document: bytes) -> bool:
    try:
        polars.read_ndjson(document, schema={"a": getattr(polars, kind)})
    except polars.exceptions.PolarsError:
        return True
    return False


_MUST_BE_REFUSED = (
    ("Int64", b'{"a":1.0}'),
    ("Int64", b'{"a":1e3}'),
    ("Int64", b'{"a":"1"}'),
    ("Int64", b'{"a":true}'),
    ("Int64", b'{"a":9223372036854775808}'),
    ("Int64", b'{"a":01}'),
    ("Int32", b'{"a":2147483648}'),
    ("Int32", b'{"a":-2147483649}'),
    ("Float64", b'{"a":"1.5"}'),
    ("Float64", b'{"a":1e999}'),
    ("Float64", b'{"a":true}'),
    ("Boolean", b'{"a":1}'),
    ("Boolean", b'{"a":"true"}'),
    ("String", b'{"a":"\xff"}'),
    ("String", b'{"a":"\x01"}'),
    ("String", b'{"a":"\\q"}'),
    ("String", b'{"a":"x"} {"a":"y"}'),
    ("String", b'{"a":"x"}]'),
    ("String", b'{"a":"x"'),
    ("String", b'{"a":"x",}'),
    ("String", b'{"a":"x"\n}'),
)


def _count(data: Any, byte: bytes) -> int:
    return int(np.count_nonzero(data == byte[0]))
