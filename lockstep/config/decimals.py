"""Checks of `record.decimal_handling`: base64 and digits in a string are not told apart by a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockstep.config.model import Config
from lockstep.config.problems import Problem
from participant.records.decimal_handling import EVENTS_IN_JSON, HANDLINGS, SCHEMA
from participant.records.kinds import DEBEZIUM

if TYPE_CHECKING:
    import pyarrow as pa

SETTINGS = ("record.decimal_handling", "record.schema")


def decimal_handling_means_something(config: Config) -> Iterator[Problem]:
    """Yield a problem if no value is read by the setting."""
    record = config.record
    if not record.decimal_handling:
        return
    if record.envelope != DEBEZIUM or record.format not in EVENTS_IN_JSON:
        sentence = f"means nothing to {record.format} without Debezium's events in JSON: take it out"
        settings = ("record.decimal_handling", "record.envelope", "record.format")
        yield Problem(settings=settings, sentence=sentence)
    elif record.decimal_handling == SCHEMA and record.format != "json":
        sentence = f"{SCHEMA!r} needs a schema in each event, which {record.format} has not: say how"
        yield Problem(settings=("record.decimal_handling", "record.format"), sentence=sentence)


def check_decimals(config: Config, columns: pa.Schema) -> Iterator[Problem]:
    """Yield a problem if nothing says how a DECIMAL column is encoded."""
    from table.schema import holds_decimal

    record = config.record
    if record.envelope != DEBEZIUM or record.format not in EVENTS_IN_JSON:
        return
    names = [column.name for column in columns if holds_decimal(column.type)]
    if names and not record.decimal_handling:
        sentence = (
            f"missing; column {names[0]} is DECIMAL, and base64 in an event can look like digits. Write the "
            f"connector's decimal.handling.mode: {', '.join(HANDLINGS)}"
        )
        yield Problem(settings=SETTINGS, sentence=sentence)
    keys = [name for name in config.table.key if name in names]
    if keys and record.decimal_handling == SCHEMA and record.key_format in EVENTS_IN_JSON:
        sentence = (
            f"{SCHEMA!r} does not say how a key is encoded, and key column {keys[0]} is DECIMAL: write the "
            "connector's decimal.handling.mode"
        )
        yield Problem(settings=("record.decimal_handling", "table.key"), sentence=sentence)
