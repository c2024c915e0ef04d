"""The columns that a run begins with, where `record.schema` does not give them.

They are the table's where there is one, and else those that the newest schemas of the source topics have,
united. With them a configuration is as if they had been written in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lockstep.config import Config, InvalidConfiguration
from lockstep.config.checks import check_schema
from lockstep.config.registry_section import subjects_of
from lockstep.errors import ConfigError, Failed
from participant.records.avro.events import follows_of
from participant.records.by_schema.following import ADVICE, NoColumn, placed, widened
from participant.records.errors import NoSuchSchema, RecordsError
from participant.records.json_schema.follows import JsonFollows
from participant.records.json_schema.registry import WHOLE
from participant.records.port import Follows, FollowsEvents
from participant.records.protobuf.files import place_of
from participant.records.protobuf.follows import ProtobufFollows
from participant.records.protobuf.framing import FIRST
from participant.records.protobuf.registry import PROTOBUF
from participant.records.registry.client import AVRO, RegistryClient, SchemaKind
from participant.records.sources import taken
from table.errors import TableError
from table.instants import MissingTable
from table.kinds import table_kind
from table.partitioners.expressions import TablePartitions, made_columns, sources_of
from table.schema import SchemaError, record_schema
from table.widening import Disunited, ddl_of

KINDS: Mapping[str, SchemaKind] = {"avro": AVRO, "json_schema": WHOLE, "protobuf": PROTOBUF}
WRITE_THEM = "Write record.schema with the columns that the table is to have"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """`config`: with the columns. `said_by`: who says what they are, for people."""

    config: Config
    said_by: str


def with_columns(config: Config) -> Config:
    """The configuration, with the columns that a run begins with. Raises as `begun`."""
    return begun(config).config


def begun(config: Config) -> Begun:
    """The same, and who says so.

    Raises `ConfigError` where nobody does, or a setting names a column that is not among them; `Failed` where
    table or registry cannot be asked.
    """
    if config.record.ddl:
        return Begun(config=config, said_by="record.schema")
    columns, said_by = _of_the_table(config), "the table"
    if not len(columns):
        columns, said_by = of_the_registry(config)
    resolved = with_ddl(config, columns)
    if problems := list(check_schema(resolved)):
        raise InvalidConfiguration(problems)
    return Begun(config=resolved, said_by=said_by)


def with_ddl(config: Config, columns: pa.Schema) -> Config:
    """The configuration, as if these columns stood in it."""
    record = config.record.model_copy(
        update={"ddl": ddl_of(columns), "on_schema_change": config.record.changes}
    )
    return config.model_copy(update={"record": record})


def columns_of(
    config: Config, texts: tuple[str, ...], number: int, has: pa.Schema, subject: str = ""
) -> pa.Schema:
    """Those of values of a schema of the registry's. `has`: of the record, which it may do with.

    Of a file of Protobuf the message that the subject is called after, else the first. Raises `SchemaError`.
    """
    if config.record.format != "protobuf":
        return _follows(config, texts).columns(number, has)
    which = place_of(texts, subject) or FIRST
    return _follows(config, texts).columns((number, which), has)


def wide_enough(
    config: Config,
    texts: tuple[str, ...],
    number: int,
    has: pa.Schema,
    subject: str = "",
    elsewhere: Collection[str] = (),
) -> pa.Schema:
    """`has`, with all of those. `elsewhere`: fields that other columns take. Raises `SchemaError`."""
    try:
        wanted = columns_of(config, texts, number, has, subject)
        return widened(has, wanted, fixed_columns(config), elsewhere)
    except (NoColumn, Disunited) as why:
        raise SchemaError(placed(why, within(config, texts, number))) from why


def within(config: Config, texts: tuple[str, ...], number: int) -> str:
    """The field of values that holds the row; empty where the value is the row. Raises `SchemaError`."""
    follows = _follows(config, texts)
    return follows.place(number) if isinstance(follows, FollowsEvents) else ""


def fixed_columns(config: Config) -> tuple[str, ...]:
    """Those by which rows and files are found."""
    table = config.table
    return (*table.key, *sources_of(table.partition_by), *filter(None, [table.ordering, table.delete_field]))


class Told:
    """One schema, as the registry has told it."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts = texts

    def find(self, _key: object) -> tuple[str, ...]:
        return self._texts


def _follows(config: Config, texts: tuple[str, ...]) -> Follows:
    told, record = Told(texts), config.record
    if record.format == "json_schema":
        return JsonFollows(told, lambda _key: "", taken(record.columns.items(), record.rest))
    follows = follows_of(record.envelope) if record.format == "avro" else ProtobufFollows
    return follows(told, lambda _key: "")


def _of_the_table(config: Config) -> pa.Schema:
    """None where there is no table, or nobody has written to it."""
    try:
        reader = table_kind(config.table.format).reader(config.table.path, config.store_settings())
        made = made_columns(TablePartitions.of(config.table.partition_by))
        return record_schema(reader.columns(), made=made)
    except MissingTable:
        return pa.schema([])
    except SchemaError as error:
        raise ConfigError(f"record.schema is missing: {error}. {WRITE_THEM}") from error
    except TableError as error:
        raise Failed(str(error)) from error


def of_the_registry(config: Config) -> tuple[pa.Schema, str]:
    """Those of the newest schemas of the source topics, united, and which these are, for people.

    Raises `ConfigError` where there are none, or no table can have them; `Failed` where it cannot be asked.
    """
    settings = config.record_spec().registry
    columns, said_by = pa.schema([]), []
    subjects = subjects_of(config.registry.value_subjects, config.source.topics)
    try:
        client = RegistryClient(settings, KINDS[config.record.format]) if settings is not None else None
        for subject in subjects if client is not None else ():
            assert client is not None
            try:
                number, texts = client.latest(subject)
            except NoSuchSchema:
                continue
            said_by.append(f"schema {number} ({subject})")
            columns = wide_enough(config, texts, number, columns, subject)
    except SchemaError as error:
        where = said_by[-1] if said_by else config.registry.url
        raise ConfigError(f"record.schema is missing, and {where} does not do: {error}. {ADVICE}") from error
    except RecordsError as error:
        raise Failed(f"record.schema is missing, and: {error}") from error
    if not said_by:
        raise ConfigError(
            f"record.schema is missing: there is no table at {config.table.path} yet, and the schema "
            f"registry has no subject {' or '.join(subjects)}. Register a schema there, or write "
            "record.schema; where producers name their subjects otherwise, say registry.value_subjects"
        )
    if not len(columns):
        raise ConfigError(
            f"record.schema is missing, and {', '.join(said_by)} names no field of an object. {WRITE_THEM}"
        )
    return columns, ", ".join(said_by)
