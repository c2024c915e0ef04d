"""Relations between settings, and what the free properties may hold. Each check is one reason to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from lockstep.config.model import Config
from lockstep.config.problems import Problem, nearest
from lockstep.config.properties import refused_hudi_properties, refused_kafka_properties
from lockstep.config.units import format_duration, format_size
from lockstep.config.values import TOPIC_LENGTH_MAX

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

    try:
        columns = parse_ddl(config.record.ddl)
    except ValueError as error:
        yield Problem(settings=("record.schema",), sentence=str(error))
        return
    roles = [("table.key", name, "a record key") for name in config.table.key]
    if config.table.partition_by:
        roles.append(("table.partition_by", config.table.partition_by, "a table partition"))
    for setting, name, role in roles:
        sentence = _field_problem(columns, name, role)
        if sentence:
            yield Problem(settings=(setting, "record.schema"), sentence=sentence)


def _field_problem(columns: pa.Schema, name: str, role: str) -> str:
    """Why the field cannot have this role, or an empty string."""
    from table.hudi.keys import check_key_field
    from table.schema import SchemaError

    known = [column.name for column in columns]
    if name not in known:
        return f"{name!r} is not a field of record.schema{nearest(name, known)}"
    try:
        check_key_field(columns.field(name), role)
    except SchemaError as error:
        return str(error)
    return ""


def _write_timeout_covers_an_interval(config: Config) -> Iterator[Problem]:
    """At END a worker may still have to write everything that one interval brought."""
    transaction = config.transaction
    if transaction.write_timeout_ms < transaction.interval_ms:
        yield Problem(
            settings=("transaction.write_timeout", "transaction.interval"),
            sentence=(
                f"{format_duration(transaction.write_timeout_ms)} is shorter than transaction.interval "
                f"({format_duration(transaction.interval_ms)}): a worker may have to write a whole "
                "interval's records within it; raise it, or shorten the interval"
            ),
        )


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


def _hudi_properties_are_obeyed(config: Config) -> Iterator[Problem]:
    for name, why in refused_hudi_properties(config.table.hudi):
        yield Problem(settings=(f"table.hudi.{name}",), sentence=why)


RELATIONS: tuple[Check, ...] = (
    _write_timeout_covers_an_interval,
    _control_topic_is_its_own,
    _dead_letters_go_elsewhere,
    _fetching_ahead_fits_into_memory,
    _kafka_properties_are_ours_to_pass_on,
    _hudi_properties_are_obeyed,
)
