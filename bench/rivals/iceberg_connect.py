"""Iceberg's Kafka Connect sink: the other sink with a coordinator and a control topic.

Cold: a JVM that has done nothing but start. Warm: one that has moved the same load before.
"""

from __future__ import annotations

import time
from pathlib import Path

from bench.figures import Measured
from bench.load import create_topic
from bench.processes import Sampler
from bench.rivals import iceberg_metadata, iceberg_tables
from bench.rivals.base import Load
from bench.rivals.base import measured as figures_of
from bench.rivals.connect_worker import ConnectWorker
from bench.waiting import await_that

COLD_WINDOW = (
    "from the connector being posted to a Connect worker that has just started, to the last snapshot; "
    "joining the group and the wait for the last tick of its commit interval are inside, the JVM's start "
    "is not"
)
WARM_WINDOW = (
    "from the connector being posted to a Connect worker that has moved the same load before, to the "
    "last snapshot; joining the group and the wait for the last tick of its commit interval are inside"
)
PARTITIONED_FROM = 24
"""Table partitions from which the table is partitioned; with fewer it is not, to this sink's favour."""
METADATA_POLL_S = 0.25
CHECK_EVERY = 20


class Iceberg:
    """Both rivals, which share a Connect worker: `cold` starts it anew, `warm` goes on with it."""

    def __init__(self) -> None:
        self._worker: ConnectWorker | None = None
        self._warmed_by: tuple[str, bool] | None = None
        self._loads = 0

    def cold(self, load: Load) -> Measured:
        """One load in a fresh JVM."""
        worker = self._fresh(load)
        found = self._run(worker, load, load.folder)
        self._warmed_by = _kind(load)
        return found

    def warm(self, load: Load) -> Measured:
        """One load in the JVM of the load before; where there is none, a first load warms it, unmeasured."""
        worker = self._worker
        if worker is None or not worker.running or self._warmed_by != _kind(load):
            worker = self._fresh(load)
            self._run(worker, load, load.folder / "warming")
            self._warmed_by = _kind(load)
        return self._run(worker, load, load.folder)

    def close(self) -> None:
        """End the Connect worker, if there is one."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        self._warmed_by = None

    def _fresh(self, load: Load) -> ConnectWorker:
        self.close()
        worker = ConnectWorker(
            load.folder / "connect",
            load.bootstrap_servers,
            heap=load.settings.connect_heap,
            objects=load.lake.storage is not None,
        )
        self._worker = worker
        worker.start()
        return worker

    def _run(self, worker: ConnectWorker, load: Load, folder: Path) -> Measured:
        """A connector, a group, a control topic and a table of this load's own."""
        self._loads += 1
        name = f"{load.name}-{self._loads}"
        warehouse = iceberg_tables.warehouse_in(load.lake, name, folder / "warehouse")
        create_topic(load.bootstrap_servers, f"control-{name}", partitions=1)
        with Sampler(worker.pid) as sampler:
            start_ms = time.time_ns() // 1_000_000
            worker.post(name, self._connector(load, name, warehouse))
            try:
                self._await_rows(worker, load, name, warehouse)
            finally:
                if worker.running:
                    worker.delete(name)
        metadata = warehouse.newest() or {}
        partitioned = iceberg_metadata.is_partitioned(metadata)
        return figures_of(
            load,
            start_ms=start_ms,
            commits=iceberg_metadata.commits(metadata),
            sampler=sampler,
            worker_pids=[worker.pid],
            notes=("the table is partitioned" if partitioned else "the table is not partitioned",),
        )

    def _await_rows(
        self, worker: ConnectWorker, load: Load, name: str, warehouse: iceberg_tables.Warehouse
    ) -> None:
        asked = 0

        def probe() -> bool:
            nonlocal asked
            asked += 1
            if asked % CHECK_EVERY == 0:
                worker.check(name)
            metadata = warehouse.newest()
            seen = iceberg_metadata.snapshots(metadata) if metadata is not None else []
            return bool(seen) and seen[-1].total_records >= load.records

        await_that(
            f"{load.records:,} rows in Iceberg's table",
            probe,
            timeout_s=load.settings.timeout_s,
            poll_s=METADATA_POLL_S,
            log=worker.log,
        )

    def _connector(self, load: Load, name: str, warehouse: iceberg_tables.Warehouse) -> dict[str, str]:
        config = {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": str(load.settings.workers),
            "topics": load.topic,
            **{f"iceberg.catalog.{key}": value for key, value in warehouse.catalog.items()},
            "iceberg.tables": f"{iceberg_tables.NAMESPACE}.{iceberg_tables.TABLE}",
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.control.topic": f"control-{name}",
            "iceberg.control.commit.interval-ms": str(round(load.interval_s * 1_000)),
            "consumer.override.auto.offset.reset": "earliest",
            "consumer.override.max.poll.records": "500",
            "consumer.override.heartbeat.interval.ms": "300",
            "consumer.override.max.partition.fetch.bytes": "10485760",
            "consumer.override.fetch.max.bytes": "52428800",
            "consumer.override.receive.buffer.bytes": "1048576",
        }
        if load.workload.table_partitions >= PARTITIONED_FROM:
            config["iceberg.tables.default-partition-by"] = load.workload.partition_by
        return config


def _kind(load: Load) -> tuple[str, bool]:
    """What a JVM has moved that is warm for this load."""
    return load.workload.name, load.lake.storage is not None
