"""What the protocol costs as it grows: `python -m bench.scale`.

The production cores and the production codec, without Kafka, Spark or a table: a coordinator, and the
messages of all its workers, through whole transactions. Shown are the coordinator's CPU per transaction (its
core, what it reads and what it writes), what one worker reads, the bytes on the control topic by message,
and the metadata of the commit.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from control_topic.codec import MessageDecoder, encode
from control_topic.messages import (
    TYPE_NAMES,
    Body,
    DataFile,
    Message,
    ParticipantJoin,
    ParticipantReady,
    Range,
    SourcePartition,
    StartCommit,
    WriteStatus,
)
from coordinator import events as ev
from coordinator.core import Coordinator
from table import state
from tests import evidence

TOPIC = "orders.public.line_items"
RECORDS = 1_000
"""Records of one source partition in one transaction."""
FIRST_OFFSET = 5_000_000_000
SIZES = ((100, 5), (1_000, 50), (2_000, 500), (10_000, 50), (10_000, 500), (20_000, 1_000))

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one transaction; CPU in milliseconds, the median of several transactions."""

    partitions: int
    workers: int
    core_cpu_ms: float
    read_cpu_ms: float
    write_cpu_ms: float
    worker_read_cpu_ms: float
    topic_bytes: int
    bytes_by_message: dict[str, int]
    metadata_bytes: int

    @property
    def coordinator_cpu_ms(self) -> float:
        """All that the coordinator's process spends on it."""
        return self.core_cpu_ms + self.read_cpu_ms + self.write_cpu_ms


class World:
    """A coordinator that has been told who is there. `spent`: CPU seconds by what they were spent on."""

    def __init__(self, partitions: int, workers: int) -> None:
        self.partitions = [SourcePartition(TOPIC, number) for number in range(partitions)]
        self.workers = [f"{number:032x}" for number in range(workers)]
        self.owned = {who: self.partitions[number::workers] for number, who in enumerate(self.workers)}
        self.committed = dict.fromkeys(self.partitions, FIRST_OFFSET)
        self.spent: Counter[str] = Counter()
        self.sent_bytes: Counter[str] = Counter()
        self._sequence: Counter[str] = Counter()
        self._decoder = MessageDecoder()
        self._now_ms = 0
        self.core = Coordinator(
            ev.Settings(
                pipeline="line-items",
                run="r" * 32,
                incarnation="c" * 32,
                interval_ms=10_000,
                write_timeout_ms=60_000,
            )
        )

    def spend(self, what: str, do: Callable[[], T]) -> T:
        began = time.process_time()
        result = do()
        self.spent[what] += time.process_time() - began
        return result

    def encoded(self, sender: str, body: Body) -> list[bytes]:
        """The records that carry this body; their bytes are counted."""
        message = Message(
            pipeline="line-items",
            run="r" * 32,
            epoch=7,
            sender=f"worker-{self._sequence[sender] % 1_000}",
            incarnation=sender,
            sequence=self._sequence[sender],
            sent_at_ms=1_800_000_000_000,
            body=body,
        )
        self._sequence[sender] += 1
        records = encode(message)
        self.sent_bytes[TYPE_NAMES[type(body)]] += sum(map(len, records))
        return records

    def hear(self, sender: str, body: Body) -> list[ev.Action]:
        """A worker says something, and the coordinator reads and handles it."""
        message: Any = None
        for record in self.encoded(sender, body):
            message = self.spend("read", lambda record=record: self._decoder.feed(record))  # type: ignore[misc]
        return self.handle(ev.Received(now_ms=self._now_ms, nonce="t" * 32, message=message))

    def handle(self, event: ev.Event) -> list[ev.Action]:
        """What the core wants done; what it says is written, and read by one worker."""
        actions = self.spend("core", lambda: self.core.handle(event))
        for action in actions:
            if isinstance(action, ev.Send):
                records = self.spend("write", lambda action=action: self.encoded("c" * 32, action.body))  # type: ignore[misc]
                reader = MessageDecoder()
                self.spend("worker", lambda records=records, reader=reader: [*map(reader.feed, records)])  # type: ignore[misc]
        return actions

    def complete(self, actions: list[ev.Action], kind: type[Any], **more: Any) -> list[ev.Action]:
        """The table answers the call of this kind."""
        (call,) = (action for action in actions if isinstance(action, kind))
        answer = ev.Completed(
            now_ms=self._now_ms, nonce="t" * 32, call=call.call, result=ev.Result.OK, **more
        )
        return self.handle(answer)

    def start(self) -> None:
        """From the claim to a coordinator that knows its workers."""
        actions = self.handle(ev.Launch(now_ms=0, nonce="t" * 32))
        actions = self.complete(actions, ev.Survey, epoch=6)
        (claim,) = (action.body for action in actions if isinstance(action, ev.Send))
        for record in self.encoded("c" * 32, claim):
            heard: Any = self._decoder.feed(record)
        actions = self.handle(ev.Received(now_ms=0, nonce="t" * 32, message=heard))
        actions = self.complete(actions, ev.Register)
        if any(isinstance(action, ev.Recover) for action in actions):
            self.complete(
                actions, ev.Recover, committed=self.committed, partitions=frozenset(self.partitions)
            )
        for who in self.workers:
            self.hear(who, ParticipantJoin(partitions=tuple(self.owned[who])))

    def transaction(self) -> None:
        """READY of all, START, END, a WRITE_STATUS of all with one file each, the commit, ACK."""
        begin: list[ev.Action] = []
        for who in self.workers:
            begin += self.hear(who, ParticipantReady())
        self._now_ms += 1_000
        begin += self.handle(ev.Tick(now_ms=self._now_ms, nonce="t" * 32))
        started = self.complete(
            [a for a in begin if isinstance(a, ev.Begin)][:1],
            ev.Begin,
            instant="20261121120000000",
            committed=self.committed,
        )
        (start,) = (a.body for a in started if isinstance(a, ev.Send) and isinstance(a.body, StartCommit))
        self._now_ms += 10_000
        self.handle(ev.Tick(now_ms=self._now_ms, nonce="t" * 32))
        commit: list[ev.Action] = []
        for number, who in enumerate(self.workers):
            commit += self.hear(who, self._status(start.transaction, number, who))
        self.committed = {p: offset + RECORDS for p, offset in self.committed.items()}
        self.complete(commit, ev.Commit)

    def _status(self, transaction: str, number: int, who: str) -> WriteStatus:
        ranges = [
            Range(partition=p, start=self.committed[p], next=self.committed[p] + RECORDS, records=RECORDS)
            for p in self.owned[who]
        ]
        file_id = f"00000000-0000-4000-8000-{number:012d}-0"
        path = f"day=2026-11-21/{file_id}_{number}-0-1234567890_20261121120000000.parquet"
        file = DataFile(
            path=path,
            body=file_id,
            table_partition="day=2026-11-21",
            rows=RECORDS * len(ranges),
            size_bytes=40_000_000,
        )
        return WriteStatus(transaction=transaction, ranges=tuple(ranges), files=(file,))

    def metadata_bytes(self) -> int:
        """What a commit carries of ours."""
        ranges = tuple(
            Range(partition=p, start=o - RECORDS, next=o, records=RECORDS) for p, o in self.committed.items()
        )
        held = state.TableState(
            pipeline="line-items",
            run="r" * 32,
            epoch=7,
            transaction="t" * 32,
            offsets=self.committed,
            ranges=ranges,
        )
        return sum(len(name) + len(value) for name, value in state.encode(held).items())


def measure(partitions: int, workers: int, transactions: int) -> Cost:
    """Several transactions in one world, after one that warms up."""
    world = World(partitions, workers)
    world.start()
    world.transaction()
    spent: list[Counter[str]] = []
    for _ in range(transactions):
        world.spent, world.sent_bytes = Counter(), Counter()
        world.transaction()
        spent.append(world.spent)

    def median_ms(what: str) -> float:
        return round(statistics.median(one[what] for one in spent) * 1_000, 2)

    return Cost(
        partitions=partitions,
        workers=workers,
        core_cpu_ms=median_ms("core"),
        read_cpu_ms=median_ms("read"),
        write_cpu_ms=median_ms("write"),
        worker_read_cpu_ms=median_ms("worker"),
        topic_bytes=sum(world.sent_bytes.values()),
        bytes_by_message=dict(world.sent_bytes),
        metadata_bytes=world.metadata_bytes(),
    )


def show(costs: list[Cost]) -> None:
    table = Table(title="One transaction")
    for name in (
        "source partitions",
        "workers",
        "core ms",
        "reading ms",
        "writing ms",
        "together ms",
        "a worker reads ms",
        "bytes a partition on the topic",
        "bytes a partition in the commit",
    ):
        table.add_column(name, justify="right")
    for cost in costs:
        figures = (cost.core_cpu_ms, cost.read_cpu_ms, cost.write_cpu_ms, cost.coordinator_cpu_ms)
        table.add_row(
            f"{cost.partitions:,}",
            f"{cost.workers:,}",
            *(f"{figure:.1f}" for figure in (*figures, cost.worker_read_cpu_ms)),
            f"{cost.topic_bytes / cost.partitions:.0f}",
            f"{cost.metadata_bytes / cost.partitions:.0f}",
        )
    Console().print(table)


@click.command()
@click.option("--transactions", type=click.IntRange(min=1), default=5, show_default=True)
def main(transactions: int) -> None:
    """The protocol's cost for each size."""
    costs = [measure(partitions, workers, transactions) for partitions, workers in SIZES]
    show(costs)
    figures = {"transactions": transactions, "sizes": [asdict(cost) for cost in costs]}
    evidence.write("scale", command="python -m bench.scale", passed=True, figures=figures)


if __name__ == "__main__":
    main()
