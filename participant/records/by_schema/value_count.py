"""The count of the values of one record, for decoders that read a record at a time."""

from __future__ import annotations

from participant.records.by_schema.misread import Misread
from participant.records.value_limits import NAME_BYTES, VALUES_MAX, too_many, values_max


class ValueCount:
    """The values of one record. Not for several threads."""

    def __init__(self) -> None:
        self.values = 0
        self._limit = VALUES_MAX

    def begin(self, size_bytes: int) -> None:
        """Start a record of this size."""
        self.values, self._limit = 0, values_max(size_bytes)

    def spend(self, values: int) -> None:
        """Count more values before they are made. Raises `Misread`."""
        self.values += values
        if self.values > self._limit:
            raise Misread(too_many(self._limit))

    def spend_name(self, name: str) -> None:
        """Count a name in the place of its number. Raises `Misread`."""
        self.spend(len(name) // NAME_BYTES if name.isascii() else len(name.encode()) // NAME_BYTES)
