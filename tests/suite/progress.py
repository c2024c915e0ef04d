"""How far the tests are, and how long they still take. Pure: what has ended, and when, comes from outside."""

from __future__ import annotations

from collections.abc import Sequence

from tests.suite.plan import Lane, Test

ABREAST = 1.8
"""So many seconds of tests a second, until this run says more."""
SHORT = 48
TRUST_S = 60.0
"""How long a run has to last until its own speed counts as much as that."""


class Progress:
    """Tests weigh what they are known to take, not one each."""

    def __init__(self, tests: Sequence[Test]) -> None:
        self._tests = tests
        self._all_s = sum(test.takes_s for test in tests) or 1.0
        self._done_s = 0.0
        self._done: set[int] = set()

    def done(self, number: int) -> None:
        if number not in self._done:
            self._done.add(number)
            self._done_s += self._tests[number].takes_s

    @property
    def percent(self) -> int:
        """100 only when all is done."""
        if len(self._done) == len(self._tests):
            return 100
        return min(99, int(100 * self._done_s / self._all_s))

    def left_s(self, elapsed_s: float) -> float:
        """About; at the speed of this run, once it has shown one."""
        speed = (self._done_s + ABREAST * TRUST_S) / (elapsed_s + TRUST_S)
        return max(0.0, self._all_s - self._done_s) / speed

    def line(self, elapsed_s: float, playing: Sequence[str]) -> str:
        """One line: percent, tests, time gone and left, and what is played."""
        left = f"about {readable(self.left_s(elapsed_s))} left" if self.percent < 100 else "done"
        counted = f"{len(self._done):,} of {len(self._tests):,} tests"
        text = f"[{self.percent:3} %] {counted}, {readable(elapsed_s)} gone, {left}"
        return f"{text} · {' · '.join(short(name) for name in playing)}" if playing else text

    def parts(self) -> str:
        """How many tests of which kind there are."""
        counts = {lane: sum(test.lane is lane for test in self._tests) for lane in Lane}
        kinds = {Lane.PURE: "compute", Lane.SPARK: "share a Spark", Lane.PARTS: "start real parts"}
        return f"{len(self._tests):,} tests: " + ", ".join(f"{counts[one]:,} {kinds[one]}" for one in kinds)


def readable(seconds: float) -> str:
    """To the second below two minutes, to the minute above."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def short(nodeid: str) -> str:
    """`tests/integration/test_x.py::test_y[z]` as `integration/test_x: y[z]`, cut off where it is long."""
    file, _, name = nodeid.partition("::")
    text = f"{file.removeprefix('tests/').removesuffix('.py')}: {name.removeprefix('test_')}"
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"
