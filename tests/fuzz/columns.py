"""Columns from anywhere: each is what the record holds there, or the record is a reject."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa

from participant.records.headers import pack
from participant.records.json.columns import holds_map
from participant.records.port import Decoded, RecordSpec
from participant.worker.stages import decoder
from table.port import INSERT, TableSpec
from table.schema import ddl_name, parse_ddl, table_schema
from tests.fuzz import documents, reference
from tests.fuzz.target import Target, require
from tests.json_decoders import NATIVE, PLAIN, decoders
from tests.unit.participant.records.columns.made import batch

COLUMNS_MAX = 6
NAMES = ("a", "b", "", "é", "a b", "odd.name")
BYTES = (b"", b"1", b"-7", b"01", b"9223372036854775808", b"true", b"\xff", b"\xc3\xa9", b"a\nb", b"\x00")
BESIDE = {
    "k": ("key", "STRING"),
    "kb": ("key", "BINARY"),
    "kn": ("key", "BIGINT"),
    "raw": ("value", "BINARY"),
    "o": ("offset", "BIGINT"),
    "ha": ("header.a", "BINARY"),
    "hn": ("header.`b`", "BIGINT"),
    "m": ("headers", "MAP<STRING, BINARY>"),
    "l": ("headers", "ARRAY<STRUCT<name: STRING, value: STRING>>"),
}
"""Columns that come from beside the value's fields, by name."""


def make_batch(random: Random, size: int) -> dict[str, Any]:
    """Values of some schema, parts of it that are wanted, and keys and headers."""
    odd = random.choice((0.0, 0.03, 0.3))
    ddl = documents.ddl(random)
    schema = parse_ddl(ddl)
    paths = [_path(random, schema) for _ in range(random.randint(1, COLUMNS_MAX))]
    records = [
        (
            documents.record(random, schema, number, odd),
            random.choice((None, *BYTES)),
            [(random.choice(NAMES), random.choice((None, *BYTES))) for _ in range(random.choice((0, 1, 4)))],
        )
        for number in range(size)
    ]
    return {
        "ddl": ddl,
        "paths": paths,
        "beside": sorted(random.sample(sorted(BESIDE), random.randint(0, 4))),
        "rest": random.random() < 0.5,
        "records": records,
    }


def _path(random: Random, schema: pa.Schema) -> list[str]:
    """A field, or one within it."""
    field = random.choice(list(schema))
    path = [field.name]
    while pa.types.is_struct(field.type) and random.random() < 0.8:
        field = random.choice(list(field.type))
        path.append(field.name)
    return path


def check_batch(case: dict[str, Any]) -> int:
    """One batch, compared record by record, by each of the decoders that there are."""
    schema, paths = parse_ddl(case["ddl"]), [tuple(path) for path in case["paths"]]
    columns = {f"c{n}": (_spelled(path), _ddl(_at(schema, path).type)) for n, path in enumerate(paths)}
    columns |= {name: BESIDE[name] for name in case["beside"]}
    sources = tuple((name, source) for name, (source, _) in columns.items())
    if case["rest"]:
        columns["rest"] = ("", "STRING")
    ddl = ", ".join(f"{name} {kind}" for name, (_, kind) in columns.items())
    rest = "rest" if case["rest"] else ""
    values = [value for value, _, _ in case["records"]]
    given = batch(values, [key for _, key, _ in case["records"]], [sent for _, _, sent in case["records"]])
    if all(holds_map(one.type) for one in _pruned(list(schema), paths)):
        return len(values)  # which the plain decoder does not read alone
    for name in [PLAIN, NATIVE][: len(decoders())]:
        spec = TableSpec(path="/t", name="t", mode=INSERT, ddl=ddl)
        reads = decoder(
            spec, table_schema(ddl, kafka_columns=False), RecordSpec(decoder=name, columns=sources, rest=rest)
        )
        _check(case, parse_ddl(ddl), reads.decode(given), pa.schema(_pruned(list(schema), paths)))
    return len(values)


def _check(case: dict[str, Any], schema: pa.Schema, decoded: Decoded, read: pa.Schema) -> None:
    decoded.table.validate(full=True)
    require(decoded.table.schema == schema, "the columns are not the schema's", case["ddl"])
    records = case["records"]
    kept = range(len(records)) if decoded.kept is None else decoded.kept.tolist()
    rows, rejects = dict(zip(kept, decoded.table.to_pylist(), strict=True)), decoded.rejects.by_place()
    require(len(rows) + len(rejects) == len(records), "a record is dropped", records)
    for place, (value, key, headers) in enumerate(records):
        require((place in rows) != (place in rejects), "neither a row nor a reject, or both", value)
        packed = pack(headers)
        try:
            beside = {name: _beside(name, place, value, key, headers) for name in case["beside"]}
            wanted = reference.read(value, read)
        except (reference.Refused, ValueError):
            require(place not in rows, "a row where a reject is due", (value, key, packed))
            continue
        if place in rejects:
            require(wanted.open, f"a reject ({rejects[place]}) where a row is due", (value, key, packed))
        elif wanted.row:
            if case["rest"]:
                left = rows[place].pop("rest")
                same = _members(left) == _left(_members(value), list(read))
                require(same, f"{left} is left over", (value, read.to_string()))
            due = {f"c{n}": _within(wanted.row, path) for n, path in enumerate(case["paths"])} | beside
            same = reference.same(rows[place], due)
            require(same, f"the row {rows[place]} instead of {due}", (value, key, packed))


def _beside(name: str, place: int, value: Any, key: Any, headers: Sequence[tuple[str, Any]]) -> Any:
    """What the record has there. Raises `ValueError` where that is not the column's type."""
    last = dict(headers)
    match name:
        case "k":
            return key.decode() if key is not None else None
        case "kb":
            return key
        case "kn":
            return _number(key)
        case "raw":
            return value
        case "o":
            return 10 + 2 * place
        case "ha":
            return last.get("a")
        case "hn":
            return _number(last.get("b"))
        case "m":
            behind = [n for n, (one, _) in enumerate(headers) if one not in {b for b, _ in headers[n + 1 :]}]
            return [headers[n] for n in behind]
    return [{"name": one, "value": of.decode() if of is not None else None} for one, of in headers]


def _number(text: bytes | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(rb"-?(0|[1-9][0-9]*)", text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError("no BIGINT")
    return int(text)


def _members(text: str | bytes | None) -> Any:
    """As the reference reads it: numbers as they are spelled, members in their order, repeated ones too."""
    return json.loads(
        text or "{}",
        object_pairs_hook=reference.Pairs,
        parse_int=reference.Spelled,
        parse_float=reference.Spelled,
        parse_constant=reference.Spelled,
    )


def _left(members: Any, fields: Sequence[pa.Field]) -> Any:
    """The members that are no fields, and of those that are objects likewise."""
    kinds = {field.name: field.type for field in fields}
    found = reference.Pairs()
    for name, value in members:
        if name not in kinds:
            found.append((name, value))
        elif pa.types.is_struct(kinds[name]) and isinstance(value, reference.Pairs):
            inner = _left(value, list(kinds[name]))
            if inner:
                found.append((name, inner))
    return found


# --- schemas ---------------------------------------------------------------------------------------------


def _pruned(fields: Sequence[pa.Field], paths: Sequence[tuple[str, ...]]) -> list[pa.Field]:
    """What of these fields is read: all of one that is wanted itself, else what is wanted within."""
    found = []
    for field in fields:
        inner = [path[1:] for path in paths if path[0] == field.name]
        if not inner:
            continue
        if () in inner and not pa.types.is_struct(field.type):
            found.append(field.with_nullable(True))
            continue
        within = [path for path in inner if path]
        if () in inner:
            whole = {one.name: one for one in field.type}
            found.append(pa.field(field.name, pa.struct(list(whole.values()))))
        else:
            found.append(pa.field(field.name, pa.struct(_pruned(list(field.type), within))))
    return found


def _at(schema: pa.Schema, path: Sequence[str]) -> pa.Field:
    field = schema.field(path[0])
    for name in path[1:]:
        field = field.type.field(field.type.get_field_index(name))
    return field


def _within(row: Any, path: Sequence[str]) -> Any:
    for name in path:
        row = row[name] if row is not None else None
    return row


def _spelled(path: Sequence[str]) -> str:
    return "value" + "".join(f".`{name}`" for name in path)


def _ddl(kind: pa.DataType) -> str:
    """A type as DDL has it, whole."""
    if pa.types.is_struct(kind):
        inside = (f"{one.name}: {_ddl(one.type)}{'' if one.nullable else ' NOT NULL'}" for one in kind)
        return f"STRUCT<{', '.join(inside)}>"
    if pa.types.is_map(kind):
        return f"MAP<STRING, {_ddl(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{_ddl(kind.value_type)}>"
    return ddl_name(kind)


TARGETS = (
    Target(
        name="columns",
        promise="each column is what the record holds where it comes from",
        make=make_batch,
        check=check_batch,
        size=100,
        seeds=25,
    ),
)
