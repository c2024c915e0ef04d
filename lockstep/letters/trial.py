"""What dead letters would be now: decoded as a worker decodes them, and nothing written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from lockstep.config import Config
from lockstep.letters.letter import Letter
from participant.records.errors import BatchTooLarge, SchemasUnavailable
from participant.records.headers import pack, pack_note
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch, Values
from participant.worker.stages import unchecked_decoder
from table.partition_columns import columns_of

UNANSWERED_MAX = 3
"""Letters that a registry gives no answer about, before the others are not asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`reason`: why it is still no row; empty where it is one."""

    reason: str = ""
    row: dict[str, Any] | None = None
    """The record's columns. None of a record without a value, which only deletes."""
    deletes: bool = False
    """Whether it deletes the row of its key."""

    @property
    def is_row(self) -> bool:
        return not self.reason


class Trial:
    """With the schema of this configuration. Raises `SchemaError` for one that cannot be read.

    What decides only between records is not tried: a worker looks at what stood before a change event, too.
    """

    def __init__(self, config: Config) -> None:
        self._spec, self._record = config.table_spec(), config.record_spec()
        spec = self._spec
        self._schema = columns_of(spec)
        self._unanswered, self._why_untold = 0, ""
        self._decoder()

    def _decoder(self) -> Decoder:
        """A new one: some remember what they have read."""
        return unchecked_decoder(self._spec, self._schema, self._record)

    def verdicts(self, letters: Sequence[Letter]) -> list[Verdict]:
        """One for each."""
        found: dict[int, Verdict] = {}
        self._unanswered = 0
        by_partition: dict[SourcePartition, list[int]] = {}
        for place, letter in enumerate(letters):
            by_partition.setdefault(letter.partition, []).append(place)
        for places in by_partition.values():
            places.sort(key=lambda place: letters[place].offset)
            some = [letters[place] for place in places]
            found.update(zip(places, self._of_one(some), strict=True))
        return [found[place] for place in range(len(letters))]

    def _of_one(self, letters: Sequence[Letter]) -> list[Verdict]:
        """Of one source partition, by offset. A registry that is away keeps no letter from being shown."""
        if self._unanswered >= UNANSWERED_MAX:
            return [Verdict(reason=self._why_untold)] * len(letters)
        try:
            decoded = self._decoder().decode(_batch(letters))
        except BatchTooLarge:
            middle = len(letters) // 2
            return [*self._of_one(letters[:middle]), *self._of_one(letters[middle:])]
        except SchemasUnavailable as why:
            if len(letters) > 1:
                return [verdict for letter in letters for verdict in self._of_one([letter])]
            self._unanswered += 1
            self._why_untold = f"that cannot be told now: {why}"
            return [Verdict(reason=self._why_untold)]
        if decoded.stop is None:
            return _verdicts(decoded, len(letters))
        if len(letters) == 1:
            return [Verdict(reason=decoded.stop[1])]
        return [verdict for letter in letters for verdict in self._of_one([letter])]


def _batch(letters: Sequence[Letter]) -> RawBatch:
    return RawBatch(
        partition=letters[0].partition,
        offsets=np.array([letter.offset for letter in letters], dtype=np.int64),
        timestamps_ms=np.array([letter.timestamp_ms for letter in letters], dtype=np.int64),
        values=Values.of([letter.value for letter in letters]),
        keys={place: letter.key for place, letter in enumerate(letters) if letter.value is None},
        record_keys=Values.of([letter.key for letter in letters]),
        headers=Values.of([_headers(letter) for letter in letters]),
    )


def _headers(letter: Letter) -> bytes:
    """As a worker has them, with a note where some could not be had."""
    return pack(letter.headers) + (pack_note(letter.note.encode()) if letter.note else b"")


def _verdicts(decoded: Decoded, count: int) -> list[Verdict]:
    """By place. What is neither row nor reject is a record without a value, which deletes."""
    kept = range(count) if decoded.kept is None else decoded.kept.tolist()
    rows = dict(zip(kept, range(decoded.table.num_rows), strict=True))
    reasons = decoded.rejects.by_place()

    def one(place: int) -> Verdict:
        if place in reasons:
            return Verdict(reason=reasons[place])
        if place not in rows:
            return Verdict(deletes=True)
        row = rows[place]
        deletes = decoded.deleted is not None and bool(decoded.deleted[row])
        return Verdict(row=decoded.table.slice(row, 1).to_pylist()[0], deletes=deletes)

    return [one(place) for place in range(count)]
