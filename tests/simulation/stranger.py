"""A stranger who may write to the control topic, and has no run's key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from control_topic.messages import (
    EPOCH_LEAD_MAX,
    EPOCH_MAX,
    AbortCommit,
    AckCommit,
    Body,
    CoordinatorClaim,
    EndCommit,
    EndRequest,
    Halt,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    Range,
    RunAnnounce,
    StartCommit,
    WriteStatus,
)
from control_topic.trust import mark
from tests.simulation.bus import Record, stand_in

if TYPE_CHECKING:
    from tests.simulation.world import World

NO_KEY = bytes(32)
FAR = 2**62


class Stranger:
    """Knows all that was said lately, and says it again, or otherwise, in anybody's name."""

    def __init__(self, world: World) -> None:
        self._world = world

    def replay(self) -> None:
        """What somebody said, word for word, with the mark that it carries."""
        said = self._world.bus.said
        if said:
            self._world.bus.append(self._world.chance.random.choice(said))

    def forge(self) -> None:
        """In the name of somebody who said something lately: what would mislead the most."""
        said = self._world.bus.said
        if not said:
            return
        heard = self._world.chance.random.choice(said).message
        for whose, body in self._reports() or [(heard, self._body(heard))]:
            self._say(whose, body)

    def _say(self, whose: Message, body: Body) -> None:
        pick = self._world.chance.random.choice
        epochs = (whose.epoch, whose.epoch, whose.epoch + 1, whose.epoch + EPOCH_LEAD_MAX, FAR, EPOCH_MAX)
        epoch = whose.epoch if isinstance(body, WriteStatus) else min(pick(epochs), EPOCH_MAX)
        run = f"run-{pick((1, 2, 9))}" if isinstance(body, RunAnnounce) else whose.run
        forged = Message(
            version=whose.version,
            pipeline=whose.pipeline,
            run=run,
            epoch=epoch,
            sender=whose.sender,
            incarnation=whose.incarnation,
            sequence=whose.sequence + pick((1, 1, FAR)),
            sent_at_ms=pick((0, FAR)),
            body=body,
        )
        raw = stand_in(forged)
        self._world.bus.append(Record(forged, raw, mark(NO_KEY, raw), forged))

    def _body(self, heard: Message) -> Body:
        pick, log = self._world.chance.random.choice, self._world.log
        transaction, everything = heard.transaction, tuple(sorted(log.records))
        start = heard.body if isinstance(heard.body, StartCommit) else None
        bodies: list[Body] = [
            Halt(reason="a stranger says so"),
            CoordinatorClaim(),
            RunAnnounce(table_epoch=EPOCH_MAX, started_at_ms=FAR),
            ParticipantReady(),
            ParticipantJoin(partitions=everything),
            ParticipantLeave(partitions=everything, transaction=transaction),
            AbortCommit(transaction=transaction, reason="a stranger says so"),
            AckCommit(transaction=transaction, instant="", committed=dict(log.ends)),
            EndRequest(transaction=transaction, reason="records"),
            EndCommit(transaction=transaction),
            StartCommit(
                transaction=f"{transaction}x",
                instant=start.instant if start else "",
                committed=dict(log.ends),
                writers=start.writers if start else dict.fromkeys(everything, heard.incarnation),
            ),
        ]
        return pick(bodies)

    def _reports(self) -> list[tuple[Message, Body]]:
        """Of the transaction that is about to end: nothing was written, and everything is read."""
        last = {record.message.incarnation: record.message for record in self._world.bus.said}
        ended = [m for m in last.values() if isinstance(m.body, EndCommit)]
        return [report for end in ended for report in self._of_everybody(end, last)]

    def _of_everybody(self, end: Message, last: dict[str, Message]) -> Iterator[tuple[Message, Body]]:
        ends = self._world.log.ends
        for record in self._world.bus.said:
            start = record.message.body
            if not isinstance(start, StartCommit) or start.transaction != end.transaction:
                continue
            for who in sorted(set(start.writers.values()) & last.keys()):
                mine = [p for p in sorted(start.writers) if start.writers[p] == who and p in ends]
                begun = [(p, start.committed.get(p, 0)) for p in mine]
                ranges = tuple(Range(partition=p, start=s, next=max(s, ends[p])) for p, s in begun)
                yield last[who], WriteStatus(transaction=end.transaction, ranges=ranges)
            return
