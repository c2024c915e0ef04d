"""DuckDB and Arrow select the same rows of our files with and without pushdown, by columns of every type."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from participant.records.json.decoder import JsonDecoder
from participant.records.raw import RawBatch, Values
from table.hudi.files.base_writer import TransactionWriter
from table.hudi.files.shaping import InsertShaper
from table.schema import table_schema
from table.store.local import LocalStore
from tests.predicates import DDL, Answering, Arrow, Duck, differences, document, predicates, rows
from tests.unit.table.hudi.files.test_base_writer import LAYOUT as UNTYPED

LAYOUT = replace(UNTYPED, ddl=f"id STRING, {DDL}", partition_fields=())
SCHEMA = table_schema(LAYOUT.ddl, True)
FILES, PIECES, PIECE_ROWS = 5, 2, 40


def written(base: Path, chance: random.Random) -> list[Path]:
    """Files of several transactions: of one row group, and of one for each piece."""
    (base / ".hoodie").mkdir()
    files: list[Path] = []
    first = 0
    for number in range(FILES):
        writer = TransactionWriter(
            store=LocalStore(base),
            layout=LAYOUT,
            schema=SCHEMA,
            instant=f"2026112020124869{number}",
            writer_number=0,
            incarnation="0123abcd",
            pending_bytes_max=chance.choice((1, 64_000_000)),
            held_bytes_max=8_000_000,
            new_uuid=uuid.uuid4,
        )
        for _ in range(PIECES):
            made = [
                document({"id": f"r{first + n}", **row}) for n, row in enumerate(rows(chance, PIECE_ROWS))
            ]
            offsets = np.arange(first, first + PIECE_ROWS, dtype=np.int64)
            batch = RawBatch(
                partition=SourcePartition("t", 0),
                offsets=offsets,
                timestamps_ms=offsets,
                values=Values.of(list(made)),
            )
            decoded = JsonDecoder(SCHEMA).decode(batch)
            assert not decoded.rejects
            writer.write(InsertShaper(LAYOUT, SCHEMA).shape(decoded.rows(batch)))
            first += PIECE_ROWS
        files += [base / file.path for file in writer.close()]
    return files


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("engine", [Duck, Arrow])
def test_every_predicate_selects_the_same_rows_with_and_without_pushdown(
    tmp_path: Path, engine: Callable[[Sequence[Path]], Answering], seed: int
) -> None:
    chance = random.Random(seed)
    asked = predicates(chance, each=4)
    answering = engine(written(tmp_path, chance))
    asked = [one for one in asked if answering.takes(one)]
    found = answering.answers(asked, pushed=True)
    assert differences(found, answering.answers(asked, pushed=False)) == []
    assert any(found.values()) and not all(found.values())
