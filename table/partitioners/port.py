"""What says which table partition a row belongs to. Every partitioner implements `Partitioner`.

It knows values and no folders: how a value is spelled in a path is the affair of the kind of table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class Partitioner(Protocol):
    """Of one table. No state: any thread may use it."""

    @property
    def field(self) -> str:
        """The column that the values come from, and that readers find them under."""

    def values(self, rows: pa.Table) -> pa.DictionaryArray:
        """Per row the value of its table partition, as a code: each is spelled once. Null is a value."""
