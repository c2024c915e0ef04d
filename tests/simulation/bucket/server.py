"""An object store: what a request does when it lands. Time and order are the world's."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

ABSENT = "*"
"""A condition: nothing is there (`If-None-Match: *`). Any other is a tag: this object is (`If-Match`)."""


class Act(StrEnum):
    PUT = "put"
    READ = "read"
    LOOK = "look at"
    NAMES = "list"
    WALK = "walk"
    DELETE = "delete"
    DELETE_BELOW = "delete all below"
    BEGIN = "begin upload of"
    PART = "upload part of"
    COMPLETE = "complete upload of"
    ABORT = "abort upload of"
    UPLOADS = "list uploads below"


CHANGES = frozenset(
    {Act.PUT, Act.DELETE, Act.DELETE_BELOW, Act.BEGIN, Act.PART, Act.COMPLETE, Act.ABORT},
)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it goes over the wire. `tenure`: which hold of the table lock it belongs to, if any."""

    act: Act
    path: str = ""
    data: bytes = b""
    condition: str = ""
    mark: str = ""
    number: str = ""
    tenure: str = ""

    def __str__(self) -> str:
        when = {"": "", ABSENT: " if absent"}.get(self.condition, f" if still {self.condition}")
        return f"{self.act} {self.path}{when}"


class Unanswered(OSError):
    """No answer came: it may have landed, or may yet."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ETIMEDOUT, "no answer", path)


@dataclass(frozen=True, slots=True)
class Thing:
    """An object. `modified_ms`: by the store's clock; of one that came in parts, of its begin."""

    data: bytes
    tag: str
    mark: str
    modified_ms: int


@dataclass(slots=True)
class Upload:
    path: str
    number: str
    begun_ms: int
    mark: str
    data: bytes = b""


def missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "No such file or directory", path)


class Server:
    """Keeps conditions, lists what it has answered, dates by its own clock.

    `landed`: (tenure, path, at ms) of each first put of a path in a tenure of the table lock.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Thing] = {}
        self.uploads: dict[str, Upload] = {}
        self.landed: list[tuple[str, str, int]] = []
        self._numbers = 0

    def apply(self, request: Request, now_ms: int) -> Any:
        """The answer. Raises `FileNotFoundError` where that is the answer."""
        act, path = request.act, request.path
        if act is Act.PUT:
            return self._put(request, now_ms)
        if act is Act.READ:
            if path not in self.objects:
                raise missing(path)
            return self.objects[path]
        if act is Act.LOOK:
            return self.objects.get(path)
        if act is Act.NAMES:
            return sorted({one[len(path) + 1 :].partition("/")[0] for one in self._below(path)})
        if act is Act.WALK:
            return sorted(self._below(path)) if path else sorted(self.objects)
        if act is Act.DELETE:
            return self.objects.pop(path, None) is not None
        if act is Act.DELETE_BELOW:
            for one in [*self._below(path)]:
                del self.objects[one]
            return None
        return self._upload(request, now_ms)

    def _put(self, request: Request, now_ms: int) -> str | None:
        """Its tag; None where the condition does not hold."""
        path, there = request.path, self.objects.get(request.path)
        if request.condition == ABSENT and there is not None:
            return None
        if request.condition not in ("", ABSENT) and (there is None or there.tag != request.condition):
            return None
        return self._set(path, request.data, request.mark, now_ms, request.tenure)

    def _set(self, path: str, data: bytes, mark: str, at_ms: int, tenure: str) -> str:
        if path not in self.objects:
            self.landed.append((tenure, path, at_ms))
        self._numbers += 1
        tag = f"t{self._numbers}"
        self.objects[path] = Thing(data, tag, mark, at_ms // 1_000 * 1_000)
        return tag

    def _upload(self, request: Request, now_ms: int) -> Any:
        act, number = request.act, request.number
        if act is Act.UPLOADS:
            return [one for one in self.uploads.values()]
        if act is Act.BEGIN:
            self._numbers += 1
            made = Upload(request.path, f"u{self._numbers}", now_ms, request.mark)
            self.uploads[made.number] = made
            return made.number
        if act is Act.ABORT:
            return self.uploads.pop(number, None) is not None
        upload = self.uploads.get(number)
        if upload is None:
            return self.of_none(request, now_ms)
        if act is Act.PART:
            upload.data += request.data
            return None
        del self.uploads[number]
        return self._set(upload.path, upload.data, upload.mark, upload.begun_ms, request.tenure)

    def of_none(self, request: Request, now_ms: int) -> Any:
        """A part or a completion of an upload that is over, or was aborted."""
        raise FileNotFoundError(errno.ENOENT, "NoSuchUpload", request.path)

    def _below(self, folder: str) -> Iterator[str]:
        return (one for one in self.objects if one.startswith(f"{folder}/"))
