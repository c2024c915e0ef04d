"""A Hudi table's timeline, read without a JVM: what is committed, what is pending, what the table is.

Table versions 8 and 9 (timeline layout 2), as hudi-spark 1.2.0 writes them:
* active: `.hoodie/timeline/<requested>_<completed>.<action>` is one Avro container file with one
  HoodieCommitMetadata; `<requested>.<action>.requested`, `<requested>.<action>.inflight` and, of a commit,
  `<requested>.inflight` are pending as long as no completed file of the same requested time is there;
* archived: `.hoodie/timeline/history/` (`table.hudi.reader.archive`).

The PyPI `hudi` reader knows neither completion times nor pending nor archived instants, hence this.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from table.chain import earliest_after, newest_of
from table.errors import Refused
from table.hudi.reader.archive import METADATA_ACTIONS, ArchivedTimeline
from table.hudi.reader.stored import UNREADABLE, avro_record, properties_of, read_bytes, unavailable
from table.instants import CommittedFile, Instant, PendingInstant, Savepoint
from table.state import PREFIX, StateError, TableState, decode
from table.store.location import store_at
from table.store.port import Store
from table.store.settings import StoreSettings

VERSIONS = ("8", "9")
LAYOUT = "2"
REARRANGING = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT"})
"""Operations that move rows to other files and leave them, and their commit times, as they are."""

COMPLETED = re.compile(r"(\d{14,17})_(\d{14,17})\.([a-z]+)")
_PENDING = re.compile(r"(\d{14,17})(?:\.([a-z]+))?\.(requested|inflight)")


class Finished(NamedTuple):
    """A completed instant, by its file's name."""

    requested: str
    completed: str
    action: str

    @property
    def file(self) -> str:
        return f"{self.requested}_{self.completed}.{self.action}"


class Timeline:
    """One table's timeline. Every call looks anew; nothing is kept. `base_path`: a path or an address.

    Raises `MissingTable`, `Refused` for a table that cannot be read this way, `Unavailable` where storage
    does not serve, `table.state.StateError` for a Lockstep commit that cannot be read.
    """

    def __init__(self, base_path: str | os.PathLike[str], storage: StoreSettings | None = None) -> None:
        self._storage = storage
        self._store = store_at(os.fspath(base_path), settings=storage)
        self.place = self._store.place()
        properties = properties_of(self._store)
        version, layout = (
            properties.get("hoodie.table.version"),
            properties.get("hoodie.timeline.layout.version"),
        )
        if version not in VERSIONS or layout != LAYOUT:
            raise Refused(
                f"Table {self.place} is of version {version} with timeline layout {layout}; Lockstep reads "
                f"versions {' and '.join(VERSIONS)}: upgrade it with Hudi's own tools."
            )
        self._folder = posixpath.join(".hoodie", properties.get("hoodie.timeline.path", "timeline"))
        history = properties.get("hoodie.timeline.history.path", "history")
        self.archive = ArchivedTimeline(self._store, posixpath.join(self._folder, history))
        self.properties = properties
        self._zone = UTC if properties.get("hoodie.table.timeline.timezone", "LOCAL") == "UTC" else None

    @property
    def store(self) -> Store:
        """Where the table is."""
        return self._store

    @property
    def in_local_time(self) -> bool:
        """Whether instants are named by local time, which falls back where summer time ends."""
        return self._zone is None

    def completed(self) -> Iterator[Instant]:
        """Completed instants, newest completion first: the active ones, then the archived ones, lazily."""
        seen: set[str] = set()
        for one in self._active():
            seen.add(one.requested)
            yield one
        for requested, completed, action, raw in self.archive.newest_first():
            if requested not in seen:
                seen.add(requested)
                yield self._instant(requested, completed, action, raw)

    def active(self) -> tuple[list[Finished], frozenset[str]]:
        """What names say of the active timeline: completed instants, newest completion first, and the
        requested times of those that are not completed.
        """
        names = self._names()
        finished = _finished(names)
        done = {one.requested for one in finished}
        begun = {match[1] for name in names if (match := _PENDING.fullmatch(name))}
        return finished, frozenset(begun - done)

    def metadata(self, one: Finished) -> Mapping[str, Any]:
        """Return the metadata of an instant. Raises `FileNotFoundError` if it has been archived since."""
        raw = self._read(self._folder, one.file)
        with self.decoding(one.requested, one.action):
            return avro_record(io.BytesIO(raw))

    def metadata_of(self, instants: Iterable[Finished]) -> Iterator[tuple[Finished, Mapping[str, Any]]]:
        """Yield the metadata of the instants that have some, without those that were archived meanwhile."""
        for one in instants:
            if one.action in METADATA_ACTIONS:
                try:
                    metadata = self.metadata(one)
                except FileNotFoundError:
                    continue
                yield one, metadata

    def newest(self, pipeline: str) -> TableState | None:
        """The state of this pipeline's newest commit, archived timeline included; None before genesis."""
        instant = self.newest_instant(pipeline)
        return instant.state if instant is not None else None

    def newest_instant(self, pipeline: str) -> Instant | None:
        """This pipeline's newest commit: the one that follows all others, whatever clocks said."""
        ours = {s.instant: i for i in self._active() if (s := i.state) is not None and s.pipeline == pipeline}
        newest = newest_of(one.state for one in ours.values() if one.state is not None)
        found = ours[newest.instant] if newest is not None else None
        local = self.in_local_time
        if found is not None and not local:
            return found

        def until() -> str:
            return earliest_after(found.requested, in_local_time=local) if found is not None else ""

        for entry in self.archive.newest_first(until=until):
            one = self._instant(*entry)
            if one.state is None or one.state.pipeline != pipeline:
                continue
            if found is None or found.state is None or newest_of((found.state, one.state)) is one.state:
                found = one
        return found

    def said(self, names: Collection[str]) -> tuple[str, Mapping[str, str]]:
        """See `table.port.TableReader`. The archived timeline, too, where the active one is silent."""
        for requested, raw, action in self._metadata():
            with self.decoding(requested, action):
                extra = avro_record(io.BytesIO(raw)).get("extraMetadata") or {}
            if found := {name: str(extra[name]) for name in names if extra.get(name)}:
                return requested, found
        return "", {}

    def _metadata(self) -> Iterator[tuple[str, bytes, str]]:
        """(requested, metadata, action) of completed commits, newest completion first."""
        seen: set[str] = set()
        for one in _finished(self._names()):
            seen.add(one.requested)
            if one.action in METADATA_ACTIONS:
                try:
                    yield one.requested, self._read(self._folder, one.file), one.action
                except FileNotFoundError:
                    seen.discard(one.requested)  # archived since it was listed, and met again there
        for requested, _completed, action, raw in self.archive.newest_first():
            if requested not in seen and raw:
                yield requested, raw, action

    def oldest_savepoint(self) -> Savepoint | None:
        """See `table.port.TableReader`. Hudi archives nothing that completed after a saved commit."""
        finished = _finished(self._names())
        savepoints = [one for one in finished if one.action == "savepoint"]
        if not savepoints:
            return None
        oldest = min(savepoints, key=lambda one: one.requested)
        kept = sum(1 for one in finished if one.action != "savepoint" and one.requested > oldest.requested)
        return Savepoint(instant=oldest.requested, created=oldest.completed, kept=kept)

    def pending(self) -> list[PendingInstant]:
        """Instants that are requested or inflight, everybody's, oldest first."""
        names = self._names()
        done = {match[1] for name in names if (match := COMPLETED.fullmatch(name))}
        open_ones: dict[str, PendingInstant] = {}
        # "inflight" sorts before "requested": the further phase wins.
        for name in sorted(names, key=lambda name: name.rpartition(".")[2]):
            match = _PENDING.fullmatch(name)
            if match is None or match[1] in done or match[1] in open_ones:
                continue
            open_ones[match[1]] = PendingInstant(
                requested=match[1],
                action=match[2] or "commit",
                phase=match[3],
                owner=self._owner(name) if match[3] == "inflight" else {},
                rolls_back=self._rolls_back(match[1]) if match[2] == "rollback" else "",
            )
        targets = {one.rolls_back for one in open_ones.values()} - {""}
        return [
            _with_rollback(one) if one.requested in targets else one
            for one in sorted(open_ones.values(), key=lambda one: one.requested)
        ]

    def time_ms(self, instant_time: str) -> int:
        """Return an instant's time, milliseconds since 1970. `LOCAL` is taken to be this machine's zone.

        Of a local time that comes twice, as where summer time ends, the later one: a pending instant that
        seems too young is left alone, one that seems too old is taken for abandoned.
        """
        text = instant_time.ljust(17, "0")[:17]
        try:
            moment = datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=self._zone, fold=1)
            return int(moment.timestamp()) * 1_000 + int(text[14:])
        except (ValueError, OverflowError) as error:
            raise Refused(f"Table {self.place}: instant {instant_time} does not name a time.") from error

    # --- reading ----------------------------------------------------------------------------------

    def _active(self) -> Iterator[Instant]:
        """Completed instants of the active timeline, newest completion first."""
        for one in _finished(self._names()):
            try:
                raw = self._read(self._folder, one.file) if one.action in METADATA_ACTIONS else b""
            except FileNotFoundError:
                continue  # archived since it was listed, and met again there
            yield self._instant(*one, raw)

    def _names(self) -> list[str]:
        try:
            return self._store.names(self._folder)
        except FileNotFoundError:
            return []  # made by the first instant
        except (OSError, ValueError) as error:
            raise unavailable(self._store, self._folder, error) from error

    def _instant(self, requested: str, completed: str, action: str, raw: bytes) -> Instant:
        if action not in METADATA_ACTIONS:
            return Instant(requested=requested, completed=completed, action=action)
        with self.decoding(requested, action):
            return _committed(requested, completed, action, avro_record(io.BytesIO(raw)))

    @contextmanager
    def decoding(self, requested: str, action: str) -> Iterator[None]:
        """Whatever damage to an instant's metadata does to who reads it is `Refused`."""
        try:
            yield
        except StateError:
            raise
        except UNREADABLE as error:
            raise Refused(
                f"Table {self.place}: the metadata of instant {requested} ({action}) cannot be read:"
                f" {error!r}. Was it written by a newer Hudi, or damaged?"
            ) from error

    def _owner(self, name: str) -> Mapping[str, str]:
        """Whose an inflight instant is; empty where it does not say, or is no longer there."""
        try:
            raw = self._read(self._folder, name)
            extra = avro_record(io.BytesIO(raw)).get("extraMetadata") or {} if raw else {}
            return {key.removeprefix(PREFIX): value for key, value in extra.items() if key.startswith(PREFIX)}
        except FileNotFoundError:
            return {}
        except UNREADABLE as error:
            raise unavailable(self._store, posixpath.join(self._folder, name), error) from error

    def _rolls_back(self, requested: str) -> str:
        name = f"{requested}.rollback.requested"
        try:
            raw = self._read(self._folder, name)
            plan = avro_record(io.BytesIO(raw)) if raw else {}
            target = plan.get("instantToRollback") or {}
            return str(target.get("commitTime") or "")
        except FileNotFoundError:
            return ""
        except UNREADABLE as error:
            raise unavailable(self._store, posixpath.join(self._folder, name), error) from error

    def _read(self, folder: str, name: str) -> bytes:
        return read_bytes(self._store, posixpath.join(folder, name))


def _finished(names: Sequence[str]) -> list[Finished]:
    """Newest completion first."""
    found = [Finished(*match.groups()) for name in names if (match := COMPLETED.fullmatch(name))]
    return sorted(found, key=lambda one: (one.completed, one.requested), reverse=True)


def schema_in(metadata: Mapping[str, Any]) -> str:
    """As a writer of rows had it, in Avro; empty of who only moved them, in whatever words it had it."""
    if str(metadata.get("operationType") or "").upper() in REARRANGING:
        return ""
    return str((metadata.get("extraMetadata") or {}).get("schema") or "")


def _committed(requested: str, completed: str, action: str, metadata: Mapping[str, Any]) -> Instant:
    groups: Mapping[str, Sequence[Mapping[str, Any]]] = metadata.get("partitionToWriteStats") or {}
    stats = [stat for group in groups.values() for stat in group]
    operation = metadata.get("operationType") or ""
    return Instant(
        requested=requested,
        completed=completed,
        action=action,
        operation=operation,
        state=decode(metadata.get("extraMetadata") or {}, instant=requested),
        files=tuple(
            CommittedFile(
                path=stat.get("path") or "",
                rows=stat.get("numWrites") or 0,
                size_bytes=stat.get("fileSizeInBytes") or 0,
            )
            for stat in stats
        ),
        updated=sum(stat.get("numUpdateWrites") or 0 for stat in stats),
        deleted=sum(stat.get("numDeletes") or 0 for stat in stats),
        replaces=action == "replacecommit" and operation.upper() != "CLUSTER",
        writes=True,
        rearranges=operation.upper() in REARRANGING,
    )


def _with_rollback(one: PendingInstant) -> PendingInstant:
    return PendingInstant(
        requested=one.requested,
        action=one.action,
        phase=one.phase,
        owner=one.owner,
        rollback_requested=True,
    )
