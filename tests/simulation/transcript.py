"""What happened, one aligned line per event. Nothing is formatted unless somebody reads it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from control_topic.messages import Message, SourcePartition

SHORT = 8


class Transcript:
    """`record` is False while seeds only have to pass: a failing seed is run again with it on."""

    def __init__(self, *, record: bool) -> None:
        self.recording = record
        self._lines: list[tuple[int, str, str, Any]] = []

    def note(self, now_ms: int, who: str, what: str, content: Any = None) -> None:
        if self.recording:
            self._lines.append((now_ms, who, what, content))

    def lines(self) -> list[str]:
        return [
            f"{now_ms / 1000:9.3f}  {who:<22} {what:<10} {show(content)}".rstrip()
            for now_ms, who, what, content in self._lines
        ]


def show(value: Any) -> str:
    """A value as an engineer wants to read it: short ids, no field that is at its default."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Message):
        return (
            f"{value.type_name} e{value.epoch} {_fields(value.body)} (from {value.sender} #{value.sequence})"
        )
    if isinstance(value, SourcePartition):
        return str(value.number)
    if isinstance(value, Enum):
        return str(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__} {_fields(value)}".rstrip()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{show(k)}:{show(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(show(v) for v in value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(show(v) for v in value) + "]"
    return str(value)


def _fields(value: Any) -> str:
    if type(value).__name__ == "Range":
        return f"{show(value.partition)}:[{value.start},{value.next})={value.records}"
    parts = []
    for f in fields(value):
        content = getattr(value, f.name)
        if f.name in ("now_ms", "nonce") or content in ((), {}, "", 0, None):
            continue
        parts.append(f"{f.name}={show(content)}")
    return " ".join(parts)
