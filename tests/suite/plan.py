"""Which process plays which test next. Pure: knows tests by their numbers, and processes by theirs.

A test belongs to one of three lanes, by what it needs. Each process has a lane of its own, and helps in the
others once that is empty: what computes fills the gaps of what waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from random import Random

UNIT_FOLDER = PurePosixPath("tests/unit")
REAL_FOLDER = "integration"
COMPONENTS = frozenset({"broker", "s3", "hdfs", "gs", "azure", "apicurio", "metastore", "browser"})
"""Fixtures that start a real component."""
SECOND_SPARK_S = 90.0
"""Another process starts a Spark of its own where so much is left for the first. Its start costs 20 s."""


class Lane(StrEnum):
    """`SPARK`: shares one Spark, warm, in one process. `PARTS`: starts processes of its own, and waits for
    them most of the time. `PURE`: computes."""

    SPARK = "spark"
    PARTS = "parts"
    PURE = "pure"


USUALLY_S = {Lane.SPARK: 4.0, Lane.PARTS: 25.0, Lane.PURE: 0.1}
"""What a test takes of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Test:
    """`file`: with `/`, from the root of the repository. `takes_s`: about; alone on the machine. `together`:
    tests of the same name are played by one process, one after the other."""

    __test__ = False

    file: str
    lane: Lane
    takes_s: float
    together: str = ""


def lane_of(file: str, fixtures: Collection[str], markers: Collection[str]) -> Lane:
    """By what the test asks for. A folder of real parts holds tests of pure functions, too."""
    if "spark" in fixtures:
        return Lane.SPARK
    if (
        COMPONENTS & set(fixtures)
        or "integration" in markers
        or REAL_FOLDER in PurePosixPath(file).parts[:-1]
    ):
        return Lane.PARTS
    return Lane.PURE


def of_whole_tree(file: str) -> bool:
    """Whether a file of tests lies directly in tests/unit. `make check` always runs such a file."""
    return PurePosixPath(file).parent == UNIT_FOLDER


def preferences(process: int, processes: int) -> tuple[Lane, ...]:
    """The lanes of a process in its order: the first has the Spark, the last what computes."""
    if process == 0:
        return Lane.SPARK, Lane.PARTS, Lane.PURE
    if process == processes - 1 and processes > 2:
        return Lane.PURE, Lane.PARTS
    return Lane.PARTS, Lane.PURE


class Plan:
    """Tests by their numbers in the collection. A file's tests stay together, in their order, but for those
    that start real parts: each starts its own.

    `shuffled_by`: seed of the order of tests that start components; without it the longest comes first. With
    a time limit, the longest first would keep the short tests from ever running on a slow machine.
    """

    def __init__(self, tests: Sequence[Test], processes: int, *, shuffled_by: str = "") -> None:
        self.tests = tests
        self._processes = processes
        self._queues: dict[Lane, deque[deque[int]]] = {lane: deque() for lane in Lane}
        self._at: dict[int, deque[int]] = {}
        units: dict[tuple[Lane, str], deque[int]] = {}
        for number, test in enumerate(tests):
            alone = f"{number}" if test.lane is Lane.PARTS else test.file
            key = test.lane, test.together or alone
            if key not in units:
                units[key] = deque()
                self._queues[test.lane].append(units[key])
            units[key].append(number)
        parts = sorted(self._queues[Lane.PARTS], key=lambda unit: -self._takes_s(unit))
        if shuffled_by:
            Random(shuffled_by).shuffle(parts)
        self._queues[Lane.PARTS] = deque(parts)

    @property
    def left(self) -> int:
        """Tests that were not given out yet."""
        return sum(map(len, self._units()))

    def next(self, process: int, *, only_pure: bool = False, is_last: bool = False) -> int | None:
        """The test that this process plays next; None where none is left for it.

        `only_pure`: what the others need is not there yet. `is_last`: no other process takes tests any more.
        """
        unit = self._at.get(process)
        if not unit:
            queue = self._queue_for(process, only_pure, is_last)
            if queue is None:
                return None
            unit = self._at[process] = queue.popleft()
        return unit.popleft()

    def drop(self) -> list[int]:
        """Remove tests that were not given out, and return them in the order of the collection.

        Tests of the whole tree stay: without them a seeded bug that no test catches would pass `make check`.
        """
        dropped = sorted(n for unit in self._units() for n in unit if not of_whole_tree(self.tests[n].file))
        for unit in self._units():
            kept = [number for number in unit if of_whole_tree(self.tests[number].file)]
            unit.clear()
            unit.extend(kept)
        self._queues = {lane: deque(filter(None, queue)) for lane, queue in self._queues.items()}
        return dropped

    def give_back(self, process: int, numbers: Iterable[int]) -> None:
        """The process is lost: what it was to play is played by others."""
        left = [*numbers, *self._at.pop(process, ())]
        for number in reversed(left):
            self._queues[self.tests[number].lane].appendleft(deque([number]))

    def _queue_for(self, process: int, only_pure: bool, is_last: bool) -> deque[deque[int]] | None:
        if only_pure:
            return self._queues[Lane.PURE] or None
        for lane in preferences(process, self._processes):
            if self._queues[lane]:
                return self._queues[lane]
        spark = self._queues[Lane.SPARK]
        return spark if spark and (is_last or sum(map(self._takes_s, spark)) > SECOND_SPARK_S) else None

    def _units(self) -> Iterable[deque[int]]:
        yield from (unit for queue in self._queues.values() for unit in queue)
        yield from self._at.values()

    def _takes_s(self, unit: Iterable[int]) -> float:
        return sum(self.tests[number].takes_s for number in unit)
