"""Which files a sweep has to judge: with our mark, old enough, and not judged before.

Where a file bears a date by which all of its life can be told, that decides: the time of its content or its
name, by the clock of the file system. An object store says when an upload was begun, and keeps no folders'
times at all. There the instant in a file's name decides: a sweep looks at those of the last week, and
remembers what it has judged. In neither case does a removal rest on a clock: what is a candidate is removed
only if the timelines say so.
"""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import UTC, datetime
from typing import Protocol

from table.hudi.files.base_file import is_ours, parse_file_name
from table.hudi.files.log_file import is_in_bucket, is_our_log_file, parse_log_file_name
from table.hudi.layout import META_FOLDER
from table.hudi.upkeep import plans
from table.store.paths import DRAFT, draft_of, of_draft
from table.store.port import Store, Upload

MARKERS = f"{META_FOLDER}/.temp"
INSTANT_NAME = re.compile(r"^\d{17}$")
MARKER_NAME = re.compile(r"^(?P<of>.+)\.marker\.(CREATE|MERGE|APPEND)$")
"""Those of compactions are Hudi's, and may be hidden beside a checksum: `.NAME.crc`."""
BASE_SUFFIX, LOG_INFIX = ".parquet", ".log."
FIRST_LOOK_BACK_S = 7 * 24 * 3600
"""What has not changed for longer was judged by an earlier run."""
ANY_INSTANT = "9" * 17

Found = tuple[str, str]
"""A path below the table, and the instant in its name."""


class Candidates(Protocol):
    """Begin, look, settle; then again."""

    @property
    def seen(self) -> int:
        """Number of data files of all writers that `files` has listed since `begin`."""

    def begin(self, grace_ms: int) -> None:
        """What has changed within so long is left to a later sweep."""

    def files(self, noted: Container[str], unseen: list[OSError]) -> Iterator[Found]:
        """What storage refuses to show is noted in `unseen`."""

    def uploads(self, noted: Container[str]) -> Iterator[tuple[Upload, str]]:
        """Files with our mark that were begun, not ended, and are in no listing; with their instants."""

    def marker_folders(
        self, pending: Container[str], noted: Container[str], complete: Callable[[str], bool]
    ) -> Iterator[str]:
        """Of instants that are over: where all markers are ours, or the instant is complete. Hudi removes
        those of the latter quietly, as Spark's job, and leaves what it cannot: files of a clustering do not
        say whose they are.
        """

    def settle(self, judged: set[str], left: set[str], *, complete: bool) -> None:
        """`judged`: is not given again as it is. `left`: was given and could not be judged. `complete`:
        everything could be seen.
        """


def candidates(
    store: Store, *, in_local_time: bool, clock_s: Callable[[], float] = lambda: time.time()
) -> Candidates:
    """`in_local_time`: the table's timeline is. `clock_s`: this machine's, Unix epoch."""
    if store.capabilities.folders:
        return ByDates(store, clock_s=clock_s)
    return ByNames(store, in_local_time=in_local_time, clock_s=clock_s)


class ByDates:
    """Looks at what changed since the sweep before."""

    def __init__(self, store: Store, *, clock_s: Callable[[], float]) -> None:
        self._store = store
        self._clock_s = clock_s
        self._judged_until_s = clock_s() - FIRST_LOOK_BACK_S
        self._until_s = self._judged_until_s
        self._unjudged: set[str] = set()
        self.seen = 0

    def begin(self, grace_ms: int) -> None:
        self.seen = 0
        self._until_s = self._clock_s() - grace_ms / 1_000
        if self._until_s < self._judged_until_s:  # the clock went back: what came since may look older
            self._judged_until_s = self._until_s - FIRST_LOOK_BACK_S

    def files(self, noted: Container[str], unseen: list[OSError]) -> Iterator[Found]:
        try:
            for folder, names in self._store.walk(leaving_out=(META_FOLDER,)):
                self.seen += _data_files(names)
                yield from self._files_in(folder, names, noted, unseen)
        except OSError as error:
            unseen.append(error)

    def uploads(self, noted: Container[str]) -> Iterator[tuple[Upload, str]]:
        """Here what was begun is a file like any other."""
        return iter(())

    def marker_folders(
        self, pending: Container[str], noted: Container[str], complete: Callable[[str], bool]
    ) -> Iterator[str]:
        for instant in plans.names_in(self._store, MARKERS):
            folder = f"{MARKERS}/{instant}"
            if not INSTANT_NAME.match(instant) or instant in pending:
                continue
            if self._is_over(folder, noted) or complete(instant):
                yield folder

    def settle(self, judged: set[str], left: set[str], *, complete: bool) -> None:
        self._unjudged = left
        if complete:  # else what is there is judged once it can be seen
            self._judged_until_s = self._until_s

    def _files_in(
        self, folder: str, names: Sequence[str], noted: Container[str], unseen: list[OSError]
    ) -> Iterator[Found]:
        for name in names:
            instant = instant_of_ours(name, noted)
            if not instant:
                continue
            path = posixpath.join(folder, name)
            try:
                found = self._store.stat(path)
            except OSError as error:
                unseen.append(error)
                continue
            if found is None or found.changed_s > self._until_s:
                continue
            was_draft = posixpath.join(folder, draft_of(name))  # it has kept its date
            if found.changed_s > self._judged_until_s or {path, was_draft} & self._unjudged:
                yield path, instant

    def _is_over(self, folder: str, noted: Container[str]) -> bool:
        """False also where it cannot be seen."""
        try:
            for inner, names in self._store.walk(folder):
                found = self._store.stat(inner)
                if found is None or found.changed_s > self._until_s:
                    return False
                if not all(is_our_marker(name, noted) for name in names):
                    return False
        except OSError:
            return False
        return True


class ByNames:
    """Looks at what instants of the last week have in their names; no file's date is asked for."""

    def __init__(self, store: Store, *, in_local_time: bool, clock_s: Callable[[], float]) -> None:
        self._store = store
        self._clock_s = clock_s
        self._zone = None if in_local_time else UTC
        self._since = self._until = ""
        self._judged: set[str] = set()
        self.seen = 0

    def begin(self, grace_ms: int) -> None:
        self.seen = 0
        now_s = self._clock_s()
        self._since = self._named(now_s - FIRST_LOOK_BACK_S)
        self._until = self._named(now_s - grace_ms / 1_000) if grace_ms else ANY_INSTANT

    def files(self, noted: Container[str], unseen: list[OSError]) -> Iterator[Found]:
        still: set[str] = set()
        try:
            for folder, names in self._store.walk(leaving_out=(META_FOLDER,)):
                self.seen += _data_files(names)
                for name in names:
                    instant = instant_of_ours(name, noted)
                    if not self._since <= instant <= self._until:
                        continue
                    path = posixpath.join(folder, name)
                    if path in self._judged:
                        still.add(path)
                    else:
                        yield path, instant
        except OSError as error:
            unseen.append(error)
        else:
            self._judged = still  # those of instants that are older are forgotten, and not looked at

    def uploads(self, noted: Container[str]) -> Iterator[tuple[Upload, str]]:
        for upload in self._store.uploads():
            instant = instant_of_ours(posixpath.basename(upload.path), noted)
            if instant and instant <= self._until:
                yield upload, instant

    def marker_folders(
        self, pending: Container[str], noted: Container[str], complete: Callable[[str], bool]
    ) -> Iterator[str]:
        """From one listing of all markers."""
        over: dict[str, bool] = {}
        try:
            for folder, names in self._store.walk(MARKERS):
                instant = folder.removeprefix(f"{MARKERS}/").partition("/")[0]
                if INSTANT_NAME.match(instant) and instant not in pending and instant <= self._until:
                    ours = all(is_our_marker(name, noted) for name in names)
                    over[instant] = over.get(instant, True) and ours
        except OSError:
            return
        yield from (f"{MARKERS}/{one}" for one, all_ours in over.items() if all_ours or complete(one))

    def settle(self, judged: set[str], left: set[str], *, complete: bool) -> None:
        self._judged |= judged

    def _named(self, time_s: float) -> str:
        """As an instant of that time is called; to the second, which is near enough for a week."""
        return datetime.fromtimestamp(time_s, self._zone).strftime("%Y%m%d%H%M%S000")


def _data_files(names: Sequence[str]) -> int:
    return sum(name.endswith(BASE_SUFFIX) or LOG_INFIX in name for name in names)


def is_our_marker(name: str, noted: Container[str]) -> bool:
    if name.startswith(DRAFT):  # of a marker that whoever has died had not yet made
        return True
    is_checksum = name.startswith(".") and name.endswith(".crc")
    marker = MARKER_NAME.match(name[1 : -len(".crc")] if is_checksum else name)
    return marker is not None and bool(instant_of_ours(marker["of"], noted))


def instant_of_ours(name: str, noted: Container[str]) -> str:
    """The instant in the name of a file with our mark, of a bucket's base file, or of one for an instant that
    is noted as begun or taken away; empty for all others. A file's draft is as the file."""
    name = of_draft(name) or name
    parsed = parse_file_name(name)
    if parsed is not None:
        return parsed[2] if is_ours(name) or is_in_bucket(name) or parsed[2] in noted else ""
    parsed = parse_log_file_name(name) if is_our_log_file(name) else None
    return parsed[2] if parsed is not None else ""
