"""What is counted of one run, from the news that the control topic tells of it. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from control_topic.causes import COMMIT_PARTS, OTHER
from control_topic.spelling import short_line
from lockstep.watch.told import Aborted, Claimed, Committed, Joined, News, Phase, RejectsSeen, Transaction

BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the histogram of commits' durations; one more is for what took longer."""

COLLECT, CLOSE, TOTAL = "collect", "close", "total"
PARTS = (*COMMIT_PARTS, TOTAL, COLLECT, CLOSE)
"""`collect`: START to END. `close`: END until every worker has answered. `total`: from there to the ACK; the
others are parts of it, as the table service measures them."""

WORKERS_MAX = 256
LABEL_LENGTH_MAX = 128


def label(name: str) -> str:
    """A name that somebody else has given, as a label's value: one line, short, and fit for UTF-8."""
    return short_line(name, LABEL_LENGTH_MAX).encode("utf-8", "replace").decode()


@dataclass(slots=True)
class Histogram:
    """How long something took, by bucket."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    sum_ms: int = 0

    def add(self, took_ms: int) -> None:
        """One more."""
        self.counts[bisect_left(BUCKETS_S, took_ms / 1_000)] += 1
        self.sum_ms += took_ms

    def cumulated(self) -> list[int]:
        """So many took as long as each bound or less, all at the end."""
        total, sums = 0, []
        for count in self.counts:
            total += count
            sums.append(total)
        return sums


@dataclass(slots=True)
class Counters:
    """Each figure counts up from when this was made.

    `leads`: a coordinator leads already, so that the next one is a change. `workers`: names that are known.
    """

    leads: bool = False
    workers: Iterable[str] = ()
    outcomes: dict[tuple[str, str], int] = field(default_factory=dict)
    """(committed or aborted, why it ended or was aborted) -> transactions."""

    records: int = 0
    size_bytes: int = 0
    files: int = 0
    late_records: int = 0
    absurd_times: int = 0
    rejects: RejectsSeen = field(default_factory=RejectsSeen)
    durations: dict[str, Histogram] = field(default_factory=lambda: {part: Histogram() for part in PARTS})
    coordinator_changes: int = 0
    restarts: dict[str, int] = field(default_factory=dict)
    """By worker, `WORKERS_MAX` of them at most."""

    _epoch: int = 0

    def __post_init__(self) -> None:
        self.restarts = dict.fromkeys(list(map(label, self.workers))[:WORKERS_MAX], 0)

    @property
    def commits(self) -> int:
        return sum(count for (outcome, _), count in self.outcomes.items() if outcome == "committed")

    @property
    def aborts(self) -> int:
        return sum(count for (outcome, _), count in self.outcomes.items() if outcome == "aborted")

    def hear(self, news: Iterable[News]) -> None:
        """What the fold made of the next message."""
        for one in news:
            match one:
                case Committed(transaction) | Aborted(transaction):
                    self._ended(transaction)
                case Joined(worker, True, _):
                    self._joined(worker)
                case Claimed(_, epoch) if epoch > self._epoch:
                    self.coordinator_changes += self.leads
                    self.leads, self._epoch = True, epoch

    def _ended(self, transaction: Transaction) -> None:
        committed = transaction.phase is Phase.COMMITTED
        why = (transaction.end_reason if committed else transaction.cause) or OTHER
        key = (transaction.phase.value, why)
        self.outcomes[key] = self.outcomes.get(key, 0) + 1
        if not committed:
            return
        self.records += transaction.records
        self.size_bytes += transaction.size_bytes
        self.files += transaction.files
        self.late_records += transaction.late_records
        self.absurd_times += transaction.absurd_times
        self.rejects.join(transaction.rejects)
        for part, took_ms in durations_ms(transaction).items():
            self.durations[part].add(took_ms)

    def _joined(self, name: str) -> None:
        worker = label(name)
        if worker in self.restarts:
            self.restarts[worker] += 1
        elif len(self.restarts) < WORKERS_MAX:
            self.restarts[worker] = 0


def durations_ms(transaction: Transaction) -> dict[str, int]:
    """Of a transaction that was committed, what is known of `PARTS`."""
    took = {part: max(0, ms) for part, ms in transaction.took_ms.items() if part in COMMIT_PARTS}
    if transaction.end_ms:
        took[COLLECT] = max(0, transaction.end_ms - transaction.started_ms)
    if transaction.end_ms and transaction.written_ms:
        took[CLOSE] = max(0, transaction.written_ms - transaction.end_ms)
    if transaction.written_ms and transaction.announced:
        took[TOTAL] = max(0, transaction.ended_ms - transaction.written_ms)
    return took
