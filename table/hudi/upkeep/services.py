"""Which services a run's table has, by its specification."""

from __future__ import annotations

from collections.abc import Callable

from table.hudi.upkeep.cleaning import Cleaning
from table.hudi.upkeep.clustering import Clustering
from table.hudi.upkeep.compaction import Compaction
from table.hudi.upkeep.due import Opener, Service, ServiceWork, Upkeep
from table.hudi.upkeep.retention import Retention
from table.port import ASYNC, INSERT, OFF, UPSERT, TableSpec


def upkeep(spec: TableSpec, pipeline: str, opener: Opener, free_slots: Callable[[], int]) -> Upkeep:
    """The services that `spec` has this pipeline do. `free_slots`: see `HudiTable`."""
    wanted: list[tuple[ServiceWork, str, int]] = []
    if spec.mode == UPSERT:
        wanted.append((Compaction(spec, pipeline, free_slots), spec.compaction, spec.compaction_every))
    if spec.mode == INSERT:
        wanted.append((Clustering(spec, pipeline), spec.clustering, spec.clustering_every))
    if spec.mode == INSERT and spec.retention_ms:
        wanted.append((Retention(spec, pipeline), ASYNC, 1))
    wanted.append((Cleaning(spec), spec.cleaning, spec.cleaning_every))
    return Upkeep(
        [Service(work, opener, mode=mode, every=every) for work, mode, every in wanted if mode != OFF]
    )
