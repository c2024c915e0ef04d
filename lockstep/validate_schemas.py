"""For `lockstep validate`: does the schema registry answer, and would its newest schemas be read?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from lockstep.columns import KINDS, Told, begun, wide_enough, with_ddl, within
from lockstep.config import Config
from lockstep.config.checks import check_schema
from lockstep.config.registry_section import asks_a_registry, subjects_of
from lockstep.errors import LockstepError
from lockstep.validate import Check, ok
from participant.records.avro.decoder import AvroDecoder, AvroKeys
from participant.records.avro.events import row_of
from participant.records.avro.schema import parse
from participant.records.by_schema.following import news
from participant.records.changes import HALT, IGNORE
from participant.records.columns.plan import key_plan, plan
from participant.records.envelopes.debezium.decoder import DebeziumDecoder
from participant.records.errors import NoSuchSchema, SchemasUnavailable, UnknownSchema
from participant.records.json_schema.registry import JSON, WHOLE
from participant.records.kinds import DEBEZIUM
from participant.records.protobuf.decoder import ProtobufDecoder, ProtobufKeys
from participant.records.protobuf.files import messages
from participant.records.registry.client import RegistryClient, SchemaKind
from participant.records.sources import taken
from table.partitioners.expressions import sources_of
from table.port import UPSERT
from table.schema import SchemaError, parse_ddl

FRAMING = "confluent"
VALUE, KEY, DELETES = "value", "key", "deletes"
MESSAGES_MAX = 100
"""Of a file, that are tried: values say which of them they are, the registry does not."""


def check_columns(config: Config) -> tuple[list[Check], Config | None]:
    """Which columns a run would begin with, where `record.schema` does not say, and the configuration with
    them; None where it would not begin."""
    if config.record.ddl:
        return [], config
    try:
        found = begun(config)
    except LockstepError as error:
        return [Check(name="columns", verdict="failed", detail=str(error))], None
    detail = f"those of {found.said_by}: {found.config.record.ddl.replace('`', '')}"
    return [ok("columns", detail)], found.config


def check_schemas(config: Config) -> Iterator[Check]:
    """Nothing where no registry is asked. Raises `ConfigError` where a secret is not to be had."""
    settings = config.record_spec().registry
    if settings is None or not asks_a_registry(config.record):
        return
    name = f"schema registry {settings.url}"
    named = {VALUE: config.registry.value_subjects, KEY: config.registry.key_subjects}
    try:
        for place, of in _places(config):
            client = RegistryClient(settings, _kind(config, place, of))
            for subject in subjects_of(named[place], config.source.topics):
                yield _subject(config, client, of, place, subject)
    except SchemaError as error:
        yield Check(name=name, verdict="failed", detail=str(error))
    except SchemasUnavailable as error:
        yield Check(name=name, verdict="failed", detail=f"{error}. A run would wait for it")


def _places(config: Config) -> Iterator[tuple[str, str]]:
    """Values and keys that name schemas, and their format."""
    read = _read(config)
    if config.record.format in KINDS and read[VALUE]:
        yield VALUE, config.record.format
    if config.record.key_format in KINDS and (read[KEY] or read[DELETES]):
        yield KEY, config.record.key_format


def _kind(config: Config, place: str, of: str) -> SchemaKind:
    """As what its schemas are asked for."""
    if of == "json_schema" and (place == KEY or config.record.changes == IGNORE):
        return JSON
    return KINDS[of]


def _subject(config: Config, client: RegistryClient, of: str, place: str, subject: str) -> Check:
    name = f"schemas of {subject}"
    try:
        number, texts = client.latest(subject)
    except NoSuchSchema:
        return ok(
            name,
            "the registry answers, and has no such subject: well, if producers name theirs otherwise "
            f"(registry.{place}_subjects)",
        )
    except UnknownSchema as why:
        return Check(name=name, verdict="failed", detail=f"the newest: {why}")
    if _kind(config, place, of) is JSON:
        return ok(name, f"the newest, schema {number}, is one of JSON; values are not held against it")
    try:
        news = _news(config, number, texts, subject) if place == VALUE else ""
        if not news and KINDS[of] is not WHOLE:
            _check(config, of, place, number, texts)
    except SchemaError as error:
        return Check(name=name, verdict="failed", detail=f"the newest: {error}")
    if not news:
        has = "has no field that is no column" if KINDS[of] is WHOLE else "fits record.schema"
        return ok(name, f"the newest, schema {number}, {has}")
    detail = f"the newest, schema {number}, has more than the table: {news}"
    if config.record.changes == HALT:
        return Check(name=name, verdict="warning", detail=f"{detail}. A run halts at the first such record")
    return ok(name, f"{detail}, which a run adds")


def _news(config: Config, number: int, texts: tuple[str, ...], subject: str) -> str:
    """What a run would add to the columns, or halt at. Raises `SchemaError` where no table can have it."""
    if config.record.changes == IGNORE:
        return ""
    has = parse_ddl(config.record.ddl)
    elsewhere = taken(config.record.columns.items(), config.record.rest)
    wide = wide_enough(config, texts, number, has, subject, elsewhere)
    plan(wide, config.record.columns, config.record.rest)
    more = news(has, wide, within(config, texts, number))
    if more and (problem := next(check_schema(with_ddl(config, wide)), None)):
        raise SchemaError(f"schema {number} has more columns, {more}: {problem}")
    return more


def _check(config: Config, of: str, place: str, number: int, texts: tuple[str, ...]) -> None:
    """Raises `SchemaError` where values, or keys, of the schema cannot be read."""
    schemas = Told(texts)
    for part in (VALUE,) if place == VALUE else (KEY, DELETES):
        columns = _read(config)[part]
        if not columns:
            continue
        read, alone = pa.schema(columns), part == VALUE and config.record_spec().needs_field
        if of == "avro":
            if part == DELETES:
                AvroKeys(columns, FRAMING, schemas).check(number)
            elif part == VALUE and config.record.envelope == DEBEZIUM:
                _check_events(read, texts, number)
            else:
                AvroDecoder(read, FRAMING, schemas, alone=alone).check(number)
        else:
            protobuf = (
                ProtobufKeys(columns, "", schemas)
                if part == DELETES
                else ProtobufDecoder(read, "", schemas, alone=alone)
            )
            _check_messages(protobuf, number, texts)


def _check_events(read: pa.Schema, texts: tuple[str, ...], number: int) -> None:
    """Raises `SchemaError` where rows in change events of the schema cannot be read."""
    side, row = row_of(parse(texts))
    there = {name for name, _ in row.fields}
    for field in read:
        if not field.nullable and field.name not in there:
            raise SchemaError(f"record {row.name} has no field {side}.{field.name}, which is required")

    def checked(schema: pa.Schema) -> AvroDecoder:
        decoder = AvroDecoder(schema, FRAMING, Told(texts))
        decoder.check(number)
        return decoder

    DebeziumDecoder(read, checked, typed=True)


def _check_messages(checked: ProtobufKeys | ProtobufDecoder, number: int, texts: tuple[str, ...]) -> None:
    """Raises `SchemaError` where none of the file's messages can be read."""
    refused: SchemaError | None = None
    for which in messages(texts)[:MESSAGES_MAX]:
        try:
            checked.check((number, which))
            return
        except SchemaError as error:
            refused = refused or error
    raise refused or SchemaError(f"schema {number} has no message")


def _read(config: Config) -> Mapping[str, list[pa.Field]]:
    """What is read of values, of keys of records that have one, and of those of records that only delete."""
    table = config.table
    how = plan(parse_ddl(config.record.ddl), config.record.columns, config.record.rest)
    deletes: tuple[pa.Field, ...] = ()
    if table.kind == UPSERT:
        names = [*table.key, *sources_of(table.partition_by)]
        _, deletes = key_plan(how.columns, list(dict.fromkeys(names)))
    return {VALUE: list(how.value), KEY: list(how.key), DELETES: list(deletes)}
