"""The end of all of a writer's files: waited for, looked at while its thread does other things, or undone.

Closing is waiting: for a disk, for a name node, for an answer of an object store. Files come first, then the
folders that hold their names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from control_topic.messages import DataFile
from table.hudi.files.durable import Files
from table.hudi.files.open_files import OpenFiles


class Finishing:
    """Of one writer. For its thread. Nothing is written any more once it has begun."""

    def __init__(self, files: Files, open_files: OpenFiles[Any, Any]) -> None:
        self._files = files
        self._open = open_files
        self._wake: Callable[[], None] = lambda: None
        self._folders: deque[tuple[str, Future[int]]] | None = None
        self._named = False

    def begin(self, wake: Callable[[], None]) -> None:
        """End whatever is open. `wake`: called in any thread when there may be more to say."""
        self._wake = wake
        self._open.end_each()
        self._open.call_when_ended(wake)

    def named(self, *, wait: bool) -> tuple[DataFile, ...] | None:
        """The files, once they and their folders are durable; None before. Raises `StorageError`."""
        if not self._is_done(wait=wait):
            return None
        self._files.rest()
        self._named = True
        return tuple(self._open.ended)

    def undo(self) -> None:
        """Remove the files, begun or not, unless they were named."""
        if not self._named:
            self._open.abandon()
            self._files.remove()
            self._files.rest()

    def _is_done(self, *, wait: bool) -> bool:
        if self._folders is None:
            if not self._open.collect(wait=wait):
                return False
            self._folders = deque(self._files.securing())
            for _, secured in self._folders:
                secured.add_done_callback(lambda _: self._wake())
        while self._folders and (wait or self._folders[0][1].done()):
            folder, secured = self._folders.popleft()
            with self._files.storing(folder), self._files.uploading():
                secured.result()
            self._files.stepped()
        return not self._folders
