"""Whether a source still writes the log whose places the table's rows hold. Pure.

After a failover to a server with a log of its own, `RESET MASTER`, `RESETLOGS` or a restored backup, changes
have places that lie before those of older changes. The table would take every one of them for old, and keep
what it has. Such a change can be told from one that a connector only sends again: it was made later than all
that was read before it, while what is sent again was read before with the time that it has.

What is compared is the place at which changes leave the log, since some are written long before they are:

| `source.connector` | |
|---|---|
| `mysql`, `mariadb`, `sqlserver` | the position itself |
| `postgresql` | the first number of `sequence`: the last commit before the change |
| `oracle` | `commit_scn` |

The time is `source.ts_ms`, the database's own. A change that has no such place or time is not looked at, nor
is a snapshot's row. Several connectors may share a topic: each is known by its `source.name`, and the logs of
several databases of one SQL Server by `source.db` as well.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from control_topic.messages import SourcePartition
from participant.records.envelopes.debezium.binlog import BinlogRanges

NAMES_MAX = 1_000
"""Of connectors, remembered per source partition."""
NAME_LENGTH_MAX = 250

WHY = (
    "this change was made later than all before it, but its position in the source's log lies before theirs. "
    "The source has a new log: after a failover, a restored backup, or a reset of the log. Compared by "
    "position its changes would all be older than what the table holds, and be ignored. docs/upserts.md, "
    '"When the source\'s log begins anew", says how to go on'
)

Numbers = npt.NDArray[np.int64]
Key = tuple[str, str]

OF_POSITION = frozenset({"mysql", "mariadb", "sqlserver"})
OF_BINLOG = frozenset({"mysql", "mariadb"})
FIELDS = {
    "name": pa.string(),
    "db": pa.string(),
    "ts_ms": pa.int64(),
    "sequence": pa.string(),
    "commit_scn": pa.string(),
}
"""Of `source`, beside those of the position."""


class LogOrder:
    """Remembers how far each connector's log was read, per source partition. Not for several threads."""

    def __init__(self) -> None:
        self._read: dict[SourcePartition, dict[Key, tuple[int, int]]] = {}
        self._ranges = BinlogRanges()

    def knows(self, partition: SourcePartition) -> bool:
        """Whether anything of it was read."""
        return partition in self._read

    def expand(
        self, partition: SourcePartition, offsets: Numbers, source: pa.StructArray, numbers: Numbers
    ) -> Numbers:
        """Return the numbers with what `BinlogRanges.expand` adds to those of binlogs.

        `offsets`, `source`, `numbers`: of changes, without those of snapshots, in topic order.
        """
        ours = _in(pc.struct_field(source, "connector"), OF_BINLOG)
        if not ours.any():
            return numbers
        times = pc.struct_field(source, "ts_ms").fill_null(-1).to_numpy(zero_copy_only=False)
        expanded = numbers.copy()
        for key, rows in _groups(source, ours):
            of = self._ranges.expand(partition, key, offsets[rows], numbers[rows], times[rows])
            expanded[rows] = of
        return expanded

    def first_of_a_new_log(
        self, partition: SourcePartition, source: pa.StructArray, numbers: Numbers, *, accept: bool = False
    ) -> int | None:
        """The place of the first change that is of another log than those before it, in topic order.

        What stands before it is remembered. `source`, `numbers`: of changes and their positions, without
        those of snapshots. `accept`: all were committed, so that a new log counts from where it began.
        """
        read = self._read.setdefault(partition, {})
        if not len(source):
            return None
        places, times, known = _columns(source, numbers)
        groups = _groups(source, known)
        firsts = {} if accept else {key: _first(rows, places, times, read.get(key)) for key, rows in groups}
        found = min((first for first in firsts.values() if first is not None), default=None)
        for key, rows in groups:
            if found is not None:
                rows = rows[rows < found]
            while len(rows):
                first = _first(rows, places, times, read.get(key))
                before = rows if first is None else rows[rows < first]
                if len(before):
                    read[key] = _greatest(read.get(key), places[before], times[before])
                if first is not None:
                    read.pop(key, None)
                rows = rows[len(before) :]
        while len(read) > NAMES_MAX:
            del read[next(iter(read))]
        return found


def _groups(source: pa.StructArray, known: npt.NDArray[np.bool_]) -> list[tuple[Key, Numbers]]:
    """The places of each connector's changes, as far as they can be compared."""
    connector, name, database = (
        pc.struct_field(source, field).fill_null("").dictionary_encode()
        for field in ("connector", "name", "db")
    )
    connectors, names, databases = (one.dictionary.to_pylist() for one in (connector, name, database))
    connector_codes, name_codes, database_codes = (
        one.indices.to_numpy().astype(np.int64) for one in (connector, name, database)
    )
    by_database = np.array([one == "sqlserver" for one in connectors], dtype=np.bool_)[connector_codes]
    codes = (connector_codes * len(names) + name_codes) * len(databases)
    codes += np.where(by_database, database_codes, 0)
    found: dict[Key, list[Numbers]] = {}
    for code in np.unique(codes[known]).tolist():
        outer, inner = divmod(code, len(names) * len(databases))
        own = names[inner // len(databases)][:NAME_LENGTH_MAX]
        if connectors[outer] == "sqlserver":
            own = f"{own}.{databases[inner % len(databases)][:NAME_LENGTH_MAX]}"
        key = (connectors[outer][:NAME_LENGTH_MAX], own)
        found.setdefault(key, []).append(np.flatnonzero(known & (codes == code)))
    return [
        (key, some[0] if len(some) == 1 else np.sort(np.concatenate(some))) for key, some in found.items()
    ]


def _first(rows: Numbers, places: Numbers, times: Numbers, read: tuple[int, int] | None) -> int | None:
    """The first of the rows whose place lies before those read before it, and whose time behind theirs."""
    place, time = read if read is not None else (-1, -1)
    furthest = np.maximum.accumulate(np.concatenate([[place], places[rows][:-1]]))
    latest = np.maximum.accumulate(np.concatenate([[time], times[rows][:-1]]))
    fallen = np.flatnonzero((places[rows] < furthest) & (times[rows] > latest))
    return int(rows[fallen[0]]) if len(fallen) else None


def _greatest(read: tuple[int, int] | None, places: Numbers, times: Numbers) -> tuple[int, int]:
    place, time = read if read is not None else (-1, -1)
    return max(place, int(places.max())), max(time, int(times.max()))


def _columns(source: pa.StructArray, numbers: Numbers) -> tuple[Numbers, Numbers, npt.NDArray[np.bool_]]:
    """Where each change left the log, when it was made, and which have both."""
    connectors = pc.struct_field(source, "connector")
    places = numbers.copy()
    ordered = _in(connectors, OF_POSITION)
    for connector, read in _READ.items():
        these = _in(connectors, {connector})
        if these.any():
            given = read(source)
            places = np.where(these, given.fill_null(-1).to_numpy(zero_copy_only=False), places)
            ordered |= these & given.is_valid().to_numpy(zero_copy_only=False)
    stamps = pc.struct_field(source, "ts_ms")
    known = ordered & stamps.is_valid().to_numpy(zero_copy_only=False)
    return places, stamps.fill_null(-1).to_numpy(zero_copy_only=False), known


def _in(connectors: pa.Array, wanted: frozenset[str] | set[str]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.is_in(connectors, pa.array(sorted(wanted))).to_numpy(
        zero_copy_only=False
    )
    return found


def _last_commit(source: pa.StructArray) -> pa.Array:
    found = pc.extract_regex(pc.struct_field(source, "sequence"), r'^\["(?P<number>[0-9]{1,18})"')
    return pc.struct_field(found, "number").cast(pa.int64())


def _commit_scn(source: pa.StructArray) -> pa.Array:
    found = pc.extract_regex(pc.struct_field(source, "commit_scn"), "^(?P<number>[0-9]{1,18})$")
    return pc.struct_field(found, "number").cast(pa.int64())


_READ: dict[str, Callable[[pa.StructArray], pa.Array]] = {"postgresql": _last_commit, "oracle": _commit_scn}
