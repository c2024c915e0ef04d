"""The end of all of a writer's files: waited for, or looked at while its thread does other things.

Closing is waiting: for a disk, for a name node, for an answer of an object store. Files come first, then the
folders that hold their names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from table.hudi.files.durable import Files
from table.hudi.files.open_files import OpenFiles


class Finishing:
    """Begins with it: whatever is open is being ended from here on. For the writer's thread.

    `wake`: called in any thread when there may be more to say.
    """

    def __init__(self, files: Files, open_files: OpenFiles[Any, Any], wake: Callable[[], None]) -> None:
        self._files = files
        self._open = open_files
        self._wake = wake
        self._folders: deque[tuple[str, Future[int]]] | None = None
        open_files.end_each()
        open_files.call_when_ended(wake)

    def is_done(self, *, wait: bool = False) -> bool:
        """Whether files and folders are durable. Raises `StorageError`."""
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
