"""What goes wrong in a schedule, and the shape of the world that it goes wrong in: data from a seed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from random import Random

from tests.simulation.bucket.server import Request

LATE_MAX_MS = 20_000
"""No request arrives later after its sender has given up or died (docs/stores.md, what is assumed)."""
SETTLED_MS = 2_900
"""Nor later after a death that is proved, of which whoever shares the machine knows at once: 3 s."""
AHEAD_MAX_MS = 9_000
"""By so much clocks of drivers are off where they may take the lock; 10 s are what is assumed."""
FAR_MS = 13_000
"""And by so much where they may not: the store tells whole seconds."""
DRIVERS_MAX = 3
"""That may be struck; one more comes last, undisturbed."""


class Kind(StrEnum):
    FAILS = "fails"
    LOST = "lands, unanswered"
    LATE = "lands late, unanswered"
    DIES = "dies before"
    DIES_SENT = "dies, its request on the way"
    STOPS = "is stopped before"
    STOPS_SENT = "is stopped, its request on the way"
    HANGS = "has its JVM stopped before"
    HANGS_SENT = "has its JVM stopped, its request on the way"
    SLEEPS = "sleeps with its guardian before"
    SLEEPS_SENT = "sleeps with its guardian, its request on the way"


KINDS = tuple(Kind)
SENT = frozenset({Kind.DIES_SENT, Kind.STOPS_SENT, Kind.HANGS_SENT, Kind.SLEEPS_SENT})
DEATHS = frozenset({Kind.DIES, Kind.DIES_SENT})
STOPS = frozenset({Kind.STOPS, Kind.STOPS_SENT})
"""Python and the JVM stand still, and their guardian does not."""
SLEEPS = frozenset({Kind.SLEEPS, Kind.SLEEPS_SENT})
PAUSES = frozenset({*STOPS, *SLEEPS, Kind.HANGS, Kind.HANGS_SENT})

PAUSES_MS = (6_000, 30_000, 65_000, 75_000, 90_000, 130_000, 250_000)
"""Around what leases (60 s), fences (70 s) and heartbeats (120 s) live."""
LEADS_MS = (0, 30, 1_000)
"""So much sooner than its guardian a process runs when both wake up."""


@dataclass(frozen=True, slots=True)
class Strike:
    """At a process's n-th request of one sort, from 1. `ms`: how late it lands, or how long the pause is."""

    who: str
    step: str
    at: int
    kind: Kind
    ms: int = 0
    lead_ms: int = 0

    def __str__(self) -> str:
        late = self.kind in (Kind.LATE, Kind.DIES_SENT)
        how = f", {'after' if late else 'for'} {self.ms:,} ms" if self.ms else ""
        first = f", and runs {self.lead_ms} ms before its guardian" if self.lead_ms else ""
        return f"{self.who} {self.kind} its {self.at}. {self.step}{how}{first}"


@dataclass(frozen=True, slots=True)
class Shape:
    """The world without its faults. `machines`, `skews_ms`: of each driver in the order that they start.

    `rival_at_ms`: when a second driver starts though the first is well; 0: never. `successor_ms`: how long
    after a death or a stop the next one starts.
    """

    seed: int
    machines: tuple[int, ...]
    skews_ms: tuple[int, ...]
    rival_at_ms: int = 0
    successor_ms: int = 1_000
    records: int = 6
    patient: bool = True
    in_parts: bool = False
    slow_worker_ms: int = 0

    def shares(self, number: int) -> bool:
        """Whether another driver of this machine could prove that the process is dead."""
        return self.machines.count(self.machines[number]) > 1


PLAIN = Shape(seed=0, machines=(0,) * (DRIVERS_MAX + 1), skews_ms=(0,) * (DRIVERS_MAX + 1))


def shape_of(seed: int) -> Shape:
    chance = Random(f"shape {seed}")
    few = DRIVERS_MAX + 1
    machines = chance.choice([(0,) * few, tuple(range(few)), tuple(chance.randrange(2) for _ in range(few))])
    skews = [chance.choice([0, 0, chance.randint(-AHEAD_MAX_MS, AHEAD_MAX_MS)]) for _ in range(few)]
    if chance.random() < 0.1:
        skews[chance.randrange(DRIVERS_MAX)] = chance.choice([-1, 1]) * FAR_MS
    return Shape(
        seed=seed,
        machines=machines,
        skews_ms=tuple(skews),
        rival_at_ms=chance.choice([0, 0, 0, chance.randint(1, 20_000)]),
        successor_ms=chance.choice([200, 1_000, 5_000, 20_000]),
        patient=chance.random() < 0.6,
        in_parts=chance.random() < 0.5,
        slow_worker_ms=chance.choice([0, 0, 3_000]),
    )


DRIVERS_STEPS = (
    *("put lock", "look at lock", "put clock", "look at clock"),
    *("list timeline", "read completed", "read inflight", "read plan"),
    *("look at requested", "put requested", "look at inflight", "put inflight", "delete inflight"),
    *(
        "put decision",
        "look at decision",
        "read decision",
        "put verdict",
        "look at verdict",
        "read verdict",
        "list decisions",
    ),
    *("put metadata", "look at completed", "put completed", "delete completed", "delete requested"),
    *("look at plan", "put plan", "put rollback", "look at rollback", "delete plan", "delete rollback"),
    *("look at rolled back", "put rolled back", "look at heartbeat", "put heartbeat", "delete heartbeat"),
    *("look at file", "delete file", "walk markers", "walk table", "delete all below markers"),
    *("list uploads below table", "abort upload of file"),
)
"""What a driver asks for: the act, and the sort of path (`step_of`)."""
WORKERS_STEPS = (
    *("put marker", "put file", "begin upload of file", "upload part of file", "complete upload of file"),
    *("look at file", "abort upload of file"),
)
_SORTS = (
    (re.compile(r"decided/\d+\.verdict$"), "verdict"),
    (re.compile(r"decided/\d+$"), "decision"),
    (re.compile(r"decided$"), "decisions"),
    (re.compile(r"table_lock\.json$"), "lock"),
    (re.compile(r"\.lockstep_clock$"), "clock"),
    (re.compile(r"metadata/"), "metadata"),
    (re.compile(r"\.heartbeat/"), "heartbeat"),
    (re.compile(r"\.rollback\.requested$"), "plan"),
    (re.compile(r"\.rollback\.inflight$"), "rollback"),
    (re.compile(r"timeline/\d+_\d+\.rollback$"), "rolled back"),
    (re.compile(r"\.commit\.requested$"), "requested"),
    (re.compile(r"timeline/\d+\.inflight$"), "inflight"),
    (re.compile(r"timeline/\d+_\d+\.commit$"), "completed"),
    (re.compile(r"timeline$"), "timeline"),
    (re.compile(r"\.marker\.CREATE$"), "marker"),
    (re.compile(r"\.temp\b"), "markers"),
    (re.compile(r"\.parquet$"), "file"),
    (re.compile(r"^$"), "table"),
)


def step_of(request: Request) -> str:
    """The sort of a request, by which strikes name it."""
    return f"{request.act} {_sort_of(_NUMBERS.sub('0', request.path))}"


_NUMBERS = re.compile(r"(?<=\d)\d+")


@lru_cache(maxsize=4_096)
def _sort_of(path: str) -> str:
    return next((sort for pattern, sort in _SORTS if pattern.search(path)), path)


def strikes_of(seed: int, focus: Sequence[str] = ()) -> tuple[Strike, ...]:
    """One to five, most of them at drivers: at one of these steps of theirs, or at any of all."""
    chance = Random(f"strikes {seed}")
    found = []
    for _ in range(chance.choice([1, 2, 2, 3, 3, 4, 5])):
        who = chance.choice(["d1", "d1", "d1", "d2", "d2", "d3", "w"])
        steps: Sequence[str] = focus or DRIVERS_STEPS
        if who == "w":
            who, steps = f"w{chance.randint(1, 8)}", WORKERS_STEPS
        found.append(
            struck(
                chance, who, chance.choice(steps), chance.choice([1, 1, 1, 2, 2, 3, 4]), chance.choice(KINDS)
            )
        )
    return tuple(found)


def struck(chance: Random, who: str, step: str, at: int, kind: Kind) -> Strike:
    """With what is left open drawn."""
    ms = lead_ms = 0
    if kind in PAUSES:
        ms = chance.choice(PAUSES_MS)
    elif kind in (Kind.LATE, Kind.DIES_SENT):
        ms = chance.choice([chance.randint(1, 1_500), chance.randint(1, LATE_MAX_MS)])
    if kind in SLEEPS:
        lead_ms = chance.choice(LEADS_MS)
    return Strike(who, step, at, kind, ms, lead_ms)
