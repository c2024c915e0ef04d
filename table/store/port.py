"""What a store of files must do for a table. Every store implements `Store`.

Paths are relative to the store's root, with `/` between folders; the root itself is the empty path. None
leaves it: `..` is refused. What the system says no to is raised as the `OSError` that it is,
`FileNotFoundError` where something is not there; a store that is no file system raises the same classes. Only
`make_folder` makes folders, so that nobody begins a table anew that is gone; that needs `folders`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeAlias

Data: TypeAlias = Any
"""Whatever has a buffer: bytes, Arrow's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What not every store can do, and a table may need. It is refused with `io.UnsupportedOperation`, which
    is an `OSError`, but for folders.
    """

    dates: bool
    """A file bears the time of the store's own clock, so that clocks may be compared."""
    folders: bool
    """A folder is there or not, whatever is in it. Where it is not, a folder is a part of files' names: it is
    there as long as a file is below it, and nobody is refused because it is missing.
    """
    hides: bool
    """A file that is being written is not there before it is closed, and then whole."""
    remote: bool
    """Each question is a request to a server, which may still be under way when whoever asked is gone."""
    syncs: bool
    """What was closed outlives the machine's power only once `secure` has been called, which may ask for the
    file's name as well: its folder. Where it is not so, what was answered is durable.
    """
    ending_at_once: int = 8
    """So many files are best closed side by side: most of it is waiting, for a disk or for an answer."""
    open_at_once: int = 200
    """So many files may be open for writing, if there is memory for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """A file, or a folder. Times are Unix epoch, of the store's clock. A folder that is a part of names has
    none: infinity, so that nobody takes it for old.
    """

    size_bytes: int
    modified_s: float
    """Of the content."""
    changed_s: float
    """The later of content and name."""
    identity: tuple[int | str, ...]
    """Tells it from every other that was or will be at the same path."""
    is_folder: bool = False


class FileSize(NamedTuple):
    """A file with something in it. `folder`: the path of what it is in."""

    folder: str
    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that was begun and not ended. `path`: where it was to be. `begun`: by the store's clock."""

    path: str
    number: str
    begun: datetime


class OutcomeUnknown(TimeoutError):
    """What was asked for may have been done, or may be yet: the store did not say. Look before you go on."""


class Sink(Protocol):
    """A new file that is being written, as Python's own files are, for libraries that write into one.

    Nobody takes it for whole before `Store.secure` says so. One that is not to be is given to
    `Store.discard`, and not closed: some stores show a file as soon as it is.
    """

    @property
    def closed(self) -> bool: ...

    def write(self, data: Data) -> int | None: ...

    def tell(self) -> int: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class Store(Protocol):
    @property
    def capabilities(self) -> Capabilities: ...

    def place(self, path: str = "") -> str:
        """Where it is, for people, and for libraries that open files themselves."""

    def read(self, path: str, *, bytes_max: int) -> bytes:
        """The file's first bytes, no more than so many."""

    def source(self, path: str) -> BinaryIO:
        """The file's bytes, wherever one wants to begin."""

    def put(self, path: str, data: bytes, *, durable: bool = False) -> None:
        """The file holds this from now on, whatever it held: no reader sees a part of it.

        `durable`: it outlives the machine's power when this returns.
        """

    def create(self, path: str, data: bytes = b"") -> bool:
        """The file with this content, where there is none; False where there is. Of several one wins, also
        where an answer was lost: whoever made it is told so, and nobody else is, whatever he wanted to write.

        Unlike with `put` a reader may meet it before its content is there. Raises `OutcomeUnknown` where the
        store does not say within its patience.
        """

    def sink(self, path: str, *, before: Callable[[], None] | None = None) -> Sink:
        """A new file, over whatever is there. `before`: called once, before anybody may see it: now, or in
        whichever thread writes or closes it. What it raises is raised there.
        """

    def discard(self, sink: Sink) -> None:
        """Let go of a file that is being written: whatever of it is left is for `delete`."""

    def held_bytes(self, size_bytes: int) -> int:
        """What a file takes of memory at most that is being written, and has been given so many bytes."""

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Of files in a folder and below it, by whomever: what takes room though nobody sees it. Where a file
        shows as soon as it is begun there is nothing of that kind.
        """

    def abort(self, upload: Upload) -> None:
        """It can never be ended then; it may be so already."""

    def secure(self, path: str) -> int:
        """Let a file, or the names in a folder, outlive the machine's power; its size, bytes."""

    def names(self, folder: str = "") -> list[str]:
        """Of files and folders that are directly in it, in no order."""

    def walk(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[tuple[str, list[str]]]:
        """(folder, names of the files in it), for it and for all folders below it whose names are not left
        out. None where it is not there.

        Folders that may not be listed keep no others from being given: the first `OSError` is raised then.
        """

    def sizes(self, folder: str = "", *, leaving_out: Collection[str] = ()) -> Iterator[FileSize]:
        """Of the same files as `walk`, those that are empty aside, as they are listed: whoever has seen
        enough asks for no more. Those of a folder come one after another where no folder is in it.
        """

    def stat(self, path: str) -> Stat | None:
        """None where nothing is there."""

    def make_folder(self, path: str) -> None:
        """With those that it is in; it may be there already."""

    def delete(self, path: str) -> bool:
        """Whether the file was there to be deleted."""

    def delete_folder(self, path: str) -> None:
        """With all that is in it, as far as that can be done; it may be gone already."""

    def date(self, path: str) -> None:
        """Let the store's own clock date a file, which is there: no time of ours goes with it."""


class ShowsAtOnce:
    """Of a store where a file shows as soon as it is begun: nothing takes room that nobody sees."""

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        return iter(())

    def abort(self, upload: Upload) -> None:
        return None
