"""Where in its database's log a change was made, as a number that grows with the log.

Every connector gives the place in the `source` block, in fields of its own. A BIGINT is made of those that
count most, since Hudi 1.2.0 orders rows by numbers only:

| `source.connector` | the number's bits, the upper ones first |
|---|---|
| `postgresql` | `lsn` (63) |
| `mysql`, `mariadb` | the number at the end of `file` (30), `pos` (33) |
| `sqlserver` | of `commit_lsn` the virtual log file (31) and the block (32) |
| `oracle` | `scn` (63) |

Changes with the same number are told apart by their order on the topic, which is the log's. Other connectors
are refused by name.

A row that a snapshot reads is 0, older than any change: a transaction that was open when the snapshot began,
and is not in it, may have written its changes to the log before. So a snapshot fills in what is not there and
never takes a change back.

A binlog file beyond 4 GiB begins its positions again: `participant.records.envelopes.debezium.binlog` counts
that. Another server after a failover, `RESET MASTER` and `RESETLOGS` begin a log whose positions cannot be
compared with those of before: `participant.records.envelopes.debezium.order` finds them out. PostgreSQL and
Oracle count where a change was written, not where it was committed; of one row that is the same order, since
a row is locked from its change to its commit.

Source of the fields: Debezium's documentation, "Data change events" of each connector, held against its
classes `*SourceInfoStructMaker` (3.7).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from participant.records.envelopes.debezium.binlog import POS_BITS, RANGE
from participant.records.envelopes.debezium.order import FIELDS

INT64_MAX = 2**63 - 1
EVENT_BYTES_MAX = 1 << 30
"""Largest event of a binlog: MySQL's limit of `max_allowed_packet`."""
CONNECTOR_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
LSN = r"^(?P<file>[0-9a-fA-F]{8}):(?P<block>[0-9a-fA-F]{8}):[0-9a-fA-F]{4}$"


BELOW_ZERO = (
    "field source.pos is below zero: MariaDB 11.4 and newer write no positions into the binary log by "
    "default, and Debezium before 3.4 makes such numbers of that. Set binlog_legacy_event_pos=ON in MariaDB, "
    "or use a newer Debezium"
)
HINTS = {
    "mongodb": "unwrap its events with ExtractNewDocumentState, and read them without record.envelope",
    "yugabytedb": "unwrap its events with YBExtractNewRecordState, and read them without record.envelope",
}
"""Connectors whose events are known and not read as change events -> what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Where changes stand in their database's log, as numbers that can be compared."""

    numbers: pa.Array
    """A BIGINT per change, null where there is none."""
    reasons: dict[int, str]
    """Why there is none, by the change's place among them."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of an event's `source` that is a part of its position."""

    field: str
    kind: pa.DataType
    read: Callable[[pa.Array], pa.Array]
    """To numbers below 2 to the `bits`, null for what is no such thing."""
    bits: int


def _whole(numbers: pa.Array) -> pa.Array:
    return numbers


def _digits(texts: pa.Array) -> pa.Array:
    whole = pc.match_substring_regex(texts, "^[0-9]{1,18}$")
    return pc.if_else(whole, texts, pa.scalar(None, pa.string())).cast(pa.int64())


def _file_number(names: pa.Array) -> pa.Array:
    coded = names.dictionary_encode()  # a batch is of few files
    found = pc.extract_regex(coded.dictionary, r"\.(?P<number>[0-9]{1,10})$")
    return pc.struct_field(found, "number").cast(pa.int64()).take(coded.indices)


def _lsn(texts: pa.Array) -> pa.Array:
    coded = texts.dictionary_encode()  # a transaction has one
    found = pc.extract_regex(coded.dictionary, LSN).to_pylist()
    numbers = [None if one is None else int(one["file"], 16) << 32 | int(one["block"], 16) for one in found]
    fits = [None if one is None or one > INT64_MAX else one for one in numbers]
    return pa.array(fits, pa.int64()).take(coded.indices)


def _begin(positions: pa.Array) -> pa.Array:
    """Return where events begin. Debezium subtracts an event's length from the place behind it, which has
    begun again at zero if the event reaches across 4 GiB."""
    across = pc.and_(pc.less(positions, 0), pc.greater(positions, -EVENT_BYTES_MAX))
    return pc.if_else(across, pc.add(positions, RANGE), positions)


_FILE = _Part("file", pa.string(), _file_number, 30)
FORMATS: dict[str, tuple[_Part, ...]] = {
    "postgresql": (_Part("lsn", pa.int64(), _whole, 63),),
    "mysql": (_FILE, _Part("pos", pa.int64(), _begin, POS_BITS)),
    "mariadb": (_FILE, _Part("pos", pa.int64(), _whole, POS_BITS)),
    "sqlserver": (_Part("commit_lsn", pa.string(), _lsn, 63),),
    "oracle": (_Part("scn", pa.string(), _digits, 63),),
}
SOURCE = pa.struct(
    {
        "connector": pa.string(),
        **{part.field: part.kind for parts in FORMATS.values() for part in parts},
        **FIELDS,
    }
)
"""The fields of `source` that are read. Any may be missing."""


def positions(source: pa.StructArray, snapshot: npt.NDArray[np.bool_]) -> Positions:
    """The position of each change. `source`: as `SOURCE`, none null. `snapshot`: is it a snapshot's row?"""
    connectors = pc.struct_field(source, "connector")
    codes = pc.index_in(connectors, value_set=pa.array(FORMATS, pa.string()))
    codes = codes.fill_null(-1).to_numpy(zero_copy_only=False)
    numbers = np.zeros(len(source), dtype=np.int64)
    reasons = {int(i): _unknown(connectors[int(i)].as_py()) for i in np.flatnonzero(codes == -1)}
    for code, parts in enumerate(FORMATS.values()):
        rows = np.flatnonzero((codes == code) & ~snapshot)
        if not len(rows):
            continue
        of_these = source if len(rows) == len(source) else source.take(pa.array(rows))
        for part in parts:
            given = pc.struct_field(of_these, part.field)
            found = part.read(given)
            good = pc.and_(pc.greater_equal(found, 0), pc.less_equal(found, 2**part.bits - 1))
            good = good.fill_null(False).to_numpy(zero_copy_only=False)
            for place in np.flatnonzero(~good):
                reasons.setdefault(int(rows[place]), _why(part.field, given[int(place)].as_py()))
            below = np.where(good, found.fill_null(0).to_numpy(zero_copy_only=False), 0)
            numbers[rows] = (numbers[rows] << part.bits) + below
    wrong = np.zeros(len(source), dtype=np.bool_)
    wrong[list(reasons)] = True
    return Positions(numbers=pa.array(numbers, mask=wrong), reasons=reasons)


def _why(field: str, given: object) -> str:
    if given in (None, ""):
        return f"field source.{field} is missing or null: a change without its position"
    if field == "pos" and isinstance(given, int) and given < 0:
        return BELOW_ZERO
    return f"field source.{field} is not spelled as a position of this connector"


def _unknown(connector: str | None) -> str:
    if connector is None:
        return "field source.connector is missing or null"
    name = f"connector {connector}" if CONNECTOR_NAME.fullmatch(connector) else "the connector"
    hint = f": {HINTS[connector]}" if connector in HINTS else ""
    return f"{name} is not known: its positions cannot be compared (known: {', '.join(FORMATS)}){hint}"
