"""Records of which newer ones have more fields: the columns grow before any of them is decoded.

Of each schema that a batch names it is looked once which columns it would have. What it has and the table has
not is united with the table's (`table.widening`), so that no row is ever decoded without a field that its own
schema has. A record by an older schema is a row as before: what it lacks is null. Of events, some of which
hold no row, what a schema has besides counts from the first event on that holds one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from control_topic.bounds import COLUMNS_CHARS_MAX
from participant.records.by_schema.framing import SchemaKey
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import Schemas
from participant.records.errors import ChangedSchema, UnknownSchema
from participant.records.port import Decoded, Decoder, Follows, FollowsEvents
from participant.records.raw import RawBatch, Values
from table.schema import KAFKA_PREFIX, POSITION_COLUMN, SchemaError, parse_ddl, record_schema
from table.widening import Disunited, FixedColumn, ddl_of, united

log = logging.getLogger("lockstep.registry")

TOLD_CHARS_MAX = 16_000_000
KEYS_MAX = 10_000
"""Schemas that were looked at; then all are looked at anew."""
NEWS_MAX, NEWS_CHARS_MAX = 3, 1_000
HEAD_BYTES = 8
NO_HEADS = np.array([], dtype=np.uint64)
FEW = 4
"""Heads of values that are compared one by one."""
FIELDS_MAX = 20_000
"""Fields of one schema that are looked at, each type counted where it is used."""
PATH_CHARS_MAX = 1_000
COLUMNS_MAX = 5_000
"""Of a table that follows, those within columns included."""


Registered: TypeAlias = tuple[Schemas, Callable[[SchemaKey], str]]
"""Schemas, and by what subject and version one of them is known, for people."""


ADVICE = (
    'Write record.schema with the columns that the table is to have, and record.on_schema_change = "ignore"'
)


NEW_TABLE = (
    "Such a column keeps its type for the table's life: begin a new table, with another pipeline.id and "
    "table.path, and record.schema with the wider type. It reads the topics from their beginning"
)


class NoColumn(SchemaError):
    """A field of a schema can be no column of a table; the sentence names it."""


class FieldCount:
    """Counts the fields of one schema, each type counted where it is used, and the characters of their names.

    A schema of 4 kB, in which 26 types each use the one before twice, has 2^26 fields.
    """

    def __init__(self) -> None:
        self._fields, self._chars = 0, 0

    def add(self, path: str, name: str = "") -> None:
        """Count one more. Raises `NoColumn`."""
        self._fields += 1
        self._chars += len(name)
        if self._fields > FIELDS_MAX or self._chars > COLUMNS_CHARS_MAX:
            raise NoColumn(
                f"field {path[:PATH_CHARS_MAX]}: the schema has more than {FIELDS_MAX:,} fields, each type "
                f"counted where it is used, or names of more than {COLUMNS_CHARS_MAX:,} characters"
            )


def child(kind: pa.DataType | None, name: str = "") -> pa.DataType | None:
    """The type within a struct, a list or a map; None where there is none, or it is something else."""
    if kind is None:
        return None
    if name:
        place = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        return kind.field(place).type if place >= 0 else None
    if pa.types.is_list(kind):
        return kind.value_type
    return kind.item_type if pa.types.is_map(kind) else None


def widened(
    has: pa.Schema, wanted: pa.Schema, fixed: Collection[str] = (), taken: Collection[str] = ()
) -> pa.Schema:
    """The record's columns, wide enough for others, but those that are `taken` by columns from elsewhere.

    Raises `SchemaError` where no table can have them.
    """
    wanted = pa.schema([field for field in wanted if field.name not in taken])
    wide = united(has, wanted, fixed=fixed)
    if wide != has:
        ddl = ddl_of(wide)
        if sum(map(_places, wide.types)) > COLUMNS_MAX or len(ddl) > COLUMNS_CHARS_MAX:
            raise Disunited(f"the table would have more than {COLUMNS_MAX:,} columns and fields within them")
        try:
            parse_ddl(ddl)  # names, and what of them is reserved
        except SchemaError as why:
            raise NoColumn(str(why)) from why
    return wide


def _places(kind: pa.DataType) -> int:
    inner = [kind.field(place).type for place in range(kind.num_fields)] if kind.num_fields else []
    return 1 + sum(map(_places, inner))


class Once:
    """Schemas, of which each is asked for once. Not for several threads."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._told: dict[SchemaKey, tuple[str, ...]] = {}
        self._chars = 0

    def find(self, key: SchemaKey) -> tuple[str, ...]:
        """See `Schemas`."""
        texts = self._told.get(key)
        if texts is None:
            texts = self._schemas.find(key)
            if self._chars > TOLD_CHARS_MAX:
                self._told.clear()
                self._chars = 0
            self._told[key] = texts
            self._chars += sum(map(len, texts))
        return texts


class FollowingDecoder:
    """Decodes, and decodes with more columns from the first record on that has any. Not for several threads.

    `schema`: the table's, ours included. `make`: a decoder for such a schema; raises `SchemaError` where
    there is none, or no such table. `fixed`: columns by which rows and files are found. `taken`: fields that
    make no column of their own. `halts`: what the table has not, stops.
    """

    def __init__(
        self,
        schema: pa.Schema,
        make: Callable[[pa.Schema], Decoder],
        follows: Follows,
        *,
        fixed: Collection[str] = (),
        taken: Collection[str] = (),
        halts: bool = False,
    ) -> None:
        self._record = record_schema(schema)
        self._ours = [one for one in schema if one.name.startswith((KAFKA_PREFIX, POSITION_COLUMN))]
        self._make, self._follows = make, follows
        self._fixed, self._taken, self._halts = frozenset(fixed), frozenset(taken), halts
        self._events = follows if isinstance(follows, FollowsEvents) else None
        self._seen: set[Hashable] = set()
        self._rowless: set[Hashable] = set()
        """Schemas that have more than the table, and of which no event has brought a row."""
        self._settled = NO_HEADS
        self._brought: deque[str] = deque(maxlen=NEWS_MAX)
        self._inner = make(schema)

    @property
    def news(self) -> str:
        """Which schemas have brought columns last, for people."""
        return ", ".join(self._brought)

    def decode(self, batch: RawBatch) -> Decoded:
        """See `Decoder`. The table has the columns that are known by then."""
        stop = self._look(batch)
        if stop is not None:
            return Decoded(table=self._record.empty_table(), stop=stop)
        return self._inner.decode(batch)

    def _look(self, batch: RawBatch) -> tuple[int, str] | None:
        """Learn of the schemas of a batch, in its order. The first record that may not pass, and why."""
        headers = batch.naming(self._follows.header.encode())
        places = range(len(batch)) if headers is not None else self._places_of_news(batch.values)
        for place in places:
            value = batch.values[place] or b""
            named = headers[place] if headers is not None else None
            try:
                key = self._follows.key(value, named)
            except Misread:
                continue
            if why := self._seen_by(key, value, named):
                return place, why
            if headers is None and key in self._seen:
                self._settle(value[: self._follows.alike_bytes])
        return None

    def _seen_by(self, key: Hashable, value: bytes, named: bytes | None) -> str:
        """Learn of a schema once. Why records of it may not pass; empty where they may."""

        def brings_row() -> bool:
            return self._events is None or self._events.brings_row(key, value, named)

        if key in self._seen or (key in self._rowless and not brings_row()):
            return ""
        try:
            why = self._learn(key, brings_row)
        except ChangedSchema as changed:
            return str(changed)
        if not why:
            if len(self._seen) + len(self._rowless) >= KEYS_MAX:
                self._seen.clear()
                self._rowless.clear()
                self._settled = NO_HEADS
            (self._rowless if why is None else self._seen).add(key)
        return why or ""

    def _settle(self, head: bytes) -> None:
        """Values that begin so name a schema that was seen."""
        if self._follows.is_alike(head):
            number = np.array([int.from_bytes(head, "little")], dtype=np.uint64)
            self._settled = np.union1d(self._settled, number)

    def _places_of_news(self, values: Values) -> Sequence[int]:
        """Where a schema may be named that was not seen, ascending: of values that begin alike one is enough.

        What a longer name says of its schema is looked at record by record, and so are events: see `_learn`.
        """
        follows = self._follows
        heads, places = _heads(values, follows.alike_bytes)
        fresh = np.ones(len(heads), dtype=np.bool_)
        if len(self._settled) <= FEW:
            for settled in self._settled:
                fresh &= heads != settled
        else:
            fresh = ~np.isin(heads, self._settled)
        if not fresh.any():
            return ()
        heads, places = heads[fresh], places[fresh]
        if self._events is not None:
            every: list[int] = places.tolist()
            return every
        distinct, first, inverse = np.unique(heads, return_index=True, return_inverse=True)
        alike = [follows.is_alike(head.tobytes()[: follows.alike_bytes]) for head in distinct]
        wanted = ~np.array(alike)[inverse]
        wanted[first] = True
        found: list[int] = places[wanted].tolist()
        return found

    def _learn(self, key: Hashable, brings_row: Callable[[], bool]) -> str | None:
        """Why records of this schema may not pass; empty where they may. None: nothing is known of it yet.

        That is where the record brings no row: it neither adds a column nor stops, unless it could not be
        read without a wider one.
        """
        try:
            wanted = self._follows.columns(key, self._record)
            wide = widened(self._record, wanted, self._fixed, self._taken)
        except (NoColumn, Disunited) as why:
            advice = NEW_TABLE if isinstance(why, FixedColumn) else ADVICE
            return (
                f"{self._follows.spelled(key)}: {placed(why, self._within(key))}. {advice}"
                if brings_row()
                else None
            )
        except (UnknownSchema, SchemaError):
            return ""  # each record that names it is a reject, and the decoder says why
        if wide == self._record:
            return ""
        rowless = not brings_row()
        if rowless and (self._halts or not _retyped(self._record, wide)):
            return None
        brought = news(self._record, wide)
        if self._halts:
            brought = news(self._record, wide, self._within(key))
            return (
                f"{self._follows.spelled(key)} has what the table has not, {brought}, and "
                'record.on_schema_change is "halt": say "evolve" to take it, or "ignore" to leave it out'
            )
        try:
            inner = self._make(pa.schema([*wide, *self._ours]))
        except SchemaError as why:
            said = f"{self._follows.spelled(key)} has more columns, {brought}: {why}. {ADVICE}"
            return None if rowless else said
        self._brought.append(self._follows.spelled(key)[:200])
        log.info("%s has more columns: %s", self._brought[-1], brought)
        self._record, self._inner = wide, inner
        self._rowless.discard(key)
        return ""

    def _within(self, key: Hashable) -> str:
        """The field of events that holds their row; empty where a value is the row."""
        return self._events.place(key) if self._events is not None else ""


def placed(why: SchemaError, within: str) -> str:
    """The sentence, of a field of what is within that."""
    said = str(why)
    return said.replace("field ", f"field {within}.", 1) if within and said.startswith("field ") else said


def news(has: pa.Schema, wide: pa.Schema, within: str = "") -> str:
    """What is in the wider columns alone, in Spark DDL, for people; empty where nothing is.

    `within`: what they are fields of, where that is not the value.
    """
    known = {field.name: field for field in has}
    fresh = [field for field in wide if field.name not in known or field != known[field.name]]
    if within:
        fresh = [field.with_name(f"{within}.{field.name}") for field in fresh]
    return ddl_of(fresh)[:NEWS_CHARS_MAX].replace("`", "")


def _retyped(has: pa.Schema, wide: pa.Schema) -> bool:
    """Whether a column that is there is of another type, as which alone its values are read."""
    return any(not pa.types.is_nested(one.type) and wide.field(one.name).type != one.type for one in has)


def _heads(values: Values, width: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The first bytes of each value that has so many, 8 at most, little-endian, and where it stands."""
    lengths = np.diff(values.starts) - 1
    places = np.flatnonzero(lengths >= width)
    padded = values.data + bytes(HEAD_BYTES)
    at_each = np.ndarray((len(values.data) + 1,), dtype="<u8", buffer=padded, strides=(1,))
    heads = at_each[values.starts[places]] & np.uint64((1 << 8 * width) - 1)
    return heads.astype(np.uint64, copy=False), places
