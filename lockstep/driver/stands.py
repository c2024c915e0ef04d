"""Whether a run stands still, and for how long it may: source partitions that nobody reads, a consumer group
without a coordinator, a broker that is away. Pure; the driver's looks come in, sentences go out.

Which bound speaks: while workers live and the group answers, time without an owner counts. While the group
does not answer, that is an outage, and nothing else counts. While no worker lives, only outages do: deaths
and starts of workers have bounds of their own (lockstep/driver/supervisor.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from control_topic.messages import SourcePartition
from control_topic.spelling import some
from lockstep.brokers.group import GroupMember, GroupView
from table.service.ledger import LedgerLimits

ALARM_S = 30.0
"""A guest who comes and goes is what static membership and a few seconds of lag are for."""
UNREAD_MAX_S = 120.0
OUTAGE_MAX_S = LedgerLimits().outage_budget_ms / 1_000
"""As long as any other outage is waited out."""
NEW_S = 35.0
"""Workers' clients know a source partition that is added after 30 s; then the group is made anew."""
STEP_MAX_S = 40.0
"""The most that one look adds: one that nobody answers takes so long, and a frozen driver does not know."""
NAMED_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingWorker:
    """A living worker, as it last reported."""

    name: str
    owned: frozenset[SourcePartition] = frozenset()
    alarms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the driver saw at once."""

    now_s: float
    """Of a clock that does not go back."""

    partitions: Collection[SourcePartition] = ()
    group: GroupView | None = None
    """None where it may not be asked."""

    outage: str = ""
    """Why the group did not answer, empty where it did."""

    workers: Sequence[LivingWorker] = ()
    commits: int = 0
    """By this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVerdict:
    """What follows from a look."""

    alarm: str = ""
    """What the status shows."""

    is_news: bool = False
    """The alarm was not said before."""

    halt: str = ""
    """Why the run ends."""


WELL = GroupVerdict()


def is_ours(member: GroupMember, group: str) -> bool:
    """Whether it has a worker's static membership: of this run or of an earlier one."""
    return re.fullmatch(re.escape(group) + r"-[0-9]+", member.instance) is not None


def ours(members: Iterable[GroupMember], group: str) -> int:
    """How many workers are in the group: a stranger keeps no run alive."""
    return sum(is_ours(member, group) for member in members)


def strangers(members: Iterable[GroupMember], group: str) -> list[GroupMember]:
    """Who has been given source partitions and is no worker of the pipeline, as its static id says."""
    return [member for member in members if member.partitions and not is_ours(member, group)]


def sentence(members: Sequence[GroupMember], group: str) -> str:
    """What an operator is told of them, without a verb of time."""
    partitions = sorted(partition for member in members for partition in member.partitions)
    who = some(sorted({named(member) for member in members}), shown_max=NAMED_MAX)
    return (
        f"{some(partitions, shown_max=NAMED_MAX)} cannot be read: consumer group {group} has given them to "
        f"{who}, which is no worker of this pipeline. End that member: the group is the pipeline's own"
    )


@dataclass(slots=True)
class Stands:
    """One run's memory of it. `look` is called every some seconds while the run is to go on."""

    group: str
    session_s: float = 0.0
    """So long the group keeps the place of a worker that is gone, if no other takes its slot."""
    _unread_s: dict[SourcePartition, float] = field(default_factory=dict)
    _known: frozenset[SourcePartition] = frozenset()
    _last_s: float | None = None
    _counted: bool = False
    _away_s: float = 0.0
    _commits: int = 0
    _said: str = ""

    def look(self, seen: Look) -> GroupVerdict:
        """What is to be said now, and whether that is the end of the run."""
        step_s = min(seen.now_s - self._last_s, STEP_MAX_S) if self._last_s is not None else 0.0
        self._last_s = seen.now_s
        served = not seen.outage or seen.commits > self._commits
        self._away_s, self._commits = 0.0 if served else self._away_s + step_s, seen.commits
        if seen.outage:
            self._counted = False
            return self._away(seen.outage)
        self._count(seen, step_s if self._counted else 0.0)
        self._counted = bool(seen.workers)
        return self._unread(seen)

    def _away(self, outage: str) -> GroupVerdict:
        if self._away_s >= OUTAGE_MAX_S:
            return GroupVerdict(
                halt=f"Kafka has not served this run for {self._away_s:.0f} s, and an outage is waited out "
                f"for {OUTAGE_MAX_S:.0f} s; last: {outage} Nothing is lost: start again once it does."
            )
        if self._away_s < ALARM_S:
            return self._well()
        so_far = f"for {self._away_s:.0f} s; after {OUTAGE_MAX_S:.0f} s the run halts"
        return self._alarm("outage", f"{outage.rstrip('.')} ({so_far})")

    def _count(self, seen: Look, step_s: float) -> None:
        owned = self._read(seen)
        news = frozenset(seen.partitions) - self._known if self._known else frozenset()
        self._known = frozenset(seen.partitions)
        self._unread_s = {
            one: self._unread_s[one] + step_s if one in self._unread_s else -NEW_S if one in news else 0.0
            for one in seen.partitions
            if one not in owned
        }

    def _read(self, seen: Look) -> set[SourcePartition]:
        """What a worker says that it has, and the group, too, where that one has come to rest: a worker that
        cannot reach the broker does not learn that it has nothing any more."""
        owned = {partition for worker in seen.workers for partition in worker.owned}
        if seen.group is None or not seen.group.settled:
            return owned
        ours = (member.partitions for member in seen.group.members if is_ours(member, self.group))
        return owned.intersection(*[set().union(*ours)])

    def _unread(self, seen: Look) -> GroupVerdict:
        late = {one: lasts_s for one, lasts_s in self._unread_s.items() if lasts_s >= ALARM_S}
        if not late or not seen.workers:
            return self._well()
        longest_s = max(late.values())
        cause, said = self._why(sorted(late), seen)
        if longest_s >= self._unread_max_s:
            return GroupVerdict(halt=f"{said} (for {longest_s:.0f} s). Nothing is lost.")
        so_far = f"for {longest_s:.0f} s; after {self._unread_max_s:.0f} s the run halts"
        return self._alarm(cause, f"{said} ({so_far})")

    @property
    def _unread_max_s(self) -> float:
        return max(UNREAD_MAX_S, self.session_s + UNREAD_MAX_S / 2)

    def _why(self, late: Sequence[SourcePartition], seen: Look) -> tuple[str, str]:
        """Of source partitions that nobody reads: what the cause is called, and the sentence."""
        members = seen.group.members if seen.group is not None else ()
        guests = [member for member in members if not is_ours(member, self.group)]
        holders = strangers(members, self.group)
        held = {partition for holder in holders for partition in holder.partitions}
        if not held.isdisjoint(late):
            cause, text = "strangers", _held(holders, guests, sorted(set(late) - held), self.group)
        else:
            cause, why = self._state(late, seen)
            text = f"No worker reads {some(late, shown_max=NAMED_MAX)}: {why}. {_do(seen.group, guests)}"
        said = [f"{worker.name}: {alarm}" for worker in seen.workers for alarm in worker.alarms]
        said += [
            f"{worker.name} says that it has them, and the group does not: see that it reaches the broker"
            for worker in seen.workers
            if not worker.owned.isdisjoint(late)
        ]
        more = f"; {some(said, shown_max=NAMED_MAX)}" if said else ""
        return cause + "".join(sorted(map(named, guests))), text + more

    def _state(self, late: Sequence[SourcePartition], seen: Look) -> tuple[str, str]:
        group = f"consumer group {self.group}"
        if seen.group is None:
            return "unseen", f"{group} has not given them to one, and may not be looked at"
        if seen.group.rebalancing:
            return "rebalancing", (
                f"{group} is rebalancing ({seen.group.state}) and does not come to an end, as where a member "
                "does not join it anew"
            )
        if not seen.group.members:
            return "empty", f"nobody is in {group}"
        holders = [one for one in seen.group.members if not set(late).isdisjoint(one.partitions)]
        if holders:
            who = some(sorted({f"{one.instance} at {one.host}" for one in holders}), shown_max=NAMED_MAX)
            return (
                "ours",
                f"{group} has given them to {who}, and no living worker says that it has them",
            )
        return "nobody", f"{group} is {seen.group.state} and has given them to nobody"

    def _alarm(self, cause: str, text: str) -> GroupVerdict:
        is_news, self._said = cause != self._said, cause
        return GroupVerdict(alarm=text, is_news=is_news)

    def _well(self) -> GroupVerdict:
        self._said = ""
        return WELL


def named(member: GroupMember) -> str:
    """Who it is, for an operator who has to find it."""
    return f"{member.client or 'a client'} at {member.host}"


def _held(
    holders: Sequence[GroupMember],
    guests: Sequence[GroupMember],
    rest: Sequence[SourcePartition],
    group: str,
) -> str:
    """`rest`: what no worker reads either, and no stranger holds."""
    idle = sorted(_holding(member) for member in guests if not member.partitions)
    beside = f"; beside it in the group: {some(idle, shown_max=NAMED_MAX)}" if idle else ""
    more = f"; nor does a worker read {some(rest, shown_max=NAMED_MAX)}" if rest else ""
    return sentence(holders, group) + beside + more


def _do(group: GroupView | None, guests: Sequence[GroupMember]) -> str:
    if group is None:
        return "See who is in it (kafka-consumer-groups --describe --members)"
    if not guests:
        return "Nobody but workers is in the group: their logs, and the group's coordinator's, say more"
    beside = some(sorted(map(_holding, guests)), shown_max=NAMED_MAX)
    return f"In the group beside the workers: {beside}. End that member: the group is the pipeline's own"


def _holding(member: GroupMember) -> str:
    holds = some(sorted(member.partitions), shown_max=NAMED_MAX)
    return f"{named(member)} ({f'holds {holds}' if holds else 'holds nothing that the broker tells of'})"
