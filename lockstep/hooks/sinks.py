"""Which hooks a configuration asks for. Each is imported where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lockstep.config import Config
from lockstep.config.hooks import resolve_lineage, resolve_webhook
from lockstep.hooks.commits import TableTold
from lockstep.hooks.port import Sink
from lockstep.installed import version_of
from table.catalog import CatalogSpec
from table.kinds import table_kind
from table.port import TableLayout
from table.store.location import Location, store_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.hooks.lineage import Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTold:
    """The run, and the table as it is."""

    run: str
    layout: TableLayout
    spark: SparkSession


def sinks_of(config: Config, kafka: Mapping[str, str], told: RunTold) -> list[Sink]:
    """Raises `LockstepError` where a secret cannot be had, or a library is missing."""
    return list(_sinks(config, kafka, told))


def table_told(config: Config) -> TableTold:
    table = config.table
    return TableTold(
        path=table.path,
        name=table.name,
        kind=table.format,
        mode=table.kind,
        stretch_ms=config.hooks.complete_every_ms,
    )


def _sinks(config: Config, kafka: Mapping[str, str], told: RunTold) -> Iterator[Sink]:
    hooks, pipeline, table = config.hooks, config.pipeline.id, table_told(config)
    if hooks.topic:
        from lockstep.hooks.topic import TopicSink

        yield TopicSink(kafka, hooks.topic, pipeline=pipeline, table=table)
    if hooks.webhook:
        from lockstep.hooks.webhook import WebhookSink

        address, headers = resolve_webhook(hooks)
        timeout_s = hooks.webhook_timeout_ms / 1_000
        yield WebhookSink(address, headers, timeout_s=timeout_s, pipeline=pipeline, table=table)
    if hooks.complete_folder:
        from lockstep.hooks.complete import CompleteSink

        folder = hooks.complete_folder
        opened = partial(store_at, folder, setting="hooks.complete_folder", settings=config.store_settings())
        yield CompleteSink(folder, opened, pipeline=pipeline, stretch_ms=hooks.complete_every_ms)
    if hooks.openlineage:
        from lockstep.hooks.openlineage import LineageSink

        where, key = resolve_lineage(hooks)
        yield LineageSink(where, key, partial(_lineage, config, told.layout), run=told.run)
    if hooks.hive:
        from lockstep.hooks.hive import HiveSink

        catalog = table_kind(told.layout.kind).catalog(told.spark, catalog_spec(config))
        yield HiveSink(catalog, catalog_spec(config), every_ms=hooks.hive_period_ms)


def catalog_spec(config: Config) -> CatalogSpec:
    """The table as a metastore is to know it."""
    hooks, table = config.hooks, config.table
    name = hooks.hive_table or table.name
    return CatalogSpec(uris=hooks.hive, database=hooks.hive_database, table=name, path=table.path)


def _lineage(config: Config, layout: TableLayout) -> Lineage:
    """On the hook's own thread: its library takes half a second to import."""
    from lockstep.hooks.lineage import Lineage, LineageOf, catalog_named, table_named
    from table.partition_columns import columns_of
    from table.schema import ddl_name, parse_ddl

    hooks, place = config.hooks, Location.parse(config.table.path)
    columns = columns_of(layout)
    named = catalog_spec(config)
    catalog = catalog_named(named.uris, named.database, named.table) if hooks.hive else None
    return Lineage(
        LineageOf(
            namespace=hooks.openlineage_namespace,
            pipeline=config.pipeline.id,
            version=version_of("lockstep") or "unknown",
            brokers=config.source.bootstrap_servers,
            topics=config.source.topics,
            record=[(one.name, ddl_name(one.type)) for one in parse_ddl(config.record.ddl)],
            table=table_named(place.scheme, place.authority, place.path),
            table_columns=[(one.name, ddl_name(one.type)) for one in columns],
            storage=config.table.format,
            catalog=catalog,
        )
    )
