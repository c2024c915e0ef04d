"""Whether rows can be laid out as `table.partition_by` and `[partition]` say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockstep.config.problems import Problem, no_field
from table.partitioners.expressions import Term, parsed
from table.port import UPSERT

if TYPE_CHECKING:
    import pyarrow as pa

    from lockstep.config.model import Config


def check_terms(config: Config, columns: pa.Schema) -> Iterator[Problem]:
    """`columns`: those of `record.schema`."""
    from table.partition_columns import made_fields
    from table.schema import SchemaError

    for term in parsed(config.table.partition_by):
        if not term.is_made:
            continue
        name = term.source.field
        if term.source.is_of_records and name not in columns.names:
            sentence = no_field(name, columns.names)
            yield Problem(settings=("table.partition_by", "record.schema"), sentence=sentence)
            continue
        try:
            made_fields([term], columns)
        except SchemaError as error:
            sentence = str(error).removeprefix("table.partition_by: ")
            yield Problem(settings=("table.partition_by", "record.schema"), sentence=sentence)


def upserts_stay_where_they_are(config: Config) -> Iterator[Problem]:
    """A row is found by its table partition and its key: of one key all versions are in the same place."""
    if config.table.kind != UPSERT:
        return
    for term in parsed(config.table.partition_by):
        why = _moves(term, config.table.key)
        if term.is_made and why:
            sentence = (
                f"{term.column} is made of {why}: a later version of a row would be in another table "
                "partition, and the older one left behind; take a field of table.key, or leave it out"
            )
            yield Problem(settings=("table.partition_by", "table.kind"), sentence=sentence)
    bounds = config.partition
    if bounds.max_age_ms or bounds.max_ahead_ms:
        sentence = (
            'means nothing to table.kind = "upsert": a later record of the same row would be judged by '
            "another timestamp; take it out"
        )
        setting = "partition.max_age" if bounds.max_age_ms else "partition.max_ahead"
        yield Problem(settings=(setting, "table.kind"), sentence=sentence)


def _moves(term: Term, key: tuple[str, ...]) -> str:
    """Of what, where that may differ between versions of a row; empty where it may not."""
    if term.source.is_now:
        return "the transaction's time"
    if term.source.is_kafkas:
        return "the record's timestamp in Kafka"
    return "" if term.source.field in key else f"{term.source.field}, which is not in table.key"


def bounds_mean_something(config: Config) -> Iterator[Problem]:
    bounds = config.partition
    named = {"max_age": bounds.max_age_ms, "max_ahead": bounds.max_ahead_ms}
    timed = any(term.is_time and term.source.is_of_records for term in parsed(config.table.partition_by))
    for name, given in named.items():
        if given and not timed:
            sentence = "means nothing here: table.partition_by has no function of a time that records say"
            yield Problem(settings=(f"partition.{name}", "table.partition_by"), sentence=sentence)
