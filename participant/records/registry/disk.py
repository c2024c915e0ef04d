"""Schemas that a registry gave, kept in files: while it is away, records by them are read on.

A file for each id, in a folder for each registry, named by its addresses. Written whole or not at all; one
that is damaged is as none. Several processes may share a folder: whoever writes last writes the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from control_topic.cache_folder import default_cache

FILE_BYTES_MAX = 4 * 1024 * 1024
FILES_MAX = 10_000
"""Of one registry; then the oldest goes."""

log = logging.getLogger("lockstep.registry")


def folder_of(cache_folder: str, urls: Sequence[str]) -> Path:
    """Where the schemas of the registry at these addresses are; `cache_folder` empty: the user's."""
    root = Path(cache_folder) if cache_folder else default_cache() / "schemas"
    name = hashlib.sha256("\n".join(sorted(urls)).encode()).hexdigest()[:32]
    return root / name


class KeptSchemas:
    """One registry's. A folder that cannot be used is said once, and then nothing is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._told = False

    def path(self, name: str) -> Path:
        """Of the schema of this name, an id or a GUID."""
        return self.folder / f"{name}.json"

    def read(self, name: str) -> tuple[str, ...] | None:
        """The schema's text behind those that it refers to; None where it is not kept, or not whole."""
        try:
            with self.path(name).open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(error)
            return None
        return _texts(content) if len(content) <= FILE_BYTES_MAX else None

    def write(self, name: str, texts: Sequence[str]) -> None:
        """Keep it."""
        content = json.dumps({"schemas": list(texts), "sha256": _digest(texts)}).encode()
        if len(content) > FILE_BYTES_MAX:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room()
            self._replace(self.path(name), content)
        except OSError as error:
            self._tell(error)

    def _replace(self, path: Path, content: bytes) -> None:
        number, beside = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with open(number, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise

    def _make_room(self) -> None:
        with os.scandir(self.folder) as entries:
            found = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
        for _, path in sorted(found)[: max(0, len(found) - FILES_MAX + 1)]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _tell(self, error: OSError) -> None:
        if not self._told:
            log.warning(
                "schemas are not kept in %s (%s): while the registry is away, no record is read; set "
                "registry.cache_folder to a folder that can be written",
                self.folder,
                error.strerror or error,
            )
        self._told = True


def _texts(content: bytes) -> tuple[str, ...] | None:
    try:
        document = json.loads(content)
        texts = tuple(document["schemas"])
        whole = bool(texts) and all(isinstance(one, str) for one in texts)
        return texts if whole and document["sha256"] == _digest(texts) else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
