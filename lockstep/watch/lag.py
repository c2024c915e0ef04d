"""For how long the oldest record that is not committed has been waiting, by source partition. Pure.

The end of each log is sampled from time to time. A record at offset *c* was written when the end passed *c*:
between the last sample whose end was at most *c* and the first whose end was beyond it, and is taken to lie
there in proportion. It is an estimate by the observer's clock, too old by one step between samples at most.

What is not known is None, never a guess: a record that was there before the first sample, until samples of
earlier times are put in. `add` takes them in any order, for a broker can be asked for the first offset at or
after a time, of all source partitions at once. No record is read for it, though that would be exact: where a
thousand source partitions are behind, each look would read a thousand records, each from a place of its own.
"""

from __future__ import annotations

from array import array
from bisect import insort

from control_topic.messages import Offsets, SourcePartition

SAMPLES_MAX = 256
"""Of all source partitions together; 8 bytes each. The older half is thinned when there are more."""

PARTITIONS_MAX = 10_000
_UNKNOWN = -1


class EndSamples:
    """The ends of logs at different times."""

    def __init__(self, samples_max: int = SAMPLES_MAX) -> None:
        self._samples_max = samples_max
        self._places: dict[SourcePartition, int] = {}
        self._samples: list[tuple[int, array[int]]] = []  # in the order of their times
        self._valid_from_ms: dict[int, int] = {}  # by place: earlier samples are of another log

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, at_ms: int, ends: Offsets) -> None:
        """The ends as they were then. One that is lower than it was before is that of a log made again."""
        column = array("q", [_UNKNOWN]) * len(self._places)
        for partition, end in ends.items():
            place = self._place(partition)
            if place is None:
                continue
            if place >= len(column):
                column.extend([_UNKNOWN] * (place + 1 - len(column)))
            column[place] = end
            self._note_new_log(place, end, at_ms)
        insort(self._samples, (at_ms, column), key=lambda sample: sample[0])
        if len(self._samples) > self._samples_max:
            half = len(self._samples) // 2
            del self._samples[1:half:2]

    def shift(self, by_ms: int) -> None:
        """The clock by which times are told was set."""
        self._samples = [(at_ms + by_ms, column) for at_ms, column in self._samples]
        self._valid_from_ms = {place: at_ms + by_ms for place, at_ms in self._valid_from_ms.items()}

    def written_ms(self, partition: SourcePartition, offset: int) -> int | None:
        """When the record at `offset` was written; None where nobody can tell, or it is not there yet."""
        place = self._places.get(partition)
        if place is None:
            return None
        valid_from_ms = self._valid_from_ms.get(place, 0)
        later: tuple[int, int] | None = None
        for at_ms, column in reversed(self._samples):  # the newest first: lag is short, mostly
            end = column[place] if place < len(column) else _UNKNOWN
            if end == _UNKNOWN:
                continue
            if at_ms < valid_from_ms:
                return None
            if end > offset:
                later = (at_ms, end)
            elif later is None:
                return None
            else:
                return at_ms + (later[0] - at_ms) * (offset - end) // (later[1] - end)
        return None

    def _note_new_log(self, place: int, end: int, at_ms: int) -> None:
        """Only the newest sample tells: one of an earlier time may be lower than what came after it."""
        newest = next(
            (
                (ms, column[place])
                for ms, column in reversed(self._samples)
                if place < len(column) and column[place] != _UNKNOWN
            ),
            None,
        )
        if newest is not None and at_ms >= newest[0] and end < newest[1]:
            self._valid_from_ms[place] = at_ms

    def _place(self, partition: SourcePartition) -> int | None:
        place = self._places.get(partition)
        if place is None and len(self._places) < PARTITIONS_MAX:
            place = self._places[partition] = len(self._places)
        return place
