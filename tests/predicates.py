"""Random rows of every type, predicates on them, and engines that answer with and without pushdown.

An engine skips files, row groups or pages by what their writer says of the values: statistics, dictionaries,
bloom filters. Without pushdown it evaluates the same predicate on every row. Both must select the same rows.
"""

from __future__ import annotations

import base64
import json
import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

NAN, INF = math.nan, math.inf
LONG = 5_000
"""Characters. Arrow omits statistics of longer values than 4,096 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type. `special`: values that readers may get wrong; `chance` makes others."""

    ddl: str
    duck: str
    special: Sequence[Any]
    chance: Callable[[random.Random], Any]


def float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def text(chance: random.Random) -> str:
    return "".join(chance.choice("ab~é\uffff😀") for _ in range(chance.randrange(1, 90)))


FLOATS = (NAN, 0.0, -0.0, INF, -INF, 1.5, -1.5)
KINDS: Final = (
    Kind(ddl="DOUBLE", duck="DOUBLE", special=FLOATS, chance=lambda c: c.uniform(-9, 9)),
    Kind(ddl="FLOAT", duck="FLOAT", special=FLOATS, chance=lambda c: float32(c.uniform(-9, 9))),
    Kind(
        ddl="STRING",
        duck="VARCHAR",
        special=("", "a", "~" * LONG, "a" * LONG, "\uffff", "😀", "é", "a\u0000"),
        chance=text,
    ),
    Kind(
        ddl="BINARY",
        duck="BLOB",
        special=(b"", b"\x00", b"\x7f", b"\x80", b"\xff" * LONG, b"\xff"),
        chance=lambda c: c.randbytes(c.randrange(1, 90)),
    ),
    Kind(ddl="BOOLEAN", duck="BOOLEAN", special=(True, False), chance=lambda c: c.random() < 0.5),
    Kind(ddl="INT", duck="INTEGER", special=(-(2**31), 2**31 - 1, 0), chance=lambda c: c.randrange(-9, 9)),
    Kind(ddl="BIGINT", duck="BIGINT", special=(-(2**63), 2**63 - 1, 0), chance=lambda c: c.randrange(-9, 9)),
    *(
        Kind(
            ddl=f"DECIMAL({digits},{scale})",
            duck=f"DECIMAL({digits},{scale})",
            special=(*(Decimal((sign, (9,) * digits, -scale)) for sign in (0, 1)), Decimal(0)),
            chance=lambda c, scale=scale: Decimal(c.randrange(-900, 900)).scaleb(-min(scale, 2)),
        )
        for digits, scale in ((9, 2), (18, 4), (38, 10))
    ),
    Kind(
        ddl="DATE",
        duck="DATE",
        special=(date(1900, 1, 2), date(1969, 12, 31), date(9999, 12, 31)),
        chance=lambda c: date(2026, 1, 1) + timedelta(days=c.randrange(90)),
    ),
    Kind(
        ddl="TIMESTAMP",
        duck="TIMESTAMPTZ",
        special=(datetime(1900, 1, 2, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
        chance=lambda c: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=c.randrange(10**9)),
    ),
    Kind(
        ddl="TIMESTAMP_NTZ",
        duck="TIMESTAMP",
        special=(datetime(1900, 1, 2), datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        chance=lambda c: datetime(2026, 1, 1) + timedelta(microseconds=c.randrange(10**9)),
    ),
)


@dataclass(frozen=True, slots=True)
class Column:
    """`path`: of a column, or of a field in a struct."""

    path: str
    kind: Kind


COLUMNS: Final = tuple(
    column
    for place, kind in enumerate(KINDS)
    for column in (Column(f"c{place}", kind), Column(f"s{place}.x", kind))
)


def ddl_of(columns: Sequence[Column]) -> str:
    paths = ((*column.path.partition(".")[::2], column.kind.ddl) for column in columns)
    return ", ".join(
        f"{name} STRUCT<x: {kind}, y: ARRAY<{kind}>>" if field else f"{name} {kind}"
        for name, field, kind in paths
    )


DDL: Final = ddl_of(COLUMNS)


# --- rows -------------------------------------------------------------------------------------------------


def values(kind: Kind, chance: random.Random, count: int) -> list[Any]:
    """Values of one piece: one value, few that repeat, many, or none."""
    pool: list[Any] = [*kind.special, *(kind.chance(chance) for _ in range(3))]
    shape = chance.randrange(6)
    if shape == 0:
        return [None] * count
    if shape == 1:
        return [chance.choice(pool)] * count
    if shape == 2:
        return [kind.chance(chance) for _ in range(count)]
    few = chance.sample(pool, min(len(pool), 3))
    return [chance.choice([*few, None] if shape == 3 else few) for _ in range(count)]


def rows(chance: random.Random, count: int, columns: Sequence[Column] = COLUMNS) -> list[dict[str, Any]]:
    """Values of the columns, as JSON says them."""
    made: list[dict[str, Any]] = [{} for _ in range(count)]
    for column in columns:
        name, field, _ = column.path.partition(".")
        for row, value in zip(made, values(column.kind, chance, count), strict=True):
            said = in_json(value)
            row[name] = {"x": said, "y": [said]} if field else said
    return made


def in_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (Decimal, date)):
        return value.isoformat() if isinstance(value, date) else str(value)
    return value


def document(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row).encode()


# --- predicates -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Predicate:
    """`operator`: `=`, `<`, … , `IN`, `NOT <=`, `IS NULL`, `IS NOT NULL`."""

    column: Column
    operator: str
    values: tuple[Any, ...] = ()

    def sql(self, literal: Callable[[Kind, Any], str]) -> str:
        said = [literal(self.column.kind, value) for value in self.values]
        path = self.column.path
        if self.operator == "IN":
            return f"{path} IN ({', '.join(said)})"
        if self.operator == "NOT <=":
            return f"NOT ({path} <= {said[0]})"
        return f"{path} {self.operator} {''.join(said)}"


OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "NOT <=")


def predicates(
    chance: random.Random, each: int, columns: Sequence[Column] = COLUMNS, *, floats: int = 1_000
) -> list[Predicate]:
    """At most `each` for each column, `floats` for each FLOAT and DOUBLE."""
    found = []
    for column in columns:
        kind = column.kind
        pool = [*kind.special, kind.chance(chance)]
        every = [Predicate(column, operator, (value,)) for value in pool for operator in OPERATORS]
        every += [Predicate(column, "IN", (first, second)) for first, second in pairwise(pool)]
        count = floats if kind.special is FLOATS else each
        found += chance.sample(every, min(count, len(every)))
        found += [Predicate(column, "IS NULL"), Predicate(column, "IS NOT NULL")]
    return found


Answers = Mapping[Predicate, frozenset[str]]
"""The ids that each predicate selects."""


def differences(pushed: Answers, plain: Answers) -> list[str]:
    """One line for each predicate whose answers differ."""
    return [
        f"{one.column.kind.ddl} {one.column.path} {one.operator} {str(one.values)[:80]}: "
        f"lost {len(plain[one] - pushed[one])}, extra {len(pushed[one] - plain[one])} of {len(plain[one])}"
        for one in plain
        if pushed[one] != plain[one]
    ]


# --- engines ----------------------------------------------------------------------------------------------


class Answering(Protocol):
    def takes(self, asked: Predicate) -> bool:
        """Whether its answer does not depend on a fault of its own, in files of every writer."""

    def answers(self, asked: Sequence[Predicate], *, pushed: bool) -> Answers: ...


class Duck:
    """DuckDB on parquet files, and on a copy of their rows in a table of its own."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._client = duckdb.connect()
        self._client.execute("SET TimeZone = 'UTC'")
        self._source = f"read_parquet({[str(file) for file in files]})"
        self._client.execute(f"CREATE TABLE plain AS SELECT * FROM {self._source}")

    def takes(self, asked: Predicate) -> bool:
        return True

    def answers(self, asked: Sequence[Predicate], *, pushed: bool) -> Answers:
        if pushed:
            return {one: self._ids(f"SELECT id FROM {self._source} WHERE {one.sql(duck)}") for one in asked}
        return {one: self._ids(f"SELECT id FROM plain WHERE ({one.sql(duck)}) IS TRUE") for one in asked}

    def _ids(self, query: str) -> frozenset[str]:
        return frozenset(row[0] for row in self._client.execute(query).fetchall())


def duck(kind: Kind, value: Any) -> str:
    if isinstance(value, str):
        value = value.encode()
        return f"decode({duck(kind, value)})"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    if isinstance(value, datetime):
        value = value.strftime("%Y-%m-%d %H:%M:%S.%f") + ("+00" if value.tzinfo else "")
    return f"'{value}'::{kind.duck}"


class Arrow:
    """Arrow's dataset of parquet files, and its table in memory."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._dataset = ds.dataset([str(file) for file in files], format="parquet")
        self._plain = self._dataset.to_table()

    def takes(self, asked: Predicate) -> bool:
        """Arrow reads NOT (v <= NaN) as v > NaN where a file has statistics: it selects no row, not every."""
        return not (asked.operator == "NOT <=" and asked.values[0] != asked.values[0])

    def answers(self, asked: Sequence[Predicate], *, pushed: bool) -> Answers:
        found = {}
        for one in asked:
            told = expression(one, self._plain.schema)
            if pushed:
                chosen = self._dataset.to_table(columns=["id"], filter=told)
            else:
                chosen = self._plain.filter(told)
            found[one] = frozenset(chosen.column("id").to_pylist())
        return found


def expression(asked: Predicate, schema: pa.Schema) -> pc.Expression:
    name, field, _ = asked.column.path.partition(".")
    kind = schema.field(name).type
    place = ds.field(name, "x") if field else ds.field(name)
    kind = kind.field("x").type if field else kind
    scalars = [pa.scalar(value, kind) for value in asked.values]
    made: Mapping[str, Callable[[], pc.Expression]] = {
        "=": lambda: place == scalars[0],
        "!=": lambda: place != scalars[0],
        "<": lambda: place < scalars[0],
        "<=": lambda: place <= scalars[0],
        ">": lambda: place > scalars[0],
        ">=": lambda: place >= scalars[0],
        "NOT <=": lambda: ~(place <= scalars[0]),
        "IN": lambda: (place == scalars[0]) | (place == scalars[1]),
        "IS NULL": lambda: place.is_null(),
        "IS NOT NULL": lambda: place.is_valid(),
    }
    return made[asked.operator]()
