"""Paths within a store, which none may leave. Pure: standard library only."""

from __future__ import annotations

import errno
import re

KEY_BYTES_MAX = 1_024
"""Of an object's whole key: S3 and Google; Azure takes as many characters."""
DRAFT = ".lockstep-draft-"
"""So begin the names of files that are to be renamed to what they shall be. Hidden, and nobody's."""
_DOT = "~"
"""In drafts' names, so that nobody takes one for a data file by how it ends."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def inside(path: str) -> str:
    """The path, where it stays below the root. Raises `OSError` for others."""
    if ".." in path and ".." in path.split("/"):
        raise OSError(errno.EINVAL, "the path leaves its store's root by '..'", path)
    return path


def draft_of(name: str) -> str:
    """What a file is called while it is being written, where it is not to be seen before it is whole."""
    return DRAFT + name.replace(".", _DOT)


def of_draft(name: str) -> str:
    """What it is to be called; empty for a name that is none of a draft's."""
    return name.removeprefix(DRAFT).replace(_DOT, ".") if name.startswith(DRAFT) else ""


def key_of(prefix: str, path: str) -> str:
    """The key of an object, of a path that everybody who lists it spells the same. Raises `OSError` for
    others.
    """
    key = f"{prefix}/{path}" if prefix and path else prefix or path
    if any(part in ("", ".", "..") for part in key.split("/")) and key:
        raise OSError(errno.EINVAL, "the path holds an empty, '.' or '..' part", path)
    if CONTROL.search(key):
        raise OSError(errno.EINVAL, "the path holds a control character", repr(path))
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise OSError(errno.EILSEQ, "the path is not text that UTF-8 can hold", repr(path)) from None
    if size > KEY_BYTES_MAX:
        raise OSError(errno.ENAMETOOLONG, f"the object's key has more than {KEY_BYTES_MAX} bytes", path)
    return key
