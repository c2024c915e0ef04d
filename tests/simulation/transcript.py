"""What happened, one aligned line per event. Nothing is formatted unless somebody reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Any

from control_topic.messages import DataFile, Message, Range, SourcePartition

UNSAID = frozenset({"now_ms", "nonce"})

CHATTER = frozenset({"offset", "Write", "Pause", "Resume"})
"""What happens all the time and explains little."""

HEAD = 3
WIDTH = 200
ID = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{12}\b")
INSTANT = re.compile(r"\b0{8,}(\d+)\b")

_NAMES: dict[type[Any], tuple[str, ...]] = {}

Note = tuple[int, str, str, Any]
"""now_ms, who, what, content."""


class Transcript:
    """`record` is False while seeds only have to pass: a failing seed is run again with it on."""

    def __init__(self, *, record: bool) -> None:
        self.recording = record
        self._notes: list[Note] = []

    def note(self, now_ms: int, who: str, what: str, content: Any = None) -> None:
        if self.recording:
            self._notes.append((now_ms, who, what, content))

    def __len__(self) -> int:
        return len(self._notes)

    def lines(self) -> list[str]:
        """All lines. A message is noted where it is written and by each process that hears it: shown once."""
        shown: dict[int, str] = {}
        made = []
        for now_ms, who, what, content in self._notes:
            text = shown.get(id(content))
            if text is None:
                text = shown[id(content)] = show(content)
            made.append(_line(now_ms, who, what, text))
        return made

    def telling(self, lines_max: int) -> list[str]:
        """The lines that tell the story: no repeats, nothing without effect, short ids; always the end."""
        told = [_shortened(line(*note)) for note in _telling(self._notes)]
        if len(told) > lines_max:
            left_out = len(told) - lines_max
            told[HEAD : HEAD + left_out + 1] = [f"{'':9}  … {left_out + 1} lines are left out …"]
        return told

    def digest(self) -> str:
        """Equal where two transcripts are."""
        return sha256("\n".join(self.lines()).encode()).hexdigest()


def _telling(notes: Sequence[Note]) -> Iterator[Note]:
    """Without what is said again, and without what was heard and changed nothing."""
    said: set[str] = set()
    for number, (now_ms, who, what, content) in enumerate(notes):
        if what == "hears" and not _has_effect(notes, number):
            continue
        if who == "bus" and what == "log":
            text = show(content).partition(" #")[0]
            if text in said:
                continue
            said.add(text)
        elif what in CHATTER or type(content).__name__ in CHATTER:
            continue
        yield now_ms, who, what, content


def _has_effect(notes: Sequence[Note], number: int) -> bool:
    """Whether the next line is of the same process at the same time, and not just more that it hears."""
    now_ms, who, _what, _content = notes[number]
    following = notes[number + 1] if number + 1 < len(notes) else None
    return following is None or (following[:2] == (now_ms, who) and following[2] != "hears")


def _shortened(text: str) -> str:
    short = INSTANT.sub(r"instant-\1", ID.sub(r"\1", text))
    return short if len(short) <= WIDTH else short[: WIDTH - 1] + "…"


def line(now_ms: int, who: str, what: str, content: Any) -> str:
    return _line(now_ms, who, what, show(content))


def _line(now_ms: int, who: str, what: str, text: str) -> str:
    return f"{now_ms / 1000:9.3f}  {who:<22} {what:<10} {text}".rstrip()


def show(value: Any) -> str:
    """A value as an engineer wants to read it: short ids, no field that is at its default."""
    shown = _SHOWN.get(type(value))
    if shown is not None:
        return shown(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, (Range, DataFile)):
        return _fields(value)
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__} {_fields(value)}".rstrip()
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(show(v) for v in value)) + "}"
    return str(value)


def _message(value: Message) -> str:
    return f"{value.type_name} e{value.epoch} {_fields(value.body)} (from {value.sender} #{value.sequence})"


def _mapping(value: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{show(k)}:{show(v)}" for k, v in sorted(value.items())) + "}"


def _list(value: list[Any] | tuple[Any, ...]) -> str:
    return "[" + ", ".join(show(v) for v in value) + "]"


_SHOWN: dict[type[Any], Callable[[Any], str]] = {
    type(None): lambda _value: "",
    str: str,
    int: str,
    bool: str,
    Message: _message,
    SourcePartition: str,
    dict: _mapping,
    list: _list,
    tuple: _list,
}


def _names(kind: type[Any]) -> tuple[str, ...]:
    names = _NAMES.get(kind)
    if names is None:
        names = _NAMES[kind] = tuple(f.name for f in fields(kind) if f.name not in UNSAID)
    return names


def _fields(value: Any) -> str:
    if isinstance(value, Range):
        return f"{value.partition}[{value.start},{value.next})={value.records}"
    if isinstance(value, DataFile):
        return f"{value.path} ({value.rows} rows)"
    parts = []
    for name in _names(type(value)):
        content = getattr(value, name)
        if content:
            parts.append(f"{name}={show(content)}")
    return " ".join(parts)
