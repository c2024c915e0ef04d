"""Decode records of a sample as a worker decodes them, and count the rows and the rejects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from lockstep.config import Config
from lockstep.infer.columns import Proposal
from participant.records.port import Decoder, RecordSpec, decoded_parts
from participant.records.raw import RawBatch
from participant.worker.stages import decoder
from table.port import INSERT, TableSpec
from table.schema import SchemaError, table_schema

REASONS_MAX = 20


@dataclass(slots=True)
class Tally:
    """Results of decoding records."""

    records: int = 0
    rows: int = 0
    rejects: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Rejects by reason."""
    first_reject: str = ""
    """Source partition and offset."""
    halt: str = ""
    """Source partition, offset and reason where a run halts; empty if it does not."""

    def count(self, reads: Decoder, batch: RawBatch) -> None:
        """Decode a batch, unless a run halts before it. Raises as `reads`."""
        if self.halt:
            return
        self.records += len(batch)
        for part, decoded in decoded_parts(lambda part: (part, reads.decode(part)), batch):
            self.rows += decoded.table.num_rows
            for reject in decoded.rejects:
                self.rejects += 1
                self.reasons[reject.reason] += 1
                self.first_reject = self.first_reject or f"{batch.partition}@{reject.offset}"
            if decoded.stop is not None:
                place, why = decoded.stop
                self.halt = f"{batch.partition}@{part.offsets[place]}: {why}"
                return


@dataclass(slots=True)
class Verdict(Tally):
    """Results of decoding a sample with proposed columns."""

    refused: str = ""
    """Why the columns cannot be read at all; empty where they can."""


def tried(config: Config, proposal: Proposal, batches: Iterable[RawBatch], envelope: str = "none") -> Verdict:
    """Decode records that have a value. `envelope`: of `participant.records.kinds.ENVELOPES`."""
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
        found.count(reads, batch)
    found.reasons = Counter(dict(found.reasons.most_common(REASONS_MAX)))
    return found
