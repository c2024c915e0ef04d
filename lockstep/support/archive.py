"""The archive: members of bounded size, without secrets, and a listing of what is in it and what is not."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from control_topic.spelling import one_line, plain
from lockstep.errors import ConfigError, Failed
from lockstep.output import readable_size
from lockstep.support.redaction import Redactor

BYTES_MAX = 100_000_000
"""Of all members together, before they are compressed."""
MANIFEST = "MANIFEST.txt"
MANIFEST_MAX = 100_000
RIGHTS = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What is in the archive."""

    name: str
    size_bytes: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """What is not, or not whole, and why."""

    name: str
    why: str


class Archive:
    """`file`: a zip file that is being written. Nothing gets into it but through the redactor."""

    def __init__(self, file: zipfile.ZipFile, redactor: Redactor, *, bytes_max: int = BYTES_MAX) -> None:
        self._file, self._redactor = file, redactor
        self._left = bytes_max - MANIFEST_MAX
        self._now = datetime.now(UTC)
        self.members: list[Member] = []
        self.absent: list[Absent] = []

    def add(self, name: str, text: str, what: str) -> None:
        """`text`: bytes that are no UTF-8 as Python's surrogate escapes."""
        content = self._redactor(text).encode("utf-8", "surrogateescape")
        if len(content) > self._left:
            self.miss(name, f"cut to {readable_size(self._left)}: the archive would be too large")
            content = content[: self._left]
        self._left -= len(content)
        self._write(name, content)
        self.members.append(Member(name=name, size_bytes=len(content), what=what))

    def miss(self, name: str, why: str) -> None:
        """It is not in it, or not whole."""
        self.absent.append(Absent(name=name, why=self._redactor(one_line(why))))

    def finish(self, heading: str) -> None:
        """Write the listing. Nothing is added after it."""
        lines = [heading, "", "What is in it:", ""]
        lines += [f"  {one.name}  {readable_size(one.size_bytes)}  {one.what}" for one in self.members]
        lines += ["", "What could not be had, or not whole:", ""]
        lines += [f"  {one.name}: {one.why}" for one in self.absent] or ["  nothing"]
        lines += ["", NOTE]
        content = self._redactor(plain("\n".join(lines))).encode("utf-8", "replace")[:MANIFEST_MAX]
        self._write(MANIFEST, content)

    def _write(self, name: str, content: bytes) -> None:
        info = zipfile.ZipInfo(name, date_time=self._now.timetuple()[:6])
        info.external_attr = RIGHTS << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self._file.writestr(info, content)


NOTE = (
    "Secrets that the configuration names are replaced by *** in every member. What else is confidential\n"
    "nobody knows here: names of topics, columns, hosts and files are as they are, and reasons for which\n"
    "records were rejected may quote their values. Look through it before you send it.\n"
)


@contextmanager
def writing(path: Path, *, force: bool) -> Iterator[zipfile.ZipFile]:
    """A new file, for its user's eyes alone, which is there as a whole or not at all.

    Raises `ConfigError` where something is there already and is not to be replaced.
    """
    if not force and os.path.lexists(path):
        raise _taken(path)
    name = ""
    try:
        with _until_told_to_end():
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")  # 0600
            with os.fdopen(descriptor, "wb") as raw, zipfile.ZipFile(raw, "w") as file:
                yield file
            _appear(name, path, force=force)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def _appear(name: str, path: Path, *, force: bool) -> None:
    """Give a whole file its name; nobody's file of this name is replaced unless `force` says so."""
    try:
        if not force:
            os.link(name, path)
            return
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError:  # a file system that knows no links; the name is taken for as long as a rename takes
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, RIGHTS))
        except FileExistsError as error:
            raise _taken(path) from error
    os.replace(name, path)


def _taken(path: Path) -> ConfigError:
    return ConfigError(f"{path} is there already: name another with -o, or say --force")


@contextmanager
def _until_told_to_end() -> Iterator[None]:
    """SIGTERM ends what is inside as Ctrl-C does: what is half done is tidied away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
