"""Small files of an insert table put together by copying their row groups, as its driver does it beside
transactions, whatever their size."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from table.hudi.table import HudiTable
from table.hudi.upkeep import clustering
from table.hudi.upkeep.clustering import Clustering
from tests.data_files import data_files
from tests.faults.upkeep import COPIED

__all__ = ["COPIED", "copied", "put_together"]


def put_together(
    table: HudiTable, pipeline: str, monkeypatch: pytest.MonkeyPatch, *, copied_from_bytes: int = 0
) -> str:
    """All small files of its table partitions, copied or, below that mean size, rewritten; the instant."""
    monkeypatch.setattr(clustering, "COPIED_FROM_BYTES", copied_from_bytes)
    work = Clustering(replace(table._spec, clustering_files=2), pipeline)
    session = work.open(table._session_beside)
    work.tidy(session)
    done = work.run_early(session, lambda _doing: None, time.monotonic())
    assert done is not None
    return done.instant


def copied(path: Path, instant: str) -> list[Path]:
    """Files of this clustering; all of them are copies."""
    found = data_files(path, f"*_{instant}.parquet")
    assert found and all(COPIED in (pq.read_metadata(one).metadata or {}) for one in found)
    return found
