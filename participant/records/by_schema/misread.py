"""What decoders say of bytes that are no such value."""

from __future__ import annotations


class Misread(ValueError):
    """The bytes are no such value. Never holds what they are."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.path = ""

    def inside(self, name: str) -> Misread:
        """The same, of a field of this name, or of `[]`, `{}`."""
        joint = "." if self.path and self.path[0] not in "[{" else ""
        self.path = f"{name}{joint}{self.path}"
        return self

    def __str__(self) -> str:
        return f"field {self.path}: {self.args[0]}" if self.path else str(self.args[0])
