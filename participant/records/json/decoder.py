"""JSON values to Arrow columns, each row tied to its offset.

All values of a batch are parsed at once, joined by newlines. That this keeps rows and offsets together:

1. Every value begins with `{` and ends with `}`, and the buffer is UTF-8 without a NUL. So where two values
   meet, the buffer holds `}`, a newline, `{`. (The first byte matters twice: Arrow's reader crashes the
   process on a buffer whose first document is `null`, which therefore must never reach it.)
2. The whole buffer parses as a sequence of JSON documents. A raw newline inside a string is not JSON, so no
   string spans a meeting point; `}` followed by `{` inside an object or array is not JSON, so none of those
   does. Every meeting point thus lies between two documents: no document spans two values.
3. A value is not empty, so it holds at least one document. The buffer holds n values; when it holds n
   documents, each value holds exactly one, and row i is value i.

Whatever fails a premise is looked at more closely: whitespace around a value is taken off, and a parse that
fails is repeated on halves, so that one bad record costs some 2 log n small parses and the rest stays fast.

What is accepted beyond the obvious, and what is not:

* A field that the schema does not name is ignored; names are told apart by case. A field of the schema that
  is there twice is a reject. A missing field is null, and a reject where it is NOT NULL.
* INT, BIGINT: whole numbers only, `1.0`, `1e3` and `"1"` are rejects, and so is one beyond the range.
* FLOAT, DOUBLE: the nearest one, as with every JSON parser; a negative zero is zero; beyond the range is a
  reject. `NaN` and `Infinity` are accepted, bare or as a string, as Spark does. FLOAT is by way of a double.
* DECIMAL(p,s): a number or a string; digits beyond p or s are a reject, never rounded. Zeros at the end are
  digits of p too.
* STRING: a string only. `\\u0000` is accepted; half a surrogate pair is a reject.
* DATE: `"2026-12-31"`. TIMESTAMP: `"2026-12-31T23:59:59.123456Z"`, with a blank for the T, with an offset
  for the Z, or without seconds or time; without a zone it is UTC. More than six fractional digits, other
  spellings and numbers are rejects: nobody can tell seconds from milliseconds.
* TIMESTAMP_NTZ: as TIMESTAMP, and one with a zone is a reject: it would be another time without it.
* BINARY: a string of base64 with its padding, as Kafka Connect and Debezium write it; other alphabets and
  line breaks are rejects.
* MAP: an object; a key that is there twice is a reject. Read in Python, several times slower.
* A byte order mark, a raw NUL, invalid UTF-8, comments and trailing commas are rejects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json

from participant.records.errors import BatchTooLarge
from participant.records.json.columns import (
    Misfit,
    finish,
    fit,
    holds_decimal,
    holds_infinity,
    holds_map,
    may_be_beyond,
    may_have_many_places,
    nullable_type,
    reading_field,
)
from participant.records.json.lines import line_reader
from participant.records.json.rest import left_over
from participant.records.json.value_bounds import OF_ARRAYS, OF_MAPS, bounds, item_places, too_large
from participant.records.json.values import (
    WHITESPACE,
    Mismatch,
    check,
    convert_members,
    explain,
    parse,
    with_bare_words,
)
from participant.records.port import Decoded
from participant.records.raw import RawBatch, Values
from participant.records.rejects import Reasons, Rejects
from participant.records.sources import REST_FIELD
from participant.records.value_limits import BATCH_VALUES_MAX
from table.schema import SchemaError, record_schema

BUFFER_BYTES_MAX = 512 * 1024 * 1024
"""Parsed at once; more is halved. Arrow's reader takes a block of at most 2 GiB, and a parse needs memory."""
GROUP_WEIGHT = 1 << 20
"""Bytes and values of records whose Python objects are held at once."""
GROUP_RECORDS = 64
"""A failed group of this size or less is looked at record by record, and so is one of mostly bad records."""
NO_FIELD = pa.field("lockstep.none", pa.string())
"""Column that Arrow reads if Python reads all others: a table without columns has no rows."""
SAMPLE_RECORDS = 16
"""Of a larger group so many say whether it is one."""


@dataclass(slots=True)
class _Salvage:
    """What the closer look found: tables of rows with their indices, and why the others are none."""

    reasons: Reasons
    tables: list[pa.Table] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)


class JsonDecoder:
    """Decodes for one schema (Kafka columns in it are left to others). Not for several threads.

    `rest`: rows have a column more, `REST_FIELD`, of what the schema does not name, read in Python. Raises
    `SchemaError` for a schema that cannot be read from JSON.
    """

    def __init__(self, schema: pa.Schema, *, rest: bool = False) -> None:
        self._schema = record_schema(schema)
        self._rest = rest
        self._item_places = item_places(list(self._schema))
        self._marks = OF_MAPS if any(holds_map(f.type) for f in self._schema) else OF_ARRAYS
        self._python_fields = [f for f in self._schema if holds_map(f.type)]
        self._arrow_fields = [f for f in self._schema if not holds_map(f.type)] or [NO_FIELD]
        if all(map(pa.types.is_map, self._schema.types)):
            raise SchemaError("the schema has only MAP columns; it needs one of another type")
        self._has_decimals = any(holds_decimal(f.type) for f in self._arrow_fields)
        # NOT NULL is checked on the columns: cheaper than a failed parse, and all rows at once
        self._reading = pa.schema([reading_field(f) for f in self._arrow_fields])
        self._parse_options = pyarrow.json.ParseOptions(
            explicit_schema=self._reading, unexpected_field_behavior="ignore"
        )
        self._lines = line_reader(self._arrow_schema())

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows or as rejects. Raises `BatchTooLarge`."""
        if not len(batch.values):
            return Decoded(table=with_rest(self._schema, rest=self._rest).empty_table(), kept=None)
        bound = bounds(batch.values, self._item_places, self._marks)
        if bound is None:
            return self._decode(batch)
        if len(batch) > 1 and bound.sum() > BATCH_VALUES_MAX:
            raise BatchTooLarge
        large = too_large(batch.values, bound, self._schema)
        if not large:
            return self._decode(batch)
        rest = np.delete(np.arange(len(batch), dtype=np.int64), list(large))
        decoded = self._decode(batch.take(rest)) if len(rest) else self.decode(batch.head(0))
        return Decoded(
            table=decoded.table,
            kept=rest if decoded.kept is None else rest[decoded.kept],
            rejects=Rejects.joined([Rejects.of(large, batch.offsets), decoded.rejects.at(rest)]),
        )

    def _decode(self, batch: RawBatch) -> Decoded:
        reasons = Reasons()
        kept: npt.NDArray[np.int64] | None = None
        try:
            table = self._read(batch.values)
        except ValueError:
            salvage = self._salvage(batch.values, reasons)
            table = pa.concat_tables(salvage.tables) if salvage.tables else self._arrow_schema().empty_table()
            kept = np.array(salvage.kept, dtype=np.int64)
        table, kept = self._drop_nulls(table, kept, reasons)
        if self._python_fields:
            table, kept = self._add_maps(table, kept, batch.values, reasons)
        if self._rest:
            table, kept = self._add_rest(table, kept, batch.values, reasons)
        rejects = reasons.rejects(batch.offsets)
        if table.num_rows + len(rejects) != len(batch.values):
            raise AssertionError(
                f"{batch.partition}: {table.num_rows} rows and {len(rejects)} rejects of {len(batch.values)}"
            )
        return Decoded(table=table, kept=kept if rejects else None, rejects=rejects)

    def _arrow_schema(self) -> pa.Schema:
        return pa.schema(self._arrow_fields)

    # --- all at once ------------------------------------------------------------------------------

    def _read(self, values: Values) -> pa.Table:
        """As `_parse`, by the faster reader where it proves that it may."""
        _check_objects(values)
        table = self._lines.read(values) if self._lines is not None else None
        return table if table is not None else self._parse_objects(values)

    def _parse(self, values: Values) -> pa.Table:
        """A row per value, columns of the Arrow fields; raises `ValueError` where that is not proved."""
        _check_objects(values)
        return self._parse_objects(values)

    def _parse_objects(self, values: Values) -> pa.Table:
        buffer = values.data
        if b"\0" in buffer:
            raise Misfit("a NUL byte")
        _check_utf8(buffer)
        if self._has_decimals and may_have_many_places(buffer):
            if len(values) > 1:
                raise Misfit("a number of many places")
            check(values[0] or b"", self._schema)
        read = pyarrow.json.read_json(
            pa.BufferReader(buffer),
            pyarrow.json.ReadOptions(use_threads=False, block_size=len(buffer) + 1),
            self._parse_options,
        )
        if read.num_rows != len(values):
            raise Misfit(f"{read.num_rows} documents in {len(values)} values")
        if read.schema != self._reading:
            raise Misfit("the reader answered with other columns")
        if any(map(holds_infinity, read.columns)) and may_be_beyond(buffer):
            self._check_infinities(values)
        columns = [finish(read.column(i), f.type) for i, f in enumerate(self._arrow_fields)]
        return pa.table(columns, schema=pa.schema([f.with_nullable(True) for f in self._arrow_fields]))

    def _check_infinities(self, values: Values) -> None:
        """The reader makes no difference between `Infinity` and a number that is too large: Python does."""
        if len(values) > 1 or explain(values[0] or b"", self._schema):
            raise Misfit("a number beyond its range")

    # --- a closer look ----------------------------------------------------------------------------

    def _salvage(self, values: Values, reasons: Reasons) -> _Salvage:
        found = _Salvage(reasons=reasons)
        unclear, objects = _screen_all(values, reasons)
        whole = {int(index): values[index] or b"" for index in objects}
        for index in unclear.tolist():
            stripped = (values[index] or b"").strip(WHITESPACE)
            reason = _screen(stripped)
            if reason:
                reasons.add(index, reason)
            else:
                whole[index] = stripped
        if whole:
            indices = sorted(whole)
            as_before = len(objects) == len(values)
            self._halve([whole[index] for index in indices], indices, found, failed=as_before)
        return found

    def _halve(
        self, values: list[bytes], indices: list[int], found: _Salvage, *, failed: bool = False
    ) -> None:
        """Parse the values together, or else their halves. `failed`: together they are known to fail."""
        try:
            if failed and len(values) > 1:
                raise Misfit("parsed before")
            table = self._parse(Values.of(values))
        except ValueError as error:
            if len(values) == 1:
                if (bare := with_bare_words(values[0], self._schema)) is not None:
                    self._halve([bare], indices, found)
                    return
                found.reasons.add(indices[0], explain(values[0], self._schema) or _sentence(error))
            elif len(values) <= GROUP_RECORDS or self._mostly_bad(values):
                self._look_at_each(values, indices, found)
            else:
                middle = len(values) // 2
                self._halve(values[:middle], indices[:middle], found)
                self._halve(values[middle:], indices[middle:], found)
        else:
            found.tables.append(table)
            found.kept.extend(indices)

    def _mostly_bad(self, values: list[bytes]) -> bool:
        """Whether a sample says that halving these would find no good half for long."""
        sample = values[:: max(1, len(values) // SAMPLE_RECORDS)]
        return 2 * sum(bool(explain(value, self._schema)) for value in sample) > len(sample)

    def _look_at_each(self, values: list[bytes], indices: list[int], found: _Salvage) -> None:
        """Set aside what is known to be bad without a parse; the rest is parsed together, else alone."""
        rest: list[int] = []
        given, is_new = list(values), False
        for place, value in enumerate(values):
            reason = explain(value, self._schema)
            if reason:
                found.reasons.add(indices[place], reason)
                continue
            rest.append(place)
            if (bare := with_bare_words(value, self._schema)) is not None:
                given[place], is_new = bare, True
        groups = [rest] if is_new or len(rest) < len(values) else [[place] for place in rest]
        for group in filter(None, groups):
            self._halve([given[p] for p in group], [indices[p] for p in group], found)

    # --- columns --------------------------------------------------------------------------------

    def _drop_nulls(
        self, table: pa.Table, kept: npt.NDArray[np.int64] | None, reasons: Reasons
    ) -> tuple[pa.Table, npt.NDArray[np.int64] | None]:
        """Reject the rows where a NOT NULL column is null."""
        schema = self._arrow_schema()
        required = [f.name for f in schema if not f.nullable and table.column(f.name).null_count]
        if not required:
            return pa.Table.from_arrays(table.columns, schema=schema), kept
        indices = kept if kept is not None else np.arange(table.num_rows, dtype=np.int64)
        good = np.ones(table.num_rows, dtype=np.bool_)
        for name in required:
            nulls = table.column(name).is_null().to_numpy()
            reasons.add_all(indices[nulls & good], f"required field {name} is missing or null")
            good &= ~nulls
        return pa.Table.from_arrays(table.filter(pa.array(good)).columns, schema=schema), indices[good]

    def _add_maps(
        self,
        table: pa.Table,
        kept: npt.NDArray[np.int64] | None,
        values: Values,
        reasons: Reasons,
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """Read the columns that hold a MAP, value by value."""
        indices = kept if kept is not None else np.arange(table.num_rows, dtype=np.int64)
        good = np.ones(table.num_rows, dtype=np.bool_)
        rows: list[dict[str, Any]] = []
        done: list[pa.Table] = []
        bound, weight = bounds(values, self._item_places, self._marks), 0
        for row, index in enumerate(indices):
            if weight > GROUP_WEIGHT:
                done, rows, weight = [*done, self._maps(rows)], [], 0
            weight += int(values.starts[index + 1] - values.starts[index])
            weight += int(bound[index]) if bound is not None else 0
            try:
                rows.append(convert_members(parse(values[index] or b""), self._python_fields, ""))
            except Mismatch as mismatch:
                good[row] = False
                reasons.add(int(index), str(mismatch))
            except RecursionError:
                good[row] = False
                reasons.add(int(index), "nested too deeply")
        maps = pa.concat_tables([*done, self._maps(rows)])
        columns = dict(zip(maps.column_names, maps.columns, strict=True))
        if not good.all():
            table, indices = table.filter(pa.array(good)), indices[good]
        columns.update(zip(table.column_names, table.columns, strict=True))
        return pa.table([columns[f.name] for f in self._schema], schema=self._schema), indices

    def _maps(self, rows: list[dict[str, Any]]) -> pa.Table:
        columns = [
            fit(pa.array([row[f.name] for row in rows], nullable_type(f.type)), f.type)
            for f in self._python_fields
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(self._python_fields))

    def _add_rest(
        self, table: pa.Table, kept: npt.NDArray[np.int64] | None, values: Values, reasons: Reasons
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """What is no column, value by value."""
        indices = kept if kept is not None else np.arange(table.num_rows, dtype=np.int64)
        good = np.ones(table.num_rows, dtype=np.bool_)
        rest: list[str | None] = []
        for row, index in enumerate(indices):
            try:
                rest.append(left_over(values[index] or b"", list(self._schema)))
            except Mismatch as mismatch:
                good[row] = False
                reasons.add(int(index), str(mismatch))
        if not good.all():
            table, indices = table.filter(pa.array(good)), indices[good]
        return table.append_column(pa.field(REST_FIELD, pa.string()), pa.array(rest, pa.string())), indices


def with_rest(schema: pa.Schema, *, rest: bool) -> pa.Schema:
    """The columns of what is decoded."""
    return schema.append(pa.field(REST_FIELD, pa.string())) if rest else schema


def _check_objects(values: Values) -> None:
    """Raise `Misfit` unless every value begins and ends as an object does, and all fit into a parse."""
    if len(values.data) > BUFFER_BYTES_MAX and len(values) > 1:
        raise Misfit("too much at once")
    text = np.frombuffer(values.data, dtype=np.uint8)
    if (text[values.starts[:-1]] != 0x7B).any() or (text[values.starts[1:] - 2] != 0x7D).any():
        raise Misfit("a value is not an object")


def _check_utf8(buffer: bytes) -> None:
    if not buffer.isascii():
        ends = np.array([0, len(buffer)], dtype=np.int32)
        pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(buffer)).validate(full=True)


def _screen_all(values: Values, reasons: Reasons) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """`_screen` of all values at once. The places of those that it leaves open, which whitespace or a byte
    order mark begins or whitespace ends, and of those that begin and end as an object does."""
    text = np.frombuffer(values.data, dtype=np.uint8)
    filled = np.diff(values.starts) > 1
    null = values.nulls if values.nulls is not None else np.zeros(len(values), dtype=np.bool_)
    first = text[values.starts[:-1]]
    last = text[np.maximum(values.starts[1:] - 2, 0)]
    unclear = filled & (_IS_WHITESPACE[first] | _IS_WHITESPACE[last] | (first == _MARK))
    sure = filled & ~unclear
    for which, sample in (
        (null, None),
        (~filled & ~null, b""),
        *((sure & (first == start[0]), start) for start in _STARTS),
        (sure & (first != _OPEN) & ~np.isin(first, [start[0] for start in _STARTS]), b"?"),
        (sure & (first == _OPEN) & (last != _CLOSE), b"{"),
    ):
        if which.any():
            reasons.add_all(np.flatnonzero(which), _screen(sample))
    return np.flatnonzero(unclear), np.flatnonzero(sure & (first == _OPEN) & (last == _CLOSE))


def _screen(value: bytes | None) -> str:
    """Why a stripped value cannot be an object, from its ends alone; empty where it may be one."""
    if value is None:
        return "null value"
    if not value:
        return "empty value"
    if value.startswith(b"\xef\xbb\xbf"):
        return "begins with a byte order mark"
    if value[0] != 0x7B:
        return f"not a JSON object{_STARTS.get(value[:1], '')}"
    return "" if value[-1] == 0x7D else "not JSON: the object does not end"


_STARTS = {b"[": " but an array", b'"': " but a string"}
_OPEN, _CLOSE, _MARK = 0x7B, 0x7D, 0xEF
_IS_WHITESPACE = np.isin(np.arange(256), list(WHITESPACE))


def _sentence(error: Exception) -> str:
    """The reader's own words where they hold no content: a conversion's name the text, a parse's do not."""
    text = str(error)
    prefix = "JSON parse error: "
    if text.startswith(prefix):
        return f"not JSON: {text.removeprefix(prefix).rpartition(' in row ')[0] or text.removeprefix(prefix)}"
    if isinstance(error, Misfit):
        return f"not readable: {text}"
    return "a value does not fit its column's type"
