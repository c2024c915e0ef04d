"""How a schedule must end: with no lag, or, where nothing may go on, with runs that halt and say why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from table.service.ledger import RunOutcomeKind
from tests.simulation.letters import about

if TYPE_CHECKING:
    from tests.simulation.driver import Driver
    from tests.simulation.world import World

REPLACED = (
    "are of Kafka cluster",
    "was recreated",
    "is beyond the end of the log",
    "is beyond the log's end",
    "does not exist",
    "no longer exists",
)
"""What a run may say when its source is not the one that the table's offsets are of."""


class Ending:
    """Judges from outside: what the logs hold and what the table says, never what a core believes."""

    def __init__(self, world: World) -> None:
        self._world = world

    def obstacles(self) -> tuple[str, ...]:
        """Phrases, of which a halt must say one: why the pipeline may not go on. Empty where it must."""
        world = self._world
        if not world.has_genesis:
            return ()
        phrases = REPLACED if world.log.replaced else ()
        return (
            phrases
            + self._losses()
            + self._poison()
            + self._rejects()
            + self._damage()
            + self.undeliverable()
        )

    def _losses(self) -> tuple[str, ...]:
        """Retention took what the table lacks, and that is not allowed."""
        world = self._world
        if world.on_data_loss != "fail":
            return ()
        committed, begins = world.committed, world.log.begins  # what was gone by then is no loss of ours
        lost = [
            p
            for p, low in world.log.lows.items()
            if p in committed and max(committed[p], begins.get(p, 0)) < low
        ]
        return tuple(
            phrase
            for p in lost
            for phrase in (f"Source partition {p}: offsets [", f"{p} at offset {committed[p]}: ")
        )

    def _poison(self) -> tuple[str, ...]:
        """A bad record is next but for what lies before it, and none may be set aside."""
        world = self._world
        if world.on_error != "fail":
            return ()
        committed = world.committed
        return tuple(
            f"{p} at offset {offset}: "
            for p, offsets in world.log.bad.items()
            for offset in offsets
            if offset >= committed.get(p, 0)
        )

    def _rejects(self) -> tuple[str, ...]:
        """More bad records lie ahead than may be set aside for a transaction, or enough to judge a share."""
        world = self._world
        allowed = world.rejects_max.count
        if world.rejects_max.share is not None:
            allowed = world.rejects_max.share_judged_from - 1
        if allowed is None:
            return ()
        ahead = sum(o >= world.committed.get(p, 0) for p, found in world.log.bad.items() for o in found)
        return ("more than record.max_rejects",) if ahead > allowed else ()

    def undeliverable(self) -> tuple[str, ...]:
        """A bad record lies ahead that the dead-letter topic will never take."""
        world = self._world
        if world.on_error != "dead_letter":
            return ()
        ahead = [
            (p, offset)
            for p, offsets in world.log.bad.items()
            for offset in offsets
            if p in world.committed and offset >= world.committed[p]
        ]
        return tuple(about(letter) for letter in ahead if world.letters.refuses(letter))

    def _damage(self) -> tuple[str, ...]:
        """A batch that nobody can read holds what the table lacks."""
        world = self._world
        return tuple(
            f"{p} at offset {at}: "
            for p, at in world.log.damaged.items()
            if world.committed.get(p, 0) <= at < world.log.ends[p]
        )

    def refusals(self) -> list[Driver]:
        """Runs that began after the last fault and halted, saying what stands in the way."""
        began_ms = self._world.tail_began_ms
        phrases = self.obstacles()
        return [
            driver
            for driver in self._world.drivers
            if driver.outcome is not None
            and driver.outcome.kind is RunOutcomeKind.HALTED
            and began_ms is not None
            and driver.began_ms >= began_ms
            and any(phrase in driver.outcome.reason for phrase in phrases)
        ]
