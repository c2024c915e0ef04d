"""Hudi as a kind of table. Each half is imported where it is asked for: workers have no use for Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from table.census import TableCensus
from table.hudi.layout import META_FOLDER
from table.port import (
    AS_LOOKED_UP,
    AS_ORDERING,
    AS_SORTED,
    INSERT,
    UPSERT,
    OtherWriters,
    SparkNeeds,
    TableFiles,
    TableLayout,
    TableReader,
    TableSpec,
    TableSweeper,
    TransactionalTable,
)
from table.store.location import Location, store_at
from table.store.port import Store
from table.store.settings import StoreSettings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from table.catalog import Catalog, CatalogSpec


class Hudi:
    """See `table.port.TableKind`."""

    modes = frozenset({INSERT, UPSERT})

    def committer(
        self,
        spark: SparkSession,
        spec: TableSpec,
        pipeline: str,
        *,
        services: bool = False,
        free_slots: Callable[[], int] = lambda: 1,
    ) -> TransactionalTable:
        """Hudi's write client, in the driver's JVM."""
        from table.hudi.table import HudiTable

        return HudiTable(spark, spec, pipeline, services=services, free_slots=free_slots)

    def needs(self, path: str) -> SparkNeeds:
        """Hudi's own, and the store's."""
        from table.hudi.needs import hudi_needs
        from table.store.connectors import store_needs

        return hudi_needs() + store_needs(path)

    def files(
        self,
        *,
        layout: TableLayout,
        slot: int,
        incarnation: str,
        pending_bytes_max: int,
        held_bytes_max: int,
        storage: StoreSettings | None = None,
    ) -> TableFiles:
        """Base files or log files. Raises `SchemaError` for a schema that cannot be written."""
        from table.hudi.files.side import HudiFiles

        return HudiFiles(
            layout=layout,
            slot=slot,
            incarnation=incarnation,
            pending_bytes_max=pending_bytes_max,
            held_bytes_max=held_bytes_max,
            storage=storage,
        )

    def reader(self, path: str, storage: StoreSettings | None = None) -> TableReader:
        """Hudi's timeline and rows, without Spark."""
        from table.hudi.census.base_rows import WholeReader

        return WholeReader(path, storage)

    def sweeper(self, spec: TableSpec) -> TableSweeper:
        """Without Spark: files and timelines are read where they are."""
        from table.hudi.reader.timeline import Timeline
        from table.hudi.upkeep.sweep import Sweeper
        from table.hudi.upkeep.timeline_records import TimelineRecords

        def open_timeline() -> Timeline:
            return Timeline(spec.path, spec.storage)

        timeline = open_timeline()
        return Sweeper(
            timeline.store,
            TimelineRecords(open_timeline),
            lambda: timeline.in_local_time,
            share=spec.sweep_share,
        )

    def census(self, spec: TableSpec) -> TableCensus:
        """By the timeline and a listing, without Spark."""
        from table.hudi.census.census import HudiCensus

        return HudiCensus(spec)

    def notes(self, path: str, storage: StoreSettings | None = None) -> Store:
        """Beside Hudi's own."""
        return store_at(f"{Location.parse(path)}/{META_FOLDER}", settings=storage)

    def catalog(self, spark: SparkSession, spec: CatalogSpec) -> Catalog:
        """By Hudi's own tool."""
        from table.hudi.driver.hive_sync import HiveSync

        return HiveSync(spark, spec)

    def column_problem(self, column: pa.Field, role: str) -> str:
        """Of types that engines spell differently in a key or in a folder's name."""
        from table.hudi.files.keys import check_key_field, check_ordering_field, check_sort_field
        from table.hudi.files.lookup import check_lookup_field
        from table.schema import SchemaError

        try:
            if role == AS_ORDERING:
                check_ordering_field(column)
            elif role == AS_SORTED:
                check_sort_field(column)
            elif role == AS_LOOKED_UP:
                check_lookup_field(column)
            else:
                check_key_field(column, role)
        except SchemaError as error:
            return str(error)
        return ""

    def other_writers(self, spec: TableSpec) -> OtherWriters:
        """The lock, concurrency control and the metadata table, on which all writers must agree."""
        from table.hudi.properties import other_writers

        return other_writers(spec)
