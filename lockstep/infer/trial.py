"""Would the records of a sample be rows of the proposed columns? Decoded as a worker decodes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from lockstep.config import Config
from lockstep.infer.columns import Proposal
from participant.records.port import RecordSpec, decoded_parts
from participant.records.raw import RawBatch
from participant.worker.stages import decoder
from table.port import INSERT, TableSpec
from table.schema import SchemaError, table_schema

REASONS_MAX = 20


@dataclass(slots=True)
class Verdict:
    """What would become of them."""

    rows: int = 0
    rejects: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """The most frequent ones."""
    refused: str = ""
    """Why the columns cannot be read at all; empty where they can."""


def tried(config: Config, proposal: Proposal, batches: Iterable[RawBatch], envelope: str = "none") -> Verdict:
    """Of records that have a value. `envelope`: of `participant.records.kinds.ENVELOPES`."""
    found = Verdict()
    spec = TableSpec(path="", name=config.table.name, mode=INSERT, ddl=proposal.ddl)
    record = RecordSpec(
        decoder=config.record.decoder, columns=tuple(proposal.sources.items()), envelope=envelope
    )
    try:
        reads = decoder(spec, table_schema(spec.ddl, kafka_columns=False), record)
    except SchemaError as error:
        found.refused = str(error)
        return found
    for batch in batches:
        for decoded in decoded_parts(reads.decode, batch):
            found.rows += decoded.table.num_rows
            found.rejects += len(decoded.rejects)
            found.reasons.update(decoded.rejects.by_place().values())
    found.reasons = Counter(dict(found.reasons.most_common(REASONS_MAX)))
    return found
