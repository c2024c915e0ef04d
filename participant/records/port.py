"""What a decoder makes of a batch of records. A format of records is a folder beside this module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.raw import RawBatch
from participant.records.rejects import NONE, Rejects
from table.rows import Rows, Tombstones


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoded:
    """What records of one batch say. Rows, rejects and tombstones together are the batch."""

    table: pa.Table
    """The record's columns, in the schema's order and types."""
    kept: npt.NDArray[np.int64] | None = None
    """Per row, its index in the batch, ascending; None where all were kept."""
    rejects: Rejects = NONE
    deleted: npt.NDArray[np.bool_] | None = None
    """Per row, whether it deletes its key; None where none does."""
    tombstones: Tombstones | None = None
    stop: tuple[int, str] | None = None
    """The index of a record that may not pass whatever the record's own content, and why; what stands behind
    it is not to be used."""

    def rows(self, batch: RawBatch) -> Rows:
        """For the table: the rows of `batch`, of which this was decoded."""
        kept = self.kept
        return Rows(
            source=batch.partition,
            length=len(batch),
            columns=self.table,
            offsets=batch.offsets if kept is None else batch.offsets[kept],
            timestamps_ms=batch.timestamps_ms if kept is None else batch.timestamps_ms[kept],
            kept=kept,
            deleted=self.deleted,
            tombstones=self.tombstones,
        )


class Decoder(Protocol):
    """Not for several threads."""

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows, tombstones or rejects."""


class KeyReader(Protocol):
    """Reads the Kafka keys of records without a value."""

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """What the keys at these places, which ascend, say of the fields that key a row."""
