"""Whether the files that a commit names are there, as they were reported.

On a server each look is a request or two, and what Hudi asks before it has the table lock is some more: so a
look at few files is begun at once and answered under the lock, where the commit is checked. Many files are
waited for before, as those on a file system are: nobody is to wait for them at the lock.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from control_topic.messages import DataFile
from table.errors import Refused, Unavailable
from table.hudi.files.base_file import parse_file_name
from table.hudi.files.log_file import parse_log_file_name
from table.hudi.layout import file_id
from table.port import UPSERT
from table.store.port import Store

FOOTERS_READ_MAX = 100
"""Base files of one commit whose rows are counted, spread evenly over more. Every file's size is compared."""

LOOKS_AT_ONCE = 16
"""At files in an object store, each look being a request or two."""

ANSWERED_S = 10.0
"""How long a look may take that the table lock waits for: less than the check as a whole may take."""


class Look:
    """At the files of one commit. Its methods raise what `check_files` does, one of the two of them."""

    def __init__(self, instant: str, begun: Future[None], *, beside: bool) -> None:
        self._instant = instant
        self._begun = begun
        self._beside = beside

    def before_lock(self) -> None:
        if not self._beside:
            self._begun.result()

    def under_lock(self) -> None:
        """Waits for `ANSWERED_S` at most."""
        if self._beside:
            try:
                self._begun.result(ANSWERED_S)
            except TimeoutError as error:
                raise Unavailable(
                    f"instant {self._instant}: its files could not be looked at within {ANSWERED_S:.0f} s"
                ) from error


@contextmanager
def looking(store: Store, mode: str, instant: str, files: Sequence[DataFile]) -> Iterator[Look]:
    """A look at these files, which goes on while its caller does something else."""
    beside = store.capabilities.remote and len(files) <= LOOKS_AT_ONCE
    pool = ThreadPoolExecutor(1, "look-at-files")
    try:
        yield Look(instant, pool.submit(check_files, store, mode, instant, files), beside=beside)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def check_files(store: Store, mode: str, instant: str, files: Sequence[DataFile]) -> None:
    """Raise `Refused` unless every file is there, with its size, under the name that the instant gives it.

    And, of at most `FOOTERS_READ_MAX` base files, with its rows.
    """
    for file in files:
        _check_name(mode, instant, file)
    every = -(-len(files) // FOOTERS_READ_MAX) or 1
    read = set() if mode == UPSERT else {file.path for file in files[::every]}

    def look(file: DataFile) -> None:
        of_file = _check_rows if file.path in read else _check_size
        of_file(store, instant, file)

    _of_each(store, files, look)


def _of_each(store: Store, files: Sequence[DataFile], look: Callable[[DataFile], None]) -> None:
    """Side by side where each look is a request; the first file that is not as it should be is told of."""
    if not store.capabilities.remote or len(files) < 2:
        for file in files:
            look(file)
        return
    with ThreadPoolExecutor(min(LOOKS_AT_ONCE, len(files))) as pool:
        for _ in pool.map(look, files):
            pass


def _check_name(mode: str, instant: str, file: DataFile) -> None:
    relative = PurePosixPath(file.path)
    name = relative.name
    parsed = parse_log_file_name(name) if mode == UPSERT else parse_file_name(name)
    if parsed is None or (parsed[0], parsed[2]) != (file_id(file), instant):
        raise Refused(f"instant {instant}: file {file.path} does not carry its file id and instant")
    if str(relative.parent) != (file.table_partition or ".") or ".." in relative.parts:
        raise Refused(
            f"instant {instant}: file {file.path} is not in table partition {file.table_partition!r}"
        )


def _check_size(store: Store, instant: str, file: DataFile) -> None:
    try:
        found = store.stat(file.path)
    except OSError as error:
        raise Unavailable(
            f"instant {instant}: file {file.path} cannot be looked at: {error.strerror}"
        ) from error
    if found is None:
        raise Refused(f"instant {instant}: file {file.path} is not there")
    _compare_size(instant, file, found.size_bytes)


def _compare_size(instant: str, file: DataFile, size_bytes: int) -> None:
    if size_bytes != file.size_bytes:
        raise Refused(
            f"instant {instant}: file {file.path} has {size_bytes} bytes, {file.size_bytes} were reported"
        )


def _check_rows(store: Store, instant: str, file: DataFile) -> None:
    """Raise `Refused` unless a base file has its size, and as many rows as its footer is reported to say.

    A footer costs about half a millisecond, which a log file's blocks would not be counted in: of those the
    size has to do.
    """
    try:
        with store.source(file.path) as source:
            _compare_size(instant, file, source.seek(0, io.SEEK_END))
            rows = pq.read_metadata(source).num_rows
    except FileNotFoundError as error:
        raise Refused(f"instant {instant}: file {file.path} is not there") from error
    except pa.ArrowException as error:
        raise Refused(f"instant {instant}: file {file.path} is not whole: {error}") from error
    except OSError as error:
        raise Unavailable(f"instant {instant}: file {file.path} cannot be read: {error}") from error
    if rows != file.rows:
        raise Refused(f"instant {instant}: file {file.path} holds {rows} rows, {file.rows} were reported")
