"""Seeded worlds: no invariant breaks in any schedule, and a seed is all that a schedule depends on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pytest

from tests.simulation.crew import Crew, MemberLost, Task
from tests.simulation.seeds import kept_seeds
from tests.simulation.shrink import shrink
from tests.simulation.walked import SCHEDULES

SEEDS = int(os.environ.get("LOCKSTEP_SIMULATION_SEEDS", SCHEDULES))
"""A soak walks more. Each seeded bug is found at its recorded seed, which may lie beyond."""
TWICE = min(SEEDS, 500)
CHUNK = 100
FAILED_MAX = 3
"""So many failing seeds are made small and shown; then it stops."""

pytestmark = pytest.mark.timeout(1_800)  # a backstop only: every task of the crew has a bound of its own


def chunks(do: str, count: int) -> Iterator[Task]:
    for first in range(0, count, CHUNK):
        yield {"do": do, "first": first, "count": min(CHUNK, count - first)}


def must_pass(tasks: Iterable[Task]) -> int:
    """Walk the seeds of these tasks; how many they were."""
    walked, failed = 0, []
    with Crew() as crew:
        for task, found in crew.run(tasks):
            walked += task["count"]
            failed += [seed for seed, _sentence in found["failed"]]
            if len(failed) >= FAILED_MAX:
                break
    if failed:
        pytest.fail("\n\n".join(report(seed) for seed in sorted(failed)[:FAILED_MAX]), pytrace=False)
    return walked


def report(seed: int) -> str:
    small = shrink(seed)
    return small.report() if small is not None else f"seed {seed} failed in another process and passes here"


def test_no_invariant_breaks_in_any_schedule() -> None:
    assert must_pass(chunks("schedules", SEEDS)) == SEEDS


def test_no_seed_that_ever_found_something_finds_it_again() -> None:
    seeds = kept_seeds()
    assert must_pass({"do": "schedules", "first": seed, "count": 1} for seed in seeds) == len(seeds)


def test_a_kept_seed_says_what_it_found() -> None:
    assert all(found for found in kept_seeds().values())


def test_the_same_seed_gives_the_same_transcript_in_every_process() -> None:
    transcripts: list[dict[int, str]] = []
    for hash_seed in (1, 2):
        with Crew(hash_seed=hash_seed) as crew:
            found = [one for _task, one in crew.run(chunks("digests", TWICE))]
        digests = [(seed, digest, lines) for one in found for seed, digest, lines in one["digests"]]
        assert min(lines for _seed, _digest, lines in digests) > 20
        transcripts.append({seed: digest for seed, digest, _lines in digests})
    assert len(transcripts[0]) == TWICE
    differ = [seed for seed in transcripts[0] if transcripts[0][seed] != transcripts[1][seed]]
    assert not differ, "these seeds are not replayed as they were"
    assert len(set(transcripts[0].values())) == TWICE, "different seeds give the same transcript"


def test_a_process_that_dies_is_reported_with_its_task() -> None:
    with pytest.raises(MemberLost, match=r'"do": "crash".* ended with code 3'), Crew(1) as crew:
        list(crew.run([{"do": "crash"}]))


def test_a_process_that_hangs_is_ended_and_reported_with_its_task() -> None:
    message = r'"do": "hang".* did not answer within 0.5 s'
    with pytest.raises(MemberLost, match=message), Crew(1, task_max_s=0.5) as crew:
        list(crew.run([{"do": "hang"}]))
