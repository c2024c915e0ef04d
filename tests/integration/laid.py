"""A table that takes rows as columns, with what no record could bring among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from control_topic.messages import DataFile
from participant.records.port import RecordSpec
from participant.worker.memory import MemoryBudget
from participant.worker.stages import stages
from table.rows import Rows
from tests.integration.test_upserts import SOURCE, Upserts


class Laid(Upserts):
    """Takes rows as columns, and tells which of them it refused."""

    refused: dict[int, str]

    def write(self, instant: str, *workers: Any) -> list[DataFile]:
        files: list[DataFile] = []
        for slot, table in enumerate(workers):
            made = stages(
                layout=self.layout,
                slot=slot,
                incarnation=f"{slot:08d}",
                memory=MemoryBudget(self.memory_bytes),
                record=RecordSpec(),
            )
            offsets = np.arange(table.num_rows, dtype=np.int64)
            rows = Rows(
                source=SOURCE, length=len(offsets), columns=table, offsets=offsets, timestamps_ms=offsets
            )
            shaped = made.files.shape(rows)
            self.refused = dict(shaped.refused)
            writer = made.files.writer(instant, lambda _written: None)
            writer.write(shaped)
            files += writer.close()
        return files
