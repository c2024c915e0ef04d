"""Which worker dies when, and how long it takes until commits go on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, kw_only=True)
class Kill:
    """A kill, planned or done. Times: Unix epoch, milliseconds."""

    victim: str
    coordinator: bool
    at_fraction: float
    """Of all records, committed by then."""

    worker: str = ""
    pid: int = 0
    done_ms: int = 0
    resumed_ms: int = 0
    """When the first commit after it was acknowledged, 0 before that."""

    @property
    def is_done(self) -> bool:
        return self.done_ms > 0

    @property
    def outage_ms(self) -> int:
        """From the kill to the next acknowledged commit; 0 before that."""
        return self.resumed_ms - self.done_ms if self.resumed_ms else 0


def two_kills() -> tuple[Kill, ...]:
    """First a worker that only writes, later the one that also holds the coordinator."""
    return (
        Kill(victim="a worker", coordinator=False, at_fraction=0.25),
        Kill(victim="the coordinator's worker", coordinator=True, at_fraction=0.6),
    )


def one_kill() -> tuple[Kill, ...]:
    """In the middle, the worker that also holds the coordinator."""
    return (Kill(victim="the coordinator's worker", coordinator=True, at_fraction=0.5),)


class KillPlan:
    """Kills, one after the other, of a pipeline that has so many workers."""

    def __init__(self, workers: int, kills: tuple[Kill, ...]) -> None:
        self._workers = workers
        self.kills = kills

    @property
    def is_over(self) -> bool:
        """All kills are done and commits have gone on after each."""
        return all(kill.resumed_ms for kill in self.kills)

    def due(
        self, *, fraction: float, writing: bool, workers: Sequence[Mapping[str, Any]]
    ) -> tuple[Kill, int] | None:
        """The kill to carry out now, and the process to kill.

        `writing`: a transaction is open, so that there is something to lose. `workers`: as the driver's live
        status lists them. Everybody must be alive: each kill meets a whole pipeline.
        """
        kill = next((kill for kill in self.kills if not kill.resumed_ms), None)
        if kill is None or kill.is_done or not writing or fraction < kill.at_fraction:
            return None
        alive = [worker for worker in workers if worker["state"] != "dead"]
        if len(alive) < self._workers or not all(worker["partitions"] for worker in alive):
            return None
        for worker in alive:
            if bool(worker["coordinator"]) == kill.coordinator:
                kill.worker = f"worker-{worker['slot']}"
                kill.pid = int(worker["pid"])
                return kill, kill.pid
        return None

    def committed(self, at_ms: int) -> Kill | None:
        """A commit was acknowledged: the kill that it is the first one after, if any."""
        for kill in self.kills:
            if kill.is_done and not kill.resumed_ms and at_ms > kill.done_ms:
                kill.resumed_ms = at_ms
                return kill
        return None
