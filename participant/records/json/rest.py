"""What of an object no field is named for, as it is spelled: in Python, a value at a time."""

from __future__ import annotations

from collections.abc import Sequence
from json import JSONDecoder

import pyarrow as pa

from participant.records.json.values import WHITESPACE, Mismatch

_BLANK = WHITESPACE.decode()
_DECODER = JSONDecoder(parse_int=len, parse_float=len)
"""Knows where a value ends. Numbers are not read, since some would take long."""


def left_over(value: bytes, fields: Sequence[pa.Field]) -> str | None:
    """The members of an object that are no fields, and of those that are objects likewise, as an object; None
    where there are none. Not of objects within arrays and maps.

    Texts, numbers and blanks within are as they were; what is there twice is there twice. `value`: an object.
    Raises `Mismatch` for a spelling that Arrow takes and Python does not.
    """
    text = value.strip(WHITESPACE).decode()
    try:
        members, _ = _members(text, 0, fields)
    except (ValueError, IndexError):
        raise Mismatch("not JSON: a field that is no column is spelled in a way of its own") from None
    except RecursionError:
        raise Mismatch("nested too deeply") from None
    return f"{{{','.join(members)}}}" if members else None


def _members(text: str, at: int, fields: Sequence[pa.Field]) -> tuple[list[str], int]:
    """Of the object that begins there; and where it ends."""
    kinds = {field.name: field.type for field in fields}
    found: list[str] = []
    at = _behind(text, at + 1)
    if text[at] == "}":
        return found, at + 1
    while True:
        name, end = _DECODER.raw_decode(text, at)
        spelled = text[at:end]
        begin = _behind(text, _behind(text, end) + 1)
        if name not in kinds:
            end = _end(text, begin)
            found.append(f"{spelled}:{text[begin:end]}")
        elif pa.types.is_struct(kinds[name]) and text[begin] == "{":
            inside, end = _members(text, begin, list(kinds[name]))
            if inside:
                found.append(f"{spelled}:{{{','.join(inside)}}}")
        else:
            end = _end(text, begin)
        at = _behind(text, end)
        if text[at] == "}":
            return found, at + 1
        at = _behind(text, at + 1)


def _end(text: str, begin: int) -> int:
    return _DECODER.raw_decode(text, begin)[1]


def _behind(text: str, at: int) -> int:
    """The first place from there on that is not blank."""
    while text[at] in _BLANK:
        at += 1
    return at
