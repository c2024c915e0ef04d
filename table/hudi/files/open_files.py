"""The files of a writer that are open, those that are being ended, and what both hold of memory.

A file that is being written may hold memory: what waits to be uploaded, and what is on its way. All of them
together hold no more than the writer is given for it: before that, the one that holds most is ended, and what
comes for its place goes into another. One file may always be open.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from control_topic.messages import DataFile
from table.hudi.files.durable import Files


class OpenFile(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def held_bytes(self) -> int:
        """Of memory, now."""

    def end(self) -> DataFile:
        """Finish it, durably. In any thread."""

    def abandon(self) -> None:
        """Let go of it as it is."""


Place = TypeVar("Place", bound=Hashable)
File = TypeVar("File", bound=OpenFile)


class OpenFiles(Generic[Place, File]):
    """`bytes_max`: of memory, for all of them."""

    def __init__(self, files: Files, bytes_max: int) -> None:
        self._files = files
        self._ending_max = 2 * files.store.capabilities.ending_at_once
        self._open_max = files.store.capabilities.open_at_once
        self._bytes_max = bytes_max
        self._open: OrderedDict[Place, File] = OrderedDict()
        self._held: dict[Place, int] = {}
        self._ending: deque[tuple[File, int, Future[DataFile]]] = deque()
        self.ended: list[DataFile] = []
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Place]:
        """The longest unused first."""
        return iter(self._open)

    def get(self, place: Place) -> File | None:
        return self._open.get(place)

    def add(self, place: Place, file: File) -> None:
        self._open[place] = file
        self._held[place] = 0
        self._make_room()

    def grown(self, place: Place) -> None:
        """The place's file holds more, or less, than before."""
        self._open.move_to_end(place)
        held_bytes = self._open[place].held_bytes
        self.held_bytes += held_bytes - self._held[place]
        self._held[place] = held_bytes
        while self.held_bytes > self._bytes_max:
            if self._ending:
                self._collect()
            elif len(self._open) > 1:
                self.end(max(self._open, key=self._held.__getitem__))
            else:
                return

    def end(self, place: Place) -> None:
        """Begin to finish the place's file, where it has one."""
        file = self._open.pop(place, None)
        if file is None:
            return
        self._make_room()
        self._files.shows(file.path)
        self._ending.append((file, self._held.pop(place), self._files.meanwhile(file.end)))

    def end_each(self) -> None:
        """Begin to finish every file."""
        for place in list(self._open):
            self.end(place)

    def call_when_ended(self, wake: Callable[[], None]) -> None:
        """Of each file that is being ended; in any thread."""
        for _, _, ended in self._ending:
            ended.add_done_callback(lambda _: wake())

    def collect(self, *, wait: bool) -> bool:
        """Take what has been finished; whether nothing is being ended any more. Raises `StorageError`."""
        while self._ending and (wait or self._ending[0][2].done()):
            self._collect()
        return not self._ending

    def end_all(self) -> None:
        """Every file is finished then."""
        self.end_each()
        self.collect(wait=True)

    def abandon(self) -> None:
        """Let go of all; those that are being ended are there then, or will never be."""
        begun = [(file, ended) for file, _, ended in self._ending if not ended.cancel()]
        for file in [*self._open.values(), *(file for file, _, ended in self._ending if ended.cancelled())]:
            file.abandon()
        for file, ended in begun:
            try:
                ended.result()
            except (OSError, ValueError, pa.ArrowException):
                file.abandon()
        self._open.clear()
        self._held.clear()
        self._ending.clear()
        self.ended.clear()
        self.held_bytes = 0

    def _make_room(self) -> None:
        """What is being ended has a file open, too: of those that may be open it takes what others do not."""
        while len(self._ending) >= self._ending_max + max(0, self._open_max - len(self._open)):
            self._collect()

    def _collect(self) -> None:
        file, held_bytes, ended = self._ending[0]
        with self._files.storing(file.path), self._files.uploading():
            made = ended.result()
        self._ending.popleft()
        self.held_bytes -= held_bytes
        self.ended.append(made)
        self._files.stepped(files=1)
