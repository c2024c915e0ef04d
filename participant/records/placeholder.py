"""Spelling of the placeholder that stands for a value which an event lacks, as in Debezium's settings."""

from __future__ import annotations

UNAVAILABLE = "__debezium_unavailable_value"
"""Default of Debezium's `unavailable.value.placeholder`."""
HEX = "hex:"
"""Prefix of a placeholder that is spelled in hexadecimal digits."""


def placeholder_bytes(spelled: str) -> bytes:
    """Return a placeholder's bytes. Raises `ValueError` for what is not hexadecimal digits behind `HEX`."""
    return bytes.fromhex(spelled.removeprefix(HEX)) if spelled.startswith(HEX) else spelled.encode()
