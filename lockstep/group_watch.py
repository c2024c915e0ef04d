"""The pipeline's consumer group is looked at while a run goes on: a group is its pipeline's own.

Who joins it with the workers' own assignor is refused by nobody and given source partitions, which then
nobody reads. Workers cannot see that; the broker can be asked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence

from control_topic.messages import SourcePartition
from control_topic.spelling import some
from lockstep.looking import Looking
from table.source import GroupMember, SourceTopics
from table.source_facts import SourceError

log = logging.getLogger("lockstep.run")

LOOK_EVERY_S = 10.0
SAID_AFTER_S = 30.0
"""A guest who comes and goes is what static membership and a few seconds of lag are for."""
HELD_MAX_S = 120.0
JOIN_S = 5.0
NAMED_MAX = 5


def strangers(members: Iterable[GroupMember], group: str) -> list[GroupMember]:
    """Who has been given source partitions and is no worker of the pipeline, as its static id says."""
    ours = re.compile(re.escape(group) + r"-[0-9]+")
    return [member for member in members if member.partitions and not ours.fullmatch(member.instance)]


def sentence(members: Sequence[GroupMember], group: str) -> str:
    """What an operator is told of them, without a verb of time."""
    partitions = sorted(partition for member in members for partition in member.partitions)
    who = ", ".join(sorted({f"{member.client or 'a client'} at {member.host}" for member in members}))
    return (
        f"{some(partitions, shown_max=NAMED_MAX)} cannot be read: consumer group {group} has given them to "
        f"{who}, which is no worker of this pipeline. End that member: the group is the pipeline's own"
    )


class Held:
    """What strangers hold, and since when. Pure."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._since_s: dict[SourcePartition, float] = {}
        self._said = False

    def look(self, members: Iterable[GroupMember], now_s: float) -> tuple[str, bool]:
        """What is to be said now, and whether that is the end of the run."""
        guests = strangers(members, self._group)
        held = {partition for guest in guests for partition in guest.partitions}
        self._since_s = {partition: self._since_s.get(partition, now_s) for partition in held}
        longest_s = max((now_s - since_s for since_s in self._since_s.values()), default=0.0)
        if longest_s < SAID_AFTER_S:
            self._said = False
            return "", False
        final = longest_s >= HELD_MAX_S
        if self._said and not final:
            return "", False
        self._said = True
        return f"{sentence(guests, self._group)} (for {longest_s:.0f} s)", final


class GroupWatch(Looking):
    """A thread in the driver. `halt` ends the run; `clock`: seconds that never go back."""

    def __init__(
        self, source: SourceTopics, group: str, *, halt: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        super().__init__("group-watch", self._goes_on, every_s=LOOK_EVERY_S, join_s=JOIN_S)
        self._source, self._group, self._halt, self._clock = source, group, halt, clock
        self._held = Held(group)

    def _goes_on(self) -> bool:
        try:
            members = self._source.group_members(self._group)
        except SourceError as error:
            log.debug("the consumer group was not looked at: %s", error)  # whoever needs it says so
            return True
        said, final = self._held.look(members, self._clock())
        if final:
            self._halt(said)
        elif said:
            log.warning("%s; after %.0f s the run halts", said, HELD_MAX_S)
        return not final
