"""What a table is given: decoded records as columns, each row tied to where it was consumed.

Who decodes knows no table, and a table knows no decoder: this is all that passes between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from control_topic.messages import SourcePartition


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tombstones:
    """Records without a value, whose Kafka key says which row they delete."""

    columns: pa.Table
    """What the keys said: the fields that key a row of the table, none of them null."""
    places: npt.NDArray[np.int64]
    """Per row of `columns`, its index in the batch, ascending."""
    offsets: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The rows of one batch of `length` records of one source partition, in offset order."""

    source: SourcePartition
    length: int
    columns: pa.Table
    """The record's columns, in the schema's order and types."""
    offsets: npt.NDArray[np.int64]
    timestamps_ms: npt.NDArray[np.int64]
    kept: npt.NDArray[np.int64] | None = None
    """Per row, its index in the batch, ascending; None where every record is a row."""
    deleted: npt.NDArray[np.bool_] | None = None
    """Per row, whether it deletes its key; None where none does."""
    tombstones: Tombstones | None = None

    @property
    def count(self) -> int:
        """Rows, tombstones not included."""
        return int(self.columns.num_rows)

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """Per row, its index in the batch, ascending."""
        return self.kept if self.kept is not None else np.arange(self.count, dtype=np.int64)

    def refused(self, reasons: Mapping[int, str]) -> dict[int, str]:
        """The same reasons by place, which are given by row."""
        if self.kept is None:
            return dict(reasons)
        return {int(self.kept[row]): why for row, why in reasons.items()}

    def take(self, rows: npt.NDArray[np.int64]) -> Rows:
        """These rows only, which ascend. Tombstones stay."""
        return replace(
            self,
            columns=self.columns.take(pa.array(rows)),
            offsets=self.offsets[rows],
            timestamps_ms=self.timestamps_ms[rows],
            kept=self.places[rows],
            deleted=self.deleted[rows] if self.deleted is not None else None,
        )
