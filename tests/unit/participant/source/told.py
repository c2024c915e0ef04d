"""What a source reads, as a test tells it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np

from control_topic.messages import SourcePartition
from participant.errors import SourceUnreadable
from participant.records.raw import RawBatch, Values
from participant.source.fetched import Fetched
from participant.source.fetcher import Consumed, Notice
from participant.source.reading import SourceCallbacks, SourceThread

P0 = SourcePartition("events", 0)
P1 = SourcePartition("events", 1)


def batch(partition: SourcePartition, start: int, end: int, content: bytes = b"{}") -> RawBatch:
    return RawBatch(
        partition=partition,
        offsets=np.arange(start, end, dtype=np.int64),
        timestamps_ms=np.zeros(end - start, dtype=np.int64),
        values=Values.of([content] * (end - start)),
    )


def notice(code: int, offset: int | None, partition: SourcePartition = P0) -> Notice:
    return Notice(partition=partition, code=code, text="what the client says", offset=offset)


class Broker:
    """A fetcher that gives what it is told to, and the shell around the source that reads from it."""

    name = "told"

    def __init__(self) -> None:
        self.taken: list[tuple[SourcePartition, int]] = []
        self.next: list[Consumed] = []
        self.low, self.high = 0, 1_000
        self.says_too_large = ""
        self.away: set[SourcePartition] = set()
        self.delivered: list[Fetched] = []
        self.stuck: list[str] = []
        self.made = self.closed = 0
        self.closes = threading.Event()
        self.closes.set()
        self.source = SourceThread(
            fetcher=self.another,
            until=None,
            on_data_loss="fail",
            callbacks=SourceCallbacks(
                owned=lambda: frozenset({P0, P1}),
                deliver=lambda fetched: self.delivered.append(fetched) is None,
                stuck=lambda _partition, _generation, reason: self.stuck.append(reason),
                failed=self.stuck.append,
            ),
        )
        self.source._fetcher = self

    def read_from(self, partition: SourcePartition, offset: int) -> None:
        self.taken.append((partition, offset))

    def drop(self, partition: SourcePartition) -> None: ...

    def pause(self, partitions: Iterable[SourcePartition]) -> None: ...

    def resume(self, partitions: Iterable[SourcePartition]) -> None: ...

    def too_large(self) -> str:
        said, self.says_too_large = self.says_too_large, ""
        return said

    def another(self) -> Broker:
        self.made += 1
        return self

    def close(self) -> None:
        self.closes.wait(30)
        self.closed += 1

    def fetch(self, timeout_s: float) -> Consumed:
        return self.next.pop(0) if self.next else Consumed()

    def bounds(self, partition: SourcePartition) -> tuple[int, int]:
        if partition in self.away:
            raise SourceUnreadable(f"{partition}: the log's bounds cannot be read")
        return self.low, self.high

    def read(self, *batches: RawBatch, said: Iterable[Notice] = ()) -> None:
        self.next.append(Consumed(batches=batches, notices=tuple(said)))
        self.source._read()

    def wait(self, for_s: float) -> None:
        """Nothing comes for so long."""
        self.source._stalls.waited_s += for_s
        self.source._look()
