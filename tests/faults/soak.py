"""Hours of load with few faults, and what the processes hold meanwhile: memory, open files, threads.

`python -m tests.faults.soak --minutes 60`. Workers are killed and paused, the broker is restarted and paused,
the driver is paused only, so that its processes live long enough to be watched.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Spark's JVM is forked from processes that use gRPC; gRPC's fork handlers break that.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click
import psutil

from lockstep.brokers.local import Broker
from tests import evidence
from tests.faults import processes
from tests.faults.blows import Victim, kill, pause
from tests.faults.cycles import DRAIN_S, WEIGHTS, Tally, conclude, said, verify
from tests.faults.play import make_stage, prepare, say
from tests.faults.processes import Processes
from tests.faults.stage import Stage
from tests.faults.steps import AIMED

SAMPLE_EVERY_S = 10.0
REPORT_EVERY_S = 300.0
WARM_S = 600.0
"""What a process takes in its first ten minutes is not growth."""
PAUSE_S = 12.0
GROWTH_MAX_PERCENT = 5.0
WINDOW = 30
"""Samples, five minutes, whose mean is compared: what a pause of seconds makes a process catch up with is no
growth. A process needs two such windows after its first ten minutes to be judged."""
FLAT_TOLERANCE = 0.1
"""Open files and threads at the end, against the highest of the first ten minutes."""

PLAN: tuple[tuple[Victim, str], ...] = (
    (Victim.WORKER, "kill"),
    (Victim.BROKER, "pause"),
    (Victim.DRIVER, "pause"),
    (Victim.WORKER, "pause"),
    (Victim.BROKER, "kill"),
    (Victim.COORDINATOR, "pause"),
)
"""Drawn from. One worker of two is killed at most every dozen minutes, so that others grow old."""


@dataclass(slots=True)
class Line:
    """One process: (seconds since it was first seen, resident bytes, open files, threads)."""

    kind: str
    pid: int
    began_s: float
    samples: list[tuple[float, int, int, int]] = field(default_factory=list)

    def warm(self) -> list[tuple[float, int, int, int]]:
        return [one for one in self.samples if one[0] >= WARM_S]

    @property
    def judged(self) -> bool:
        return len(self.warm()) >= 2 * WINDOW

    def growth_percent(self) -> float:
        """Of resident memory, from the tenth minute on: the last window's mean against the first one's."""
        sizes = [one[1] for one in self.warm()]
        return (sum(sizes[-WINDOW:]) / sum(sizes[:WINDOW]) - 1) * 100

    def flat(self, column: int) -> bool:
        """Whether the end is not above the highest of the first ten minutes, but for a tenth."""
        young = max(one[column] for one in self.samples if one[0] < WARM_S)
        old = [one[column] for one in self.warm()][-WINDOW:]
        return sum(old) / len(old) <= young * (1 + FLAT_TOLERANCE)


class Watcher:
    """Samples of every process, a line for each of its lives."""

    def __init__(self) -> None:
        self.lines: dict[tuple[str, int], Line] = {}
        self._next_s = 0.0

    def sample(self, found: Processes) -> None:
        now = time.monotonic()
        if now < self._next_s:
            return
        self._next_s = now + SAMPLE_EVERY_S
        for kind, pid in _kinds(found):
            line = self.lines.setdefault((kind, pid), Line(kind=kind, pid=pid, began_s=now))
            try:
                process = psutil.Process(pid)
                with process.oneshot():
                    line.samples.append(
                        (
                            now - line.began_s,
                            process.memory_info().rss,
                            process.num_fds(),
                            process.num_threads(),
                        )
                    )
            except psutil.NoSuchProcess:
                continue

    def figures(self) -> dict[str, Any]:
        """The worst of each kind."""
        by_kind: dict[str, list[Line]] = defaultdict(list)
        for line in self.lines.values():
            if line.samples:
                by_kind[line.kind].append(line)
        figures: dict[str, Any] = {}
        for kind, lines in by_kind.items():
            judged = [line for line in lines if line.judged]
            figures[f"{kind}_processes"] = len(lines)
            figures[f"{kind}_processes_watched_long_enough"] = len(judged)
            figures[f"{kind}_memory_mb_max"] = round(max(s[1] for x in lines for s in x.samples) / 2**20)
            figures[f"{kind}_open_files_max"] = max(s[2] for x in lines for s in x.samples)
            figures[f"{kind}_threads_max"] = max(s[3] for x in lines for s in x.samples)
            if judged:
                figures[f"{kind}_memory_growth_percent"] = round(max(x.growth_percent() for x in judged), 1)
                figures[f"{kind}_open_files_flat"] = all(x.flat(2) for x in judged)
                figures[f"{kind}_threads_flat"] = all(x.flat(3) for x in judged)
        return figures

    def complaints(self) -> list[str]:
        found = []
        for name, value in self.figures().items():
            if name.endswith("growth_percent") and value >= GROWTH_MAX_PERCENT:
                found.append(f"{name} is {value}")
            if name.endswith("_flat") and not value:
                found.append(f"{name}: no")
        return found


def _kinds(found: Processes) -> Iterable[tuple[str, int]]:
    yield "jvm", found.jvm
    yield "driver", found.driver
    for pid in found.workers:
        yield "worker", pid


def _watch_for(stage: Stage, watcher: Watcher, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        found = processes.look(stage.current)
        if isinstance(found, Processes):
            watcher.sample(found)
        assert stage.current.process.poll() is None, stage.current.text()[-4_000:]
        time.sleep(min(2.0, max(0.0, until - now)))


def _soak(stage: Stage, watcher: Watcher, tally: Tally, *, minutes: float, every_s: float, seed: int) -> None:
    chance = random.Random(seed)
    began = reported = time.monotonic()
    deck: list[tuple[Victim, str]] = []
    while (left_s := began + minutes * 60 - time.monotonic()) > 0:
        _watch_for(stage, watcher, min(every_s, left_s))
        if left_s <= every_s:
            break
        if not deck:
            deck = chance.sample(PLAN, len(PLAN))
        victim, kind = deck.pop()
        if kind == "kill":
            blow = kill(stage, victim, chance.choice(AIMED))
        else:
            blow = pause(stage, victim, chance.choice(AIMED), seconds=PAUSE_S)
        tally.blows.append(blow)
        said(stage, f"{(time.monotonic() - began) / 60:5.1f} min", blow, PAUSE_S)
        if time.monotonic() - reported > REPORT_EVERY_S:
            reported = time.monotonic()
            verify(stage, tally)
            say(f"           {watcher.figures()}")


@click.command()
@click.option("--minutes", type=float, default=60.0, show_default=True)
@click.option(
    "--every", "every_s", type=float, default=120.0, show_default=True, help="Seconds between faults."
)
@click.option("--per-second", type=int, default=5_000, show_default=True, help="Records a second.")
@click.option("--seed", type=int, help="Default: a random one, which is printed.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(minutes: float, every_s: float, per_second: int, seed: int | None, folder: Path | None) -> None:
    """A long run with few faults; leaves soak.json."""
    prepare()
    seed = secrets.randbelow(2**32) if seed is None else seed
    folder = folder or Path(tempfile.mkdtemp(prefix="soak-"))
    command = f"python -m tests.faults.soak --minutes {minutes:g} --per-second {per_second} --seed {seed}"
    say(f"seed {seed}: {command}")
    say(f"working in {folder}")
    tally, watcher = Tally(), Watcher()
    with Broker(folder / "broker", heap_mb=768) as broker:
        stage = make_stage(broker, folder / "pipeline", f"soak-{seed}")
        stage.weights = WEIGHTS
        try:
            stage.start(per_second=per_second)
            _soak(stage, watcher, tally, minutes=minutes, every_s=every_s, seed=seed)
            conclude(stage, tally, drain_s=DRAIN_S)
        except (AssertionError, OSError) as error:
            tally.failure = str(error)
            say(f"failed: {error}")
        finally:
            stage.close()
    complaints = watcher.complaints()
    figures = {"minutes": minutes, "seed": seed, **tally.figures(), **watcher.figures()}
    for name, value in figures.items():
        say(f"  {name:40} {value}")
    for complaint in complaints:
        say(f"not as promised: {complaint}")
    passed = tally.passed and not complaints
    evidence.write("soak", command=command, passed=passed, figures=figures)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
