"""Whether Hudi's metadata table still agrees with the timeline of the table that it describes.

Readers take from the metadata table which files a table has. Hudi writes it first, under the table lock, and
completes the instant on the timeline after it; a rollback takes the instant out of both. Where the two come
apart, rows are hidden or come back, and no reader says so. Hudi 1.2.0 lets that happen: a rollback that
waits for the lock does not look again whether its instant has been completed meanwhile (of a LAZY cleaning,
and of a clustering that somebody else carries out), and a writer that stood still for longer than its lock
lives goes on.

Only names are compared, of instants that are on the active timelines of both: what is archived has been
looked at before. Sources: the file names of Hudi 1.2.0's timeline layout 2, and HoodieRollbackMetadata.avsc.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from table.errors import Contradiction
from table.hudi.reader.archive import METADATA_ACTIONS
from table.hudi.reader.stored import UNREADABLE, avro_record, table_properties, unavailable
from table.hudi.reader.timeline import COMPLETED
from table.store.location import store_at
from table.store.settings import StoreSettings

NAMED_MAX = 3
ROLLBACK = "rollback"
WRITES = "deltacommit"
"""How each write of the metadata table is called, whatever it is about."""
MAKING = "0000"
"""So begin the instants that make a metadata table: they are no times."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Instants by their requested times."""

    hidden: tuple[str, ...] = ()
    """Complete, and not in the metadata table."""
    back: tuple[str, ...] = ()
    """Rolled back, and still in it."""


def compare(data: Collection[str], metadata: Collection[str], rolled_back: Collection[str]) -> Disagreement:
    """`data`, `metadata`: file names on the two active timelines, the former read before the latter.

    `rolled_back`: the instants that rollbacks on the data's timeline are of.
    """
    made = {one[1]: one[2] for one in _completed(metadata) if one[3] == WRITES}
    complete = {one[1]: one[2] for one in _completed(data) if one[3] in METADATA_ACTIONS}
    if not made or not complete:
        return Disagreement()
    # What the metadata table was made from, or has archived, it does not name.
    first, since = min((time for time in made if not time.startswith(MAKING)), default=""), min(made.values())
    hidden = [one for one, at in complete.items() if one > first and at > since and one not in made]
    # A clustering that is carried out anew is rolled back, completed later, and archived before its rollback.
    oldest = min(complete)
    back = [one for one in rolled_back if one > oldest and one in made and one not in complete]
    return Disagreement(hidden=tuple(sorted(hidden)), back=tuple(sorted(back)))


def _completed(names: Iterable[str]) -> Iterator[re.Match[str]]:
    return (match for name in names if (match := COMPLETED.fullmatch(name)))


class Torn:
    """Of one table, whatever is kept being what cannot change. `path`: plain and absolute, or an address.

    `storage`: how its store is reached.
    """

    def __init__(self, path: str, storage: StoreSettings | None = None) -> None:
        self._path = path
        name = table_properties(path, storage).get("hoodie.timeline.path", "timeline")
        self._store = store_at(path, settings=storage)
        self._data = posixpath.join(".hoodie", name)
        self._metadata = posixpath.join(".hoodie", "metadata", ".hoodie", name)
        self._targets: dict[str, frozenset[str]] = {}

    def look(self) -> Disagreement:
        """Under the table lock, or beside a run: a moment's look that is right either way."""
        data = self._names(self._data)  # before the metadata table's, which is written before it
        return self._compared(data, self._names(self._metadata))

    def check(self) -> None:
        """Raise `Contradiction` where they have come apart. Under the table lock, where both stand still."""
        if said := why(self._path, self._look_at_both()):
            raise Contradiction(said)

    def _look_at_both(self) -> Disagreement:
        if not self._store.capabilities.remote:
            return self.look()
        with ThreadPoolExecutor(1) as pool:
            beside = pool.submit(self._names, self._metadata)
            data = self._names(self._data)
            metadata = beside.result()
        return self._compared(data, metadata)

    def _compared(self, data: Collection[str], metadata: Collection[str]) -> Disagreement:
        return compare(data, metadata, self._rolled_back(data) if metadata else ())

    def _rolled_back(self, data: Collection[str]) -> frozenset[str]:
        done = [match[0] for match in _completed(data) if match[3] == ROLLBACK]
        self._targets = {name: self._targets.get(name) or self._read(name) for name in done}
        return frozenset().union(*self._targets.values())

    def _read(self, name: str) -> frozenset[str]:
        try:
            with self._store.source(posixpath.join(self._data, name)) as file:
                return frozenset(avro_record(file).get("commitsRollback") or ())
        except FileNotFoundError:
            return frozenset()  # archived meanwhile
        except UNREADABLE as error:
            raise unavailable(self._store, posixpath.join(self._data, name), error) from error

    def _names(self, folder: str) -> list[str]:
        try:
            return self._store.names(folder)
        except FileNotFoundError:
            return []  # made by the first instant
        except OSError as error:
            raise unavailable(self._store, folder, error) from error


def why(path: str, apart: Disagreement) -> str:
    """A sentence for an operator; empty where they agree."""
    told = []
    if apart.hidden:
        told.append(f"instant {_some(apart.hidden)} is complete and not in it, so that its rows are hidden")
    if apart.back:
        told.append(f"instant {_some(apart.back)} was rolled back and is still in it")
    if not told:
        return ""
    return (
        f"table {path}: Hudi's metadata table, by which readers find files, contradicts the timeline: "
        f'{"; ".join(told)}. See "A metadata table that contradicts the timeline" in docs/operations.md'
    )


def _some(instants: tuple[str, ...]) -> str:
    more = len(instants) - NAMED_MAX
    return ", ".join(instants[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
