"""Check whether the newest records of the source topics are rows, for `lockstep validate`.

Records are read without a consumer group and decoded as a worker decodes them. Only reasons of rejects are
kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.config import Config
from lockstep.errors import Failed
from lockstep.infer.sample import Limits, NoRecords, sample
from lockstep.infer.trial import Tally
from lockstep.letters.reading import Broker
from lockstep.validate import Check, ok
from participant.errors import SourceUnreadable
from participant.records.errors import SchemasUnavailable
from participant.records.port import Decoder
from participant.records.raw import RawBatch
from participant.worker.stages import decoder
from table.partition_columns import columns_of
from table.schema import SchemaError
from table.service.source_facts import SourceTopicsError

NAME = "newest records"
LIMITS = Limits(records=200, size_bytes=16_000_000, seconds=10.0)


def check_records(config: Config, kafka: Mapping[str, str]) -> Check:
    """Return the check of the newest records. `config`: with columns. `kafka`: with secrets resolved.

    The verdict is `failed` if no record of the sample is a row, and `warning` if some are not.
    """
    broker = Broker(kafka=kafka, group=config.group_id, reader=config.source.reader)
    try:
        found = sample(broker, config.source.topics, LIMITS, whole=True)
    except NoRecords as why:
        return ok(NAME, f"{why} yet")
    except (Failed, SourceTopicsError, SourceUnreadable) as why:
        return Check(name=NAME, verdict="failed", detail=str(why))
    spec, tally = config.table_spec(), Tally()
    try:
        reads = decoder(spec, columns_of(spec), config.record_spec())
        for batch in found.batches:
            count_values(reads, batch, tally)
    except SchemaError as why:
        return Check(name=NAME, verdict="failed", detail=f"cannot be read: {why}")
    except SchemasUnavailable as why:
        return Check(name=NAME, verdict="warning", detail=f"cannot be read now: {why}")
    return describe(config, tally)


def count_values(reads: Decoder, batch: RawBatch, tally: Tally) -> None:
    """Count a batch without tombstones: the delete before one may be outside of the sample.

    Raises `SchemasUnavailable`.
    """
    if len(values := batch.without_tombstones):
        tally.count(reads, values)


def describe(config: Config, tally: Tally) -> Check:
    """Return the check that `tally` leads to."""
    if not tally.records:
        return ok(NAME, "the newest offsets hold no record with a value")
    count = f"{tally.records:,} of the newest records"
    if tally.halt:
        return Check(name=NAME, verdict="warning", detail=f"a run halts at {tally.halt}")
    if not tally.rejects:
        return ok(NAME, f"{count} are rows")
    (reason, times), *_ = tally.reasons.most_common(1)
    often = f" ({times:,} times)" if len(tally.reasons) > 1 else ""
    effect = (
        "A run sends such a record to the dead-letter topic"
        if config.record.on_error == "dead_letter"
        else 'A run halts at such a record; record.on_error = "dead_letter" continues without it'
    )
    verdict = "failed" if tally.rejects == tally.records else "warning"
    where = f"{tally.rejects:,} of {count} are no rows, the first at {tally.first_reject}"
    return Check(name=NAME, verdict=verdict, detail=f"{where}: {reason}{often}. {effect}")
