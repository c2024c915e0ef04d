"""Relations between settings, and what the free properties may hold. Each check is one reason to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from coordinator.exchange import WORKERS_MAX
from lockstep.config.columns import check_columns, rest_problem
from lockstep.config.decimals import check_decimals, decimal_handling_means_something
from lockstep.config.event_time import check_event_time
from lockstep.config.hooks import check_complete, check_hooks
from lockstep.config.model import Config
from lockstep.config.partitions import (
    bounds_mean_something,
    check_terms,
    upserts_stay_where_they_are,
)
from lockstep.config.problems import Problem, no_field
from lockstep.config.properties import refused_hudi_properties, refused_kafka_properties
from lockstep.config.registry_section import check_registry
from lockstep.config.retention import check_retention, retention_is_of_table_partitions_that_may_go
from lockstep.config.storage import check_storage
from lockstep.config.units import format_duration, format_size
from lockstep.config.values import TOPIC_LENGTH_MAX
from lockstep.ui.access import is_loopback
from participant.records.changes import EVOLVE, HALT
from participant.records.kinds import ENVELOPES
from table.kinds import HUDI, table_kind
from table.partitioners.expressions import parsed, sources_of
from table.port import AS_KEY, AS_LOOKED_UP, AS_ORDERING, AS_PARTITION, AS_SORTED, UPSERT

if TYPE_CHECKING:
    import pyarrow as pa

Check = Callable[[Config], Iterator[Problem]]


def check_relations(config: Config) -> Iterator[Problem]:
    """Every problem that is visible in the configuration alone."""
    return chain.from_iterable(check(config) for check in RELATIONS)


def check_schema(config: Config) -> Iterator[Problem]:
    """The schema parses, and the fields that other settings name are in it.

    Apart from the other checks because the parser is slow to import, and not every command needs the schema.
    """
    from table.schema import parse_ddl

    if not config.record.ddl:
        return  # a relation says where it may be missing
    try:
        columns = parse_ddl(config.record.ddl)
    except ValueError as error:
        yield Problem(settings=("record.schema",), sentence=str(error))
        return
    roles = [("table.key", name, AS_KEY) for name in config.table.key]
    roles += [("table.sort_by", name, AS_SORTED) for name in config.table.sort_by]
    roles += [("table.bloom_filters", name, AS_LOOKED_UP) for name in config.table.bloom_filters]
    terms = parsed(config.table.partition_by)
    roles += [("table.partition_by", one.column, AS_PARTITION) for one in terms if not one.is_made]
    if config.table.ordering:
        roles.append(("table.ordering", config.table.ordering, AS_ORDERING))
    for setting, name, role in roles:
        sentence = _field_problem(config, columns, name, role)
        if sentence:
            yield Problem(settings=(setting, "record.schema"), sentence=sentence)
    yield from _delete_field(config, columns)
    yield from check_event_time(config.record, columns)
    yield from check_terms(config, columns)
    yield from check_retention(config, columns)
    yield from check_columns(config, columns)
    yield from check_decimals(config, columns)


def _delete_field(config: Config, columns: pa.Schema) -> Iterator[Problem]:
    """The delete field says yes or no."""
    from table.schema import BOOLEAN

    table, types = config.table, {column.name: column.type for column in columns}
    if table.delete_field and types.get(table.delete_field) != BOOLEAN:
        known = "is not a field of record.schema" if table.delete_field not in types else "is not BOOLEAN"
        sentence = f"{table.delete_field!r} {known}"
        yield Problem(settings=("table.delete_field", "record.schema"), sentence=sentence)


def _field_problem(config: Config, columns: pa.Schema, name: str, role: str) -> str:
    """Why the field cannot have this role, or an empty string."""
    known = [column.name for column in columns]
    if name not in known:
        return no_field(name, known)
    return table_kind(config.table.format).column_problem(columns.field(name), role)


def _write_timeout_covers_an_interval(config: Config) -> Iterator[Problem]:
    """At END a worker may still have to write everything that one interval brought. With a schedule the
    interval is what ends a transaction where nothing else does; and who writes for long says how far it is.
    """
    transaction = config.transaction
    if not transaction.schedule and transaction.write_timeout_ms < transaction.interval_ms:
        yield Problem(
            settings=("transaction.write_timeout", "transaction.interval"),
            sentence=(
                f"{format_duration(transaction.write_timeout_ms)} is shorter than transaction.interval "
                f"({format_duration(transaction.interval_ms)}): a worker may have to write a whole "
                "interval's records within it; raise it, or shorten the interval"
            ),
        )


def _write_limit_covers_the_timeout(config: Config) -> Iterator[Problem]:
    transaction = config.transaction
    if transaction.write_limit_ms < transaction.write_timeout_ms:
        yield Problem(
            settings=("transaction.write_limit", "transaction.write_timeout"),
            sentence=(
                f"{format_duration(transaction.write_limit_ms)} is shorter than transaction.write_timeout "
                f"({format_duration(transaction.write_timeout_ms)}): a worker that says nothing would be "
                "waited for longer than one that writes; raise it"
            ),
        )


def _rows_are_handed_over_where_they_can_be(config: Config) -> Iterator[Problem]:
    if not config.transaction.writers_per_partition:
        return
    if config.table.kind == UPSERT:
        sentence = (
            "hands rows over from worker to worker, and changes of a key must stay in the order of their "
            "source partition: it is for inserts (docs/exchange.md); set it to 0"
        )
        yield Problem(settings=("transaction.writers_per_partition", "table.kind"), sentence=sentence)
    if config.pipeline.workers > WORKERS_MAX:
        sentence = (
            f"lets every two workers keep a stream, and pipeline.workers is {config.pipeline.workers}: "
            f"at most {WORKERS_MAX} can; set it to 0, or have fewer workers"
        )
        settings = ("transaction.writers_per_partition", "pipeline.workers")
        yield Problem(settings=settings, sentence=sentence)
    if not config.table.partition_by:
        sentence = (
            "lets few workers write each table partition, and the table has none: all rows would be "
            "theirs; set it to 0"
        )
        yield Problem(settings=("transaction.writers_per_partition", "table.partition_by"), sentence=sentence)
    if config.record.changes == EVOLVE:
        sentence = (
            "hands rows over from worker to worker, and one may have columns that another has not met yet: "
            "set it to 0, or let columns not follow schemas"
        )
        settings = ("transaction.writers_per_partition", "record.on_schema_change")
        yield Problem(settings=settings, sentence=sentence)


def _control_topic_is_its_own(config: Config) -> Iterator[Problem]:
    topic = config.control.topic
    if topic in config.source.topics:
        yield Problem(
            settings=("control.topic", "source.topics"),
            sentence=f"{topic} is also a source topic: the control topic must be the pipeline's own",
        )


def _dead_letters_go_elsewhere(config: Config) -> Iterator[Problem]:
    record = config.record
    if record.on_error != "dead_letter" and not record.dead_letter_topic:
        return
    for source in config.source.topics:
        topic = config.dead_letter_topic(source)
        if topic in config.source.topics:
            taken = "a source topic: its rejected records would be read again for ever"
        elif topic == config.control.topic:
            taken = "the control topic: name another"
        elif len(topic) > TOPIC_LENGTH_MAX:
            taken = f"longer than the {TOPIC_LENGTH_MAX} characters that Kafka allows: name another"
        else:
            continue
        settings = ("record.dead_letter_topic", "source.topics", "control.topic")
        yield Problem(settings=settings, sentence=f"{topic} is {taken}")
        if record.dead_letter_topic:
            return


def _rejects_are_limited_where_some_are_set_aside(config: Config) -> Iterator[Problem]:
    record = config.record
    if record.max_rejects and record.on_error != "dead_letter":
        sentence = f'means nothing to record.on_error = "{record.on_error}", which sets no record aside'
        yield Problem(settings=("record.max_rejects", "record.on_error"), sentence=sentence)


def _fetching_ahead_fits_into_memory(config: Config) -> Iterator[Problem]:
    name = "queued.max.messages.kbytes"
    text = config.source.kafka.get(name, "")
    if text.isdecimal() and int(text) * 1_024 > config.memory.per_worker_bytes:
        yield Problem(
            settings=(f"source.kafka.{name}", "memory.per_worker"),
            sentence=(
                f"{text} KiB fetched ahead are more than memory.per_worker "
                f"({format_size(config.memory.per_worker_bytes)}): lower it, or raise memory.per_worker"
            ),
        )


def _kafka_properties_are_ours_to_pass_on(config: Config) -> Iterator[Problem]:
    for name, why in refused_kafka_properties(config.source.kafka):
        yield Problem(settings=(f"source.kafka.{name}",), sentence=why)


def _the_kind_of_table_has_the_mode(config: Config) -> Iterator[Problem]:
    table = config.table
    if table.kind not in table_kind(table.format).modes:
        sentence = f'a {table.format} table cannot have table.kind = "{table.kind}"'
        yield Problem(settings=("table.format", "table.kind"), sentence=sentence)


def _hudi_properties_are_obeyed(config: Config) -> Iterator[Problem]:
    if config.table.format != HUDI:
        if config.table.hudi:
            sentence = f'means nothing to table.format = "{config.table.format}": take it out'
            yield Problem(settings=("table.hudi", "table.format"), sentence=sentence)
        return
    for name, why in refused_hudi_properties(config.table.hudi, config.table.kind):
        yield Problem(settings=(f"table.hudi.{name}",), sentence=why)


def _upserts_say_of_which_row(config: Config) -> Iterator[Problem]:
    table = config.table
    if table.kind == "upsert":
        if not table.key:
            sentence = 'empty; table.kind = "upsert" needs the fields of the record key: key = ["id"]'
            yield Problem(settings=("table.key", "table.kind"), sentence=sentence)
        if config.services.clustering != "off":
            sentence = 'means nothing to table.kind = "upsert", whose files are merged by services.compaction'
            yield Problem(settings=("services.clustering", "table.kind"), sentence=sentence)
        if table.bloom_filters:
            sentence = 'means nothing to table.kind = "upsert", whose base files Hudi writes: take it out'
            yield Problem(settings=("table.bloom_filters", "table.kind"), sentence=sentence)
        return
    for name, given in (("ordering", table.ordering), ("delete_field", table.delete_field)):
        if given:
            sentence = f'means nothing to table.kind = "{table.kind}": take it out, or say kind = "upsert"'
            yield Problem(settings=(f"table.{name}", "table.kind"), sentence=sentence)
    if ENVELOPES[config.record.envelope].brings_order:
        sentence = f'{config.record.envelope!r} needs table.kind = "upsert": its events change rows'
        yield Problem(settings=("record.envelope", "table.kind"), sentence=sentence)


def _rows_are_sorted_where_files_are_put_together(config: Config) -> Iterator[Problem]:
    if config.table.sort_by and config.services.clustering == "off":
        sentence = 'means nothing to services.clustering = "off": rows are sorted when it writes them again'
        yield Problem(settings=("table.sort_by", "services.clustering"), sentence=sentence)


def _change_events_bring_their_order(config: Config) -> Iterator[Problem]:
    if not ENVELOPES[config.record.envelope].brings_order:
        return
    for name, given in (("ordering", config.table.ordering), ("delete_field", config.table.delete_field)):
        if given:
            sentence = f"{config.record.envelope} events say it themselves: take it out"
            yield Problem(settings=(f"table.{name}", "record.envelope"), sentence=sentence)
    for field in sources_of(config.table.partition_by):
        if field in config.table.key:
            continue
        sentence = (
            f"{field!r} is not in table.key: an update that changed it would leave the row's older version "
            "behind in its old table partition; add it to the key, or leave the table unpartitioned"
        )
        yield Problem(settings=("table.partition_by", "record.envelope"), sentence=sentence)


def _the_envelope_is_read_from_the_format(config: Config) -> Iterator[Problem]:
    record, formats = config.record, ENVELOPES[config.record.envelope].formats
    if record.format not in formats:
        sentence = f"{record.envelope} is read from {', '.join(sorted(formats))}, not from {record.format}"
        yield Problem(settings=("record.envelope", "record.format"), sentence=sentence)


def _the_rest_is_read_where_it_can_be(config: Config) -> Iterator[Problem]:
    sentence = rest_problem(config.record)
    if sentence:
        yield Problem(settings=("record.rest", "record.format", "record.envelope"), sentence=sentence)


def _hooks_say_whom_to_tell(config: Config) -> Iterator[Problem]:
    taken = {config.control.topic: "the control topic"}
    taken |= dict.fromkeys(config.source.topics, "a source topic")
    taken |= dict.fromkeys(config.dead_letter_topics, "a dead-letter topic")
    yield from check_hooks(config.hooks, taken, table=config.table.name)
    event_time, table = config.record.event_time, config.table.path
    yield from check_complete(config.hooks, event_time=event_time, table=table)


def _schemas_are_to_be_had(config: Config) -> Iterator[Problem]:
    yield from check_registry(config.record, config.registry)


def _somebody_says_what_columns_there_are(config: Config) -> Iterator[Problem]:
    record = config.record
    if not record.ddl and not record.names_schemas:
        sentence = (
            'missing; write the columns in Spark DDL, "event_id STRING, amount DOUBLE": only the schemas of '
            'Avro, Protobuf and JSON in a registry (record.framing = "confluent"; of Debezium\'s events '
            "those of Avro) say which there are"
        )
        yield Problem(settings=("record.schema", "record.format"), sentence=sentence)
    if not record.ddl and record.names_schemas and record.columns:
        sentence = (
            f"missing; record.columns says where {', '.join(record.columns)} comes from, and not of what "
            "type it is: write such columns, and no others need be there with record.on_schema_change = "
            '"evolve"'
        )
        yield Problem(settings=("record.schema", "record.columns"), sentence=sentence)
    if record.on_schema_change in (EVOLVE, HALT) and not record.names_schemas:
        sentence = (
            f"{record.on_schema_change!r} means nothing here: only schemas of Avro, Protobuf and JSON in a "
            'registry (record.framing = "confluent"; of Debezium\'s events Avro) say when columns change'
        )
        yield Problem(settings=("record.on_schema_change", "record.format"), sentence=sentence)


def _storage_says_how_to_reach_an_object_store(config: Config) -> Iterator[Problem]:
    yield from check_storage(config.table.path, config.storage)


def _a_page_that_anybody_reaches_shows_and_does_little(config: Config) -> Iterator[Problem]:
    if not config.ui.token and not is_loopback(config.ui.bind):
        sentence = (
            f"missing; ui.bind = {config.ui.bind!r} is open to the network: name a secret that readers show, "
            'token = "${file:/run/secrets/page-token}", or leave ui.bind at 127.0.0.1'
        )
        yield Problem(settings=("ui.token", "ui.bind"), sentence=sentence)
        return
    for setting, allowed, what in (
        ("ui.control", config.ui.control, "stop the run"),
        ("ui.show_values", config.ui.show_values, "see values of records"),
    ):
        if allowed and not config.ui.token:
            sentence = (
                f"missing; {setting} = true lets readers of the page {what}: name a secret that they show, "
                'token = "${file:/run/secrets/page-token}"'
            )
            yield Problem(settings=("ui.token", setting), sentence=sentence)


RELATIONS: tuple[Check, ...] = (
    _a_page_that_anybody_reaches_shows_and_does_little,
    _storage_says_how_to_reach_an_object_store,
    _schemas_are_to_be_had,
    _somebody_says_what_columns_there_are,
    _upserts_say_of_which_row,
    upserts_stay_where_they_are,
    bounds_mean_something,
    _rows_are_sorted_where_files_are_put_together,
    _change_events_bring_their_order,
    _the_envelope_is_read_from_the_format,
    _the_rest_is_read_where_it_can_be,
    decimal_handling_means_something,
    _write_timeout_covers_an_interval,
    _write_limit_covers_the_timeout,
    _rows_are_handed_over_where_they_can_be,
    retention_is_of_table_partitions_that_may_go,
    _control_topic_is_its_own,
    _dead_letters_go_elsewhere,
    _rejects_are_limited_where_some_are_set_aside,
    _fetching_ahead_fits_into_memory,
    _kafka_properties_are_ours_to_pass_on,
    _the_kind_of_table_has_the_mode,
    _hudi_properties_are_obeyed,
    _hooks_say_whom_to_tell,
)
