"""What a schedule fails with."""

from __future__ import annotations


class Violation(AssertionError):
    """What must never be. Its first words, up to the colon, say what was violated."""
