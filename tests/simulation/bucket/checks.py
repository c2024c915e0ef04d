"""What must be so when a schedule is over: the last driver has opened the table, recovered and swept it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from table.chain import newest_of
from table.hudi.upkeep.candidates import MARKERS, instant_of_ours
from tests.simulation.bucket import timeline
from tests.simulation.bucket.errors import Violation
from tests.simulation.bucket.strikes import FAR_MS

if TYPE_CHECKING:
    from tests.simulation.bucket.world import World


def check(world: World) -> None:
    """Raise `Violation`."""
    clocks(world)
    metadata(world)
    nobody_waits(world)
    seen = timeline.view(_below(world, timeline.FOLDER))
    instants(world, seen)
    named = files(world, seen)
    rows(world, seen, named)
    nothing_is_left(world, seen, named)
    acknowledged(world, seen)


def require(held: bool, what: str, why: str) -> None:
    if not held:
        raise Violation(f"{what}: {why}")


def nobody_waits(world: World) -> None:
    last = world.drivers[-1]
    require(last.done == type(last).ENDS, "nobody waits for ever", f"the last driver {last.done or 'waits'}")


def instants(world: World, seen: timeline.View) -> None:
    """None is complete and rolled back, or about to be."""
    for phase, names in (
        ("is rolled back", seen.rollbacks),
        ("is to be rolled back", seen.pending_rollbacks),
    ):
        for name in names.values():
            target = timeline.plan_of(world.server.objects[f"{timeline.FOLDER}/{name}"].data)[0]
            require(
                target not in seen.complete, "completed or rolled back", f"{target} is complete and {phase}"
            )


def files(world: World, seen: timeline.View) -> list[str]:
    """Those that commits name, all of which are there."""
    found: list[str] = []
    for instant, name in seen.complete.items():
        data = world.server.objects[f"{timeline.FOLDER}/{name}"].data
        for path in timeline.commit_of(data, instant)[1]:
            require(path in world.server.objects, "no named file is missing", f"{path} of {name}")
            found.append(path)
    return found


def rows(world: World, seen: timeline.View, named: list[str]) -> None:
    """Every record once, as far as the newest commit says and to the end of what there was."""
    objects = world.server.objects
    states = [
        timeline.commit_of(objects[f"{timeline.FOLDER}/{name}"].data, instant)[0]
        for instant, name in seen.complete.items()
    ]
    newest = newest_of(states)
    there = Counter((p, offset) for path in named for p, offset in json.loads(objects[path].data))
    records = world.shape.records
    for p in (0, 1):
        for offset in range(records):
            times = there[p, offset]
            require(times == 1, "every record once", f"record {offset} of {p} is there {times} times")
    require(
        newest is not None and all(one == records for one in newest.offsets.values()),
        "every record once",
        f"the table stands at {newest}",
    )


def nothing_is_left(world: World, seen: timeline.View, named: list[str]) -> None:
    """No file, upload or marker that nobody names."""
    known = set(named)
    for path in world.server.objects:
        stray = instant_of_ours(path, ()) and path not in known
        require(not stray, "nothing is left for ever", f"file {path}")
        require(not path.startswith(f"{MARKERS}/"), "nothing is left for ever", f"marker {path}")
    for upload in world.server.uploads.values():
        require(False, "nothing is left for ever", f"upload of {upload.path}")


def acknowledged(world: World, seen: timeline.View) -> None:
    for instant, _ in world.acked:
        require(instant in seen.complete, "what was acknowledged stays", f"{instant} is gone")


def clocks(world: World) -> None:
    """Whose clock is too far from the store's has taken no lock."""
    for driver in world.drivers:
        if abs(driver.skew_ms) >= FAR_MS:
            require(not driver.lock.taken, "far clocks take no lock", f"{driver.name} has taken it")


def metadata(world: World) -> None:
    """Nobody has written to the metadata table between two puts of another's in one hold of the lock."""
    if world.beyond:
        return
    seen: list[str] = []
    for tenure, path, _ in world.server.landed:
        if not tenure or not path.startswith(".hoodie/metadata/"):
            continue
        if seen and seen[-1] == tenure:
            continue
        require(
            tenure not in seen, "one writer of the metadata table", f"{path} by {tenure} after {seen[-1:]}"
        )
        seen.append(tenure)


def _below(world: World, folder: str) -> list[str]:
    return [one.rpartition("/")[2] for one in world.server.objects if one.startswith(f"{folder}/")]
