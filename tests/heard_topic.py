"""A control topic as readers hear it: messages as their senders would write them, a second apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from control_topic.messages import (
    AckCommit,
    Body,
    DataFile,
    Message,
    ParticipantJoin,
    Range,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    WriteStatus,
)
from lockstep.watch.told import Heard, News
from lockstep.watch.topic_fold import Fold

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
W0, W1 = "a" * 32, "b" * 32
T1, T2 = "1" * 32, "2" * 32


class Topic:
    """`known`: what the fold made of them; `news`: what it told."""

    def __init__(self) -> None:
        self.known = Fold()
        self._seconds: Iterator[int] = count(1)
        self.news: list[News] = []

    def send(
        self,
        body: Body,
        *,
        epoch: int = 1,
        sender: str = "coordinator@worker-0",
        who: str = "c",
        run: str = "r1",
    ) -> None:
        second = next(self._seconds)
        message = Message(
            pipeline="demo",
            run=run,
            epoch=epoch,
            sender=sender,
            incarnation=who,
            sequence=second,
            sent_at_ms=second * 1_000,
            body=body,
        )
        self.news += self.known.hear(Heard(offset=second, time_ms=second * 1_000, message=message))

    def opened(self, transaction: str, committed: Mapping[SourcePartition, int], *, epoch: int = 1) -> None:
        self.send(
            StartCommit(
                transaction=transaction, instant="20260101", committed=committed, writers={P0: W0, P1: W1}
            ),
            epoch=epoch,
        )

    def joined(self, worker: str, who: str, *partitions: SourcePartition) -> None:
        self.send(ParticipantJoin(partitions=partitions), sender=worker, who=who)

    def reported(self, transaction: str, partition: SourcePartition, start: int, following: int) -> None:
        rows = following - start
        file = DataFile(path=f"d/{start}", body="f", table_partition="d", rows=rows, size_bytes=10 * rows)
        status = WriteStatus(
            transaction=transaction,
            ranges=(Range(partition=partition, start=start, next=following, records=rows),),
            files=(file,),
        )
        self.send(status, sender=f"worker-{partition.number}", who=W0 if partition == P0 else W1)

    def acknowledged(
        self, transaction: str, committed: Mapping[SourcePartition, int], *, epoch: int = 1
    ) -> None:
        self.send(AckCommit(transaction=transaction, instant="20260101", committed=committed), epoch=epoch)


def announced() -> Topic:
    """A topic on which run r1 is up."""
    topic = Topic()
    topic.send(RunAnnounce(address="127.0.0.1:1"), epoch=0, sender="driver", who="d")
    return topic
