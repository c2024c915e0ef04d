"""A plane's end of the exchange: rows that one worker has read and another writes, over a bad network.

In order between two workers, as streams are, and unread until the taker has heard START. What a stream that
did not break has lost is what no stream loses: it stands for bugs at either end, which the counts must find.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from participant import events as ev
from tests.simulation.lake import Row
from tests.simulation.scheduler import Channel

if TYPE_CHECKING:
    from tests.simulation.worker import Worker
    from tests.simulation.world import World

SEEDS = range(7_000_000, 8_000_000)
"""Of worlds whose workers hand rows over. Of all others none does: their schedules are as they were."""

DELAY_MAX_MS = 300
CLOSED_REMEMBERED = 64
Frame = tuple[str, str, list[Row], bool]
"""Transaction, sender, rows, whether they are the last. Of no rows the first: a stream begins."""


class Network:
    """Between all workers of a world: what it does to frames while there are faults."""

    def __init__(self, world: World) -> None:
        self.random = Random(f"exchange {world.seed}")
        self._world = world
        self.breaks = self.random.choice((0.0, 0.01, 0.1))
        self.loses = self.random.choice((0.0, 0.0, 0.05))
        self.shy = self.random.choice((0.0, 0.0, 0.0, 0.3))
        """Of workers that take no rows, as one that cannot listen, or an older one."""
        self.lost_rows = 0

    def of(self, probability: float) -> bool:
        return self._world.tail_began_ms is None and self.random.random() < probability

    def address(self, incarnation: str) -> str:
        """Where a worker takes rows: here its name."""
        return "" if self.random.random() < self.shy else incarnation

    def worker(self, address: str) -> Worker | None:
        return next((w for w in self._world.workers if w.incarnation == address and w.alive), None)


class Exchange:
    """Of one worker; of one transaction at a time. `broke`: called when that is of no use."""

    def __init__(self, worker: Worker, network: Network, broke: Callable[[], None]) -> None:
        self._worker = worker
        self._network = network
        self._broke = broke
        self._finished = False
        self.transaction = ""
        self.broken = ""
        self.awaited: set[str] = set()
        self.handed: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.rows: list[Row] = []
        """Others', of the open transaction."""
        self._takers: dict[str, str] = {}
        self._early: list[tuple[Frame, Exchange]] = []
        self._closed: deque[str] = deque(maxlen=CLOSED_REMEMBERED)
        self._channels: dict[str, Channel] = {}

    def open(self, order: ev.Open) -> None:
        self.close()
        if not order.takers:
            return
        self.transaction, self._takers, self.broken = order.transaction, dict(order.takers), ""
        self._finished = False
        self.awaited = self._others
        self.handed, self.taken, self.rows = Counter(), Counter(), []
        early, self._early = self._early, []
        for frame, sender in early:
            self.take(frame, sender)
        for who in sorted(self._others):
            self._put(who, [], last=False)

    def close(self) -> None:
        """Whoever has not all of ours by now will not have it."""
        if self.transaction and not self._finished:
            for who in sorted(self._others):
                self._cut(who)
        if self.transaction:
            self._closed.append(self.transaction)
        self.transaction, self.awaited, self.rows = "", set(), []

    @property
    def _others(self) -> set[str]:
        return self._takers.keys() - {self._worker.incarnation}

    def divided(self, rows: list[Row]) -> list[Row]:
        """Our own of these; the others are on their way."""
        if not self.transaction:
            return rows
        writers = sorted(self._takers)
        parts: dict[str, list[Row]] = {}
        for row in rows:
            parts.setdefault(writers[(row[0].number + row[1] // 3) % len(writers)], []).append(row)
        own = parts.pop(self._worker.incarnation, [])
        for who, part in parts.items():
            self.handed[who] += len(part)
            self._send(who, part, last=False)
        return own

    def finish(self) -> None:
        """That was all."""
        self._finished = True
        for who in sorted(self._others):
            self._send(who, [], last=True)

    def wait_ms(self) -> int:
        """Until it is worth to look again."""
        return 50 + self._network.random.randrange(100)

    def look(self) -> None:
        """A stream of a worker that is gone has broken."""
        if not self.transaction:
            return
        near = self.awaited if self._finished else self._others
        gone = sorted(who for who in near if self._network.worker(self._takers[who]) is None)
        if gone:
            self._break(f"{gone[0]} is gone")

    def _break(self, reason: str) -> None:
        if not self.broken:
            self.broken = reason
            self._broke()

    def _send(self, who: str, rows: list[Row], *, last: bool) -> None:
        network = self._network
        if network.worker(self._takers[who]) is None or network.of(network.breaks):
            self._break(f"{who} cannot be reached")
        if self.broken:
            return
        if rows and network.of(network.loses):
            network.lost_rows += len(rows)
            return
        self._put(who, rows, last=last)

    def _put(self, who: str, rows: list[Row], *, last: bool) -> None:
        self._through(who, Exchange.take, (self.transaction, self._worker.incarnation, rows, last), self)

    def _cut(self, who: str) -> None:
        self._through(who, Exchange.cut, self.transaction, self._worker.incarnation)

    def _through(self, who: str, do: Callable[..., None], *args: object) -> None:
        """It reaches them after what was sent before it, if they are there."""
        taker = self._network.worker(self._takers[who])
        if taker is None:
            return
        channel = self._channels.setdefault(who, Channel())
        delay_ms = self._network.random.randrange(DELAY_MAX_MS)
        self._worker.world.scheduler.through(channel, delay_ms, taker, do, taker.plane.exchange, *args)

    def take(self, frame: Frame, sender: Exchange) -> None:
        """At the taker."""
        transaction, who, rows, last = frame
        if transaction in self._closed:
            sender.refused(transaction)
        elif transaction != self.transaction:
            self._early.append((frame, sender))
        elif who not in self.awaited:
            sender.refused(transaction)
        else:
            self.rows.extend(rows)
            self.taken[who] += len(rows)
            if last:
                self.awaited.discard(who)

    def cut(self, transaction: str, who: str) -> None:
        """At the taker: a stream is over before its end."""
        self._early = [(frame, sender) for frame, sender in self._early if frame[:2] != (transaction, who)]
        if transaction == self.transaction and who in self.awaited:
            self._break(f"what {who} was handing over broke off")

    def refused(self, transaction: str) -> None:
        if transaction == self.transaction:
            self._break("rows were refused")
