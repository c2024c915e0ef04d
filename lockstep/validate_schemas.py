"""For `lockstep validate`: does the schema registry answer, and would its newest schemas be read?"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lockstep.config import Config
from lockstep.config.registry_section import AVRO, asks_a_registry
from lockstep.validate import Check, ok
from participant.records.avro.decoder import AvroDecoder, AvroKeys
from participant.records.errors import SchemasUnavailable, UnknownSchema
from participant.records.registry.client import RegistryClient
from table.port import UPSERT
from table.schema import SchemaError, parse_ddl

FRAMING = "confluent"


class _Told:
    """One schema, as the registry has told it."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts = texts

    def find(self, _key: object) -> tuple[str, ...]:
        return self._texts


def check_schemas(config: Config) -> Iterator[Check]:
    """Nothing where no registry is asked. Raises `ConfigError` where a secret is not to be had."""
    settings = config.record_spec().registry
    if settings is None or not asks_a_registry(config.record):
        return
    name = f"schema registry {settings.url}"
    try:
        client = RegistryClient(settings)
        for topic in config.source.topics:
            for place in _places(config):
                yield _subject(config, client, f"{topic}-{place}")
    except SchemaError as error:
        yield Check(name=name, verdict="failed", detail=str(error))
    except SchemasUnavailable as error:
        yield Check(name=name, verdict="failed", detail=f"{error}. A run would wait for it")


def _places(config: Config) -> Iterator[str]:
    if config.record.format == AVRO:
        yield "value"
    if config.record.key_format == AVRO and config.table.kind == UPSERT:
        yield "key"


def _subject(config: Config, client: RegistryClient, subject: str) -> Check:
    name = f"schemas of {subject}"
    try:
        number, texts = client.latest(subject)
    except UnknownSchema:
        return ok(
            name, "the registry answers, and has no such subject: well, if producers name theirs otherwise"
        )
    schemas = _Told(texts)
    try:
        if subject.endswith("-value"):
            AvroDecoder(parse_ddl(config.record.ddl), FRAMING, schemas).check(number)
        else:
            AvroKeys(_key_columns(config), FRAMING, schemas).check(number)
    except SchemaError as error:
        return Check(name=name, verdict="failed", detail=f"the newest: {error}")
    return ok(name, f"the newest, schema {number}, fits record.schema")


def _key_columns(config: Config) -> list[pa.Field]:
    columns, table = parse_ddl(config.record.ddl), config.table
    names = [*table.key, *([table.partition_by] if table.partition_by else [])]
    return [columns.field(name) for name in dict.fromkeys(names)]
