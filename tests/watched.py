"""A pipeline as an observer sees it, made up: workers that die, aborted transactions, hostile names."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from control_topic.causes import BYTES, INTERVAL, WORKER_DIED
from control_topic.controls import Tuning
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    Body,
    CoordinatorClaim,
    DataFile,
    EndCommit,
    EndRequest,
    EventTimes,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    Range,
    Reject,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from lockstep.brokers.group import GroupMember
from lockstep.offsets.standing import SourceView
from lockstep.watch.history import History
from lockstep.watch.looks import SourceLook, TableLook
from lockstep.watch.seen import Seen, Settings
from lockstep.watch.told import Heard
from table.census import Census, Column, ColumnChange, SchemaCensus, SchemaChange, Tally
from table.instants import CommittedFile, Instant
from table.service.orders import Orders
from table.state import TableState, nest

NOW_MS = 1_800_000_000_000
PIPELINE = "orders"
HOSTILE = "<script>alert(1)</script>"
TOPICS = ("orders", "clicks<img src=x onerror=alert(2)>")
"""The second cannot be a topic of Kafka, and would be one that a page must bear."""
PARTITIONS = tuple(SourcePartition(topic, number) for topic in TOPICS for number in range(6))
WORKERS = ("worker-0", "worker-1", "worker-2")
TUNING = Tuning(interval_ms=2_000, write_timeout_ms=60_000, schedule="every 1h", align_ms=0)
"""In force: an operator has set the schedule."""


def settings(**more: Any) -> Settings:
    given: dict[str, Any] = {
        "pipeline": PIPELINE,
        "group": PIPELINE,
        "control_topic": "lockstep-control-orders",
        "table_path": "s3://lake/orders",
        "table_format": "hudi",
        "interval_ms": 10_000,
        "write_timeout_ms": 60_000,
        "workers": len(WORKERS),
        "version": "1.2.3",
    }
    return Settings(**(given | more))


class Said:
    """Messages of a pipeline into a history, at times of their own."""

    def __init__(
        self, history: History | None = None, *, partitions: tuple[SourcePartition, ...] = PARTITIONS
    ):
        self.history = history or History()
        self.partitions = partitions
        self.committed = dict.fromkeys(partitions, 0)
        self.run, self.epoch, self.coordinator = "r1", 1, "coordinator@worker-0"
        self.incarnations = {name: f"{name}-first" for name in WORKERS}
        self.now_ms = NOW_MS - 3_600_000
        self.last, self.last_ms = "", 0
        self._offsets = count()
        self._sequences: dict[str, int] = {}
        self._transactions = count(1)

    def say(self, body: Body, *, sender: str = "", who: str = "", marked: bool = True) -> None:
        """The next message, now."""
        sender = sender or self.coordinator
        who = who or f"{sender}-of-{self.run}"
        sequence = self._sequences[who] = self._sequences.get(who, -1) + 1
        message = Message(
            pipeline=PIPELINE,
            run=self.run,
            epoch=self.epoch,
            sender=sender,
            incarnation=who,
            sequence=sequence,
            sent_at_ms=self.now_ms,
            body=body,
        )
        heard = Heard(offset=next(self._offsets), time_ms=self.now_ms, message=message, marked=marked)
        self.history.hear(heard)

    def by(self, worker: str, body: Body) -> None:
        """The same, of a worker."""
        self.say(body, sender=worker, who=self.incarnations[worker])

    def begin(self, run: str = "r1", epoch: int = 1, coordinator: str = "coordinator@worker-0") -> None:
        """A run comes up."""
        self.run, self.epoch, self.coordinator = run, epoch, coordinator
        self.incarnations = {name: f"{name}-of-run-{run}-incarnation" for name in WORKERS}
        self.say(
            RunAnnounce(table_epoch=epoch - 1, started_at_ms=self.now_ms), sender="driver", who=f"d-{run}"
        )
        self.claim(coordinator, epoch)
        for name in WORKERS:
            self.join(name)

    def claim(self, coordinator: str, epoch: int) -> None:
        """Another coordinator takes over."""
        self.coordinator, self.epoch = coordinator, epoch
        self.say(CoordinatorClaim())

    def join(self, worker: str) -> None:
        self.by(worker, ParticipantJoin(partitions=self._owned(worker)))

    def die(self, worker: str, reason: str) -> None:
        """It says why, and another incarnation comes."""
        self.by(worker, ParticipantLeave(partitions=self._owned(worker), reason=reason))
        self.incarnations[worker] += "+"
        self.join(worker)

    def start(self) -> str:
        """START of the next transaction."""
        number = next(self._transactions)
        transaction = f"{number:08x}" + "f" * 24
        writers = {one: self.incarnations[self._owner(one)] for one in self.partitions}
        self.say(
            StartCommit(
                transaction=transaction,
                instant=f"20260101{number:09d}",
                committed=dict(self.committed),
                writers=writers,
            )
        )
        return transaction

    def end(self, transaction: str, reason: str = INTERVAL) -> None:
        self.say(EndCommit(transaction=transaction, reason=reason))

    def report(
        self, transaction: str, worker: str, records: int, rejects: tuple[Reject, ...] = (), count: int = 0
    ) -> None:
        """WRITE_STATUS: so many records of each of its source partitions, in a file each."""
        owned = self._owned(worker)
        ranges = tuple(
            Range(
                partition=one,
                start=self.committed[one],
                next=self.committed[one] + records,
                records=records,
            )
            for one in owned
        )
        files = tuple(
            DataFile(path=f"d/{number}", body="", table_partition="d", rows=records, size_bytes=100 * records)
            for number, _ in enumerate(owned)
        )
        status = WriteStatus(
            transaction=transaction,
            ranges=ranges,
            files=files,
            rejects=rejects,
            reject_count=count,
            event_times=tuple(
                EventTimes(partition=one, greatest_ms=self.now_ms, late=1) for one in owned[:1]
            ),
        )
        self.by(worker, status)

    def acknowledge(self, transaction: str, records: int, took_ms: Mapping[str, int] | None = None) -> None:
        self.last, self.last_ms = transaction, self.now_ms
        self.committed = {one: offset + records for one, offset in self.committed.items()}
        self.say(
            AckCommit(
                transaction=transaction,
                instant=f"20260101{int(transaction[:8], 16):09d}",
                committed=dict(self.committed),
                took_ms=took_ms
                if took_ms is not None
                else {"files": 20, "lock": 5, "check": 3, "metadata": 250, "write": 150},
            )
        )

    def abort(self, transaction: str, reason: str, cause: str = WORKER_DIED) -> None:
        self.say(AbortCommit(transaction=transaction, reason=reason, cause=cause))

    def whole(self, records: int = 1_000, *, reason: str = INTERVAL) -> str:
        """A transaction from its START to its ACK, in 10 s."""
        transaction = self.start()
        self.now_ms += 8_000
        if reason == BYTES:
            self.by(WORKERS[1], EndRequest(transaction=transaction, reason=BYTES))
        self.end(transaction, reason)
        for number, worker in enumerate(WORKERS):
            self.now_ms += 300
            progress = WriteProgress(
                transaction=transaction, records=records, files=1, size_bytes=10, steps=number + 1
            )
            self.by(worker, progress)
            self.report(transaction, worker, records)
        self.now_ms += 1_100
        self.acknowledge(transaction, records)
        return transaction

    def _owned(self, worker: str) -> tuple[SourcePartition, ...]:
        return tuple(one for one in self.partitions if self._owner(one) == worker)

    def _owner(self, partition: SourcePartition) -> str:
        return WORKERS[partition.number % len(WORKERS)]


def rich() -> Said:
    """Two runs: commits, an abort by a death, one that its coordinator left, rejects, one that is open."""
    said = Said()
    said.begin()
    for _ in range(40):
        said.whole()
    lost = said.start()
    said.now_ms += 9_000
    said.end(lost)
    said.report(lost, WORKERS[0], 10)
    said.now_ms += 2_000
    said.abort(lost, f"worker-1 ({said.incarnations[WORKERS[1]]}) died: {HOSTILE}")
    said.die(WORKERS[1], f"its disk is full: {HOSTILE}")
    left = said.start()  # by a driver that is killed
    said.now_ms += 60_000
    said.begin("r2", 2, "coordinator@worker-2")
    for number in range(60):
        said.whole(2_000, reason=BYTES if number % 5 == 0 else INTERVAL)
    slow = said.start()
    said.now_ms += 9_000
    said.end(slow)
    for worker in WORKERS[:2]:
        said.report(slow, worker, 500)
    said.now_ms += 4_200
    rejects = tuple(
        Reject(partition=PARTITIONS[2], offset=120_000 + number, reason=f"field {HOSTILE} is no number")
        for number in range(30)
    )
    said.report(slow, WORKERS[2], 500, rejects, 41)
    said.now_ms += 900
    said.acknowledge(slow, 500)
    said.claim(f"coordinator@{HOSTILE}", 3)
    given_up = said.start()
    said.now_ms += 20_000
    said.abort(given_up, f"its lock is held by {HOSTILE}", "refused")
    opened = said.start()
    said.now_ms += 3_000
    assert left and opened
    return said


def live(said: Said, **more: Any) -> dict[str, Any]:
    """What the driver answers."""
    workers = [
        {
            "slot": number,
            "incarnation": said.incarnations[name],
            "pid": 4_000 + number,
            "host": f"host-{number}",
            "state": ("writing", "flushing", "dead")[number],
            "age_ms": 200,
            "partitions": [str(one) for one in said.partitions if one.number % 3 == number],
            "coordinator": number == 0,
            "fenced": False,
            "poison": None,
            "alarms": [f"disk of {HOSTILE} is full"] if number == 1 else [],
            "seconds": {"decode": 12.5, "encode": 30.25, "upload": 4.0, "wait": 100.0},
            "records": 1_000_000.0,
            "bytes": 100_000_000.0,
            "buffered_bytes": 2_000_000.0 * number,
            "memory_bytes": 300_000_000.0,
            "memory_max_bytes": 512_000_000.0,
        }
        for number, name in enumerate(WORKERS)
    ]
    answer: dict[str, Any] = {
        "pipeline": PIPELINE,
        "run": said.run,
        "epoch": said.epoch,
        "mode": "RUN",
        "halted": None,
        "stopping": None,
        "workers": workers,
        "coordinator": None,
        "commits": 61,
        "rows": 720_000,
        "rejects": 41,
        "late": 7,
        "absurd": 1,
        "watermark": {
            "of": "created_at",
            "at_ms": said.now_ms - 600_000,
            "held_by": "events:1",
            "source_partitions": 4,
            "idle": 1,
        },
        "last_commit_age_ms": said.now_ms - said.last_ms,
        "committed": nest(said.committed),
        "newest": {
            "instant": "20260101000000103",
            "transaction": said.last,
            "run": said.run,
            "epoch": said.epoch,
        },
        "failures": {
            "pipeline": 1,
            "environment": 0,
            "outage_ms": 12_000,
            "backoff_left_ms": 0,
            "reasons": [f"the table lock is held by {HOSTILE}"],
            "deaths": [f"worker-2: killed by {HOSTILE} (3 times)"],
        },
        "fenced": [],
        "table": {"busy_with": "commit", "queued": 0},
        "control": Orders(TUNING).to_json(said.now_ms),
        "services": [
            {
                "name": "compaction",
                "mode": "inline",
                "every": 5,
                "commits": 3,
                "running_ms": None,
                "doing": "",
                "done": 12,
                "last_instant": "20260101000000090",
                "last_what": "12 file groups",
                "last_took_ms": 3_400,
                "last_age_ms": 60_000,
                "failures": 0,
                "problem": "",
            },
            {
                "name": "clustering",
                "mode": "inline",
                "every": 20,
                "commits": 31,
                "running_ms": 5_000,
                "doing": "plans",
                "done": 1,
                "last_instant": "",
                "last_what": "",
                "last_took_ms": 0,
                "last_age_ms": None,
                "failures": 4,
                "problem": f"no room for {HOSTILE}",
            },
        ],
        "alarms": [f"consumer group {HOSTILE} is rebalancing (for 35 s)"],
        "stands": False,
    }
    return answer | more


def table_look(said: Said) -> TableLook:
    """What the table says of the newest commit."""
    state = TableState(
        pipeline=PIPELINE,
        run=said.run,
        epoch=2,
        transaction=said.last,
        offsets=dict(said.committed),
        instant="20260101000000103",
    )
    instant = Instant(
        requested="20260101000000103",
        completed="20260101000000104",
        action="deltacommit",
        state=state,
        files=(CommittedFile(path="d/0", rows=6_000, size_bytes=600_000),),
    )
    return TableLook(exists=True, mode="upsert", instant=instant, completed_ms=said.last_ms - 100)


def table_census(**more: Any) -> Census:
    """What a count of the table found."""
    tally = Tally(60_000_000)
    tally.add("region=eu", [1_000_000] * 30, [5_000] * 4)
    tally.add(f"region={HOSTILE}", [2_000_000, 90_000_000])
    schema = SchemaCensus(
        columns=(
            Column(name="id", kind="STRING", nullable=False),
            Column(name="amount", kind="BIGINT", nullable=True),
            Column(name=HOSTILE, kind=f"STRUCT<{HOSTILE}: INT>", nullable=True),
        ),
        changes=(
            SchemaChange(
                instant="20260101000000103",
                completed_ms=NOW_MS - 60_000,
                changes=(
                    ColumnChange(name="amount", was="INT", now="BIGINT"),
                    ColumnChange(name=HOSTILE, was="", now="STRUCT"),
                    ColumnChange(name="gone", was="DATE", now=""),
                ),
            ),
        ),
        since="20260101000000001",
        since_ms=NOW_MS - 3_600_000,
    )
    made = {"as_of": "20260101000000103", "files": tally.total(is_whole=True), "schema": schema}
    return Census(**(made | more))


def source_look(said: Said, behind: Mapping[SourcePartition, int] | None = None) -> SourceLook:
    """What the broker says: logs whose ends are this far beyond what is committed."""
    behind = behind or {}
    end = {one: offset + behind.get(one, 0) for one, offset in said.committed.items()}
    view = SourceView(
        cluster="c",
        topics=dict.fromkeys(TOPICS, ""),
        partitions=said.partitions,
        earliest=dict.fromkeys(said.partitions, 0),
        end=end,
        group=dict(said.committed),
        written=dict(end),
    )
    members = [
        GroupMember(
            client=name,
            host=f"host-{number}",
            instance=f"{PIPELINE}-{number}",
            partitions=tuple(one for one in said.partitions if one.number % 3 == number),
        )
        for number, name in enumerate(WORKERS)
    ]
    return SourceLook(view=view, members=members)


def seen(said: Said | None = None, *, with_driver: bool = True) -> Seen:
    """Everything looked at: ten seconds ago, and now."""
    said = said or rich()
    said.history.placed = said.run
    said.history.caught_up_now()
    found = Seen(settings=settings(), asks_driver=True, history=said.history)
    now_ms = said.now_ms
    found.looked_at_topic(now_ms)
    found.looked_at_table(now_ms - 2_000, table_look(said), said.run)
    found.counted_files(now_ms - 30_000, table_census())
    if with_driver:
        found.looked_at_driver(now_ms, live(said))
    state, known = found.committed()
    found.looked_at_broker(now_ms - 10_000, source_look(said), state, known)
    behind = {PARTITIONS[0]: 1_000, PARTITIONS[7]: 250_000}
    found.looked_at_broker(now_ms, source_look(said, behind), state, known)
    return found
