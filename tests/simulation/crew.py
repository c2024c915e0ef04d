"""Many schedules over all cores: processes of our own, which are given tasks as lines of JSON and answer so.

A process that dies or hangs is reported with the task that it was given.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TASK_MAX_S = 300.0
"""A task takes seconds. This long even on a machine that has much else to do, and it hangs."""

COLLECT_EVERY = 10
"""Number of seeds between two collections: a world that is dissolved leaves few cycles."""
WATCH_EVERY = 10
"""One seed in so many notes the (state, event) pairs that its cores meet, which costs time too."""

NICE = 5
"""It computes all the time: what waits for real parts beside it goes first."""

Task = dict[str, Any]
Found = dict[str, Any]


class MemberLost(Exception):
    """A process died or hung. The message names its task."""


class Member:
    """One process of the crew."""

    def __init__(self, task_max_s: float, hash_seed: int | None) -> None:
        self._task_max_s = task_max_s
        own = {} if hash_seed is None else {"PYTHONHASHSEED": str(hash_seed)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.simulation.crew"],
            cwd=ROOT,
            env={**os.environ, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for whoever asked, who then closes the crew.
            start_new_session=True,
        )

    def do(self, task: Task) -> Found:
        """Raises `MemberLost` where no answer comes."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self._task_max_s, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            in_time = timer.is_alive()
            timer.cancel()
        if not line:
            code = process.wait()
            why = f"ended with code {code}" if in_time else f"did not answer within {self._task_max_s:g} s"
            raise MemberLost(f"the process that was given {json.dumps(task)} {why}")
        found: Found = json.loads(line)
        return found

    def close(self) -> None:
        """At once, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # of a task that it died over
                    pipe.close()


class Crew:
    """A context manager: its processes end with it. `hash_seed`: what their dictionaries of text go by."""

    def __init__(
        self, jobs: int | None = None, *, task_max_s: float = TASK_MAX_S, hash_seed: int | None = None
    ) -> None:
        self.jobs = jobs or os.cpu_count() or 1
        self._task_max_s = task_max_s
        self._hash_seed = hash_seed
        self._threads = ThreadPoolExecutor(self.jobs)
        self._own = threading.local()
        self._members: list[Member] = []
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_exc: object) -> None:
        with self._lock:
            self._closed = True
            for member in self._members:
                member.close()
        self._threads.shutdown(cancel_futures=True)

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Found]]:
        """Every task with what it found, as they end. Raises `MemberLost` for the first that is lost."""
        waiting = iter(tasks)
        under_way: dict[Future[Found], Task] = {}
        while True:
            while len(under_way) < self.jobs and (task := next(waiting, None)) is not None:
                under_way[self._threads.submit(self._do, task)] = task
            if not under_way:
                return
            done, _rest = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield under_way.pop(future), future.result()

    def _do(self, task: Task) -> Found:
        with self._lock:
            if self._closed:
                raise MemberLost("the crew is closed")
            if not hasattr(self._own, "member"):
                self._own.member = Member(self._task_max_s, self._hash_seed)
                self._members.append(self._own.member)
        member: Member = self._own.member
        return member.do(task)


# --- a member's side ------------------------------------------------------------------------------


def schedules(first: int, count: int) -> Found:
    """Walk the seeds `first`, `first + 1`, …; what failed, and which (state, event) pairs the cores met."""
    from tests.simulation.pairs import WATCHED, seen
    from tests.simulation.world import ScheduleFailed, World

    failed: list[tuple[int, str]] = []
    events = 0
    for seed in range(first, first + count):
        world = World(seed, cores=WATCHED if seed % WATCH_EVERY == 0 else None)
        try:
            world.run()
        except ScheduleFailed as error:
            failed.append((seed, str(error)))
        events += world.scheduler.events
        world.dissolve()
        if seed % COLLECT_EVERY == 0:
            gc.collect()
    return {"failed": failed, "events": events, "pairs": seen()}


def digests(first: int, count: int) -> Found:
    """The digest of each seed's transcript, and how many lines it has."""
    from tests.simulation.world import ScheduleFailed, World

    found: list[tuple[int, str, int]] = []
    for seed in range(first, first + count):
        world = World(seed, record=True)
        try:
            world.run()
        except ScheduleFailed as error:
            world.note("world", "failed", str(error))
        found.append((seed, world.transcript.digest(), len(world.transcript)))
        gc.collect()
    return {"digests": found}


def points(numbers: list[int]) -> Found:
    """Walk these points of the exhaustive small world."""
    from tests.simulation.exhaustive import all_points, walk
    from tests.simulation.hazards import Spot

    known = all_points()
    failed: list[tuple[int, str]] = []
    events = 0
    spots: set[Spot] = set()
    for number in numbers:
        found = walk(known[number])
        events += found.events
        spots.update(found.spots)
        if found.error:
            failed.append((number, found.error))
        gc.collect()
    return {"failed": failed, "events": events, "spots": sorted(spots)}


def mutant(name: str) -> Found:
    """Search for one seeded bug from the first schedule on."""
    from tests.simulation.mutants import MUTANTS
    from tests.simulation.mutants.search import NotFound, find

    try:
        return {"found": asdict(find(MUTANTS[name], after_each=gc.collect))}
    except NotFound as error:
        return {"lived": str(error)}


def crash() -> Found:
    """For the crew's own test."""
    os._exit(3)


def hang() -> Found:
    """For the crew's own test."""
    threading.Event().wait()
    return {}


def keep_modules() -> None:
    """Load every module that a world needs, and take all that is there out of the collector's sight.

    Worlds are cyclic: each is collected when it is over. A collection visits every object that is not frozen.
    A module that the first world imports after `gc.freeze` costs each later collection four times its work.
    """
    import tests.simulation.exhaustive
    import tests.simulation.pairs  # noqa: F401
    from table.widening import united_ddl

    united_ddl("a INT", ["a INT, b INT"])  # loads the parser, which imports its dialects as they are used
    gc.collect()
    gc.freeze()


TASKS: dict[str, Callable[..., Found]] = {
    f.__name__: f for f in (schedules, digests, points, mutant, crash, hang)
}


def main() -> int:
    """Answer tasks until there are none."""
    os.nice(NICE)
    gc.disable()
    keep_modules()
    for line in sys.stdin:
        task = json.loads(line)
        found = TASKS[task.pop("do")](**task)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
