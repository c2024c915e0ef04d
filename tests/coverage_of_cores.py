"""How much of both cores the tests walk: branches, and (state, event) pairs.

`python -m tests.coverage_of_cores` runs, in a process of its own, the unit tests of the cores, the golden
transcripts and a fixed set of simulated schedules, and writes the figures. This module is imported before the
measurement begins: it must not import the cores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
CORES = {
    "coordinator": (
        *("core", "machine", "hearing", "members", "election", "rounds", "transaction", "pace", "voices"),
        *("owners", "orders", "appointments", "times", "opening", "events", "transitions"),
    ),
    "participant": (
        *("core", "machine", "hearing", "intake", "work", "repeats", "rounds", "rejects_max", "events"),
        "transitions",
    ),
}
TESTS = (
    "golden/test_*.py",
    "unit/coordinator/test_*.py",
    "unit/participant/test_*.py",
    "unit/cores/test_transitions.py",
)
LEFT_OUT = "some_life"
"""Random lives of the cores: most of the time, and no branch or pair that the other tests do not walk."""
SCHEDULES = 100
"""Simulated schedules: 500 walk no branch more."""
MEASURING_MAX_S = 900
COMMAND = "python -m tests.coverage_of_cores"


@dataclass(frozen=True, slots=True)
class Figures:
    """Percentages of branches; `missing`: the branches that nothing walked, as `file:line->line`.

    `state_event_pairs` of `state_event_pairs_possible` were given to a core by some test or schedule.
    """

    coordinator_branch_percent: float
    participant_branch_percent: float
    state_event_pairs: int
    state_event_pairs_possible: int
    schedules: int
    missing: tuple[str, ...]
    pairs_missing: tuple[str, ...]
    excluded_lines: int


def measure() -> Figures:
    """Run it all in a process of its own. Raises `RuntimeError` where a test or a schedule fails there."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "tests.coverage_of_cores", "--into", str(out)]
        ran = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=MEASURING_MAX_S, check=False
        )
        if ran.returncode or not out.exists():
            raise RuntimeError(f"{' '.join(command)} failed:\n{ran.stdout[-4_000:]}\n{ran.stderr[-4_000:]}")
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        lists = {name: tuple(found.pop(name)) for name in ("missing", "pairs_missing")}
        return Figures(**found, **lists)


class Pairs:
    """Which (state, event) pairs reach the cores, noted at their one entry."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.possible: set[str] = set()

    def watch(self) -> None:
        """From here on, every event that any test or schedule gives to a core is noted."""
        from control_topic.messages import TYPE_NAMES
        from coordinator import events as coordinator_events
        from coordinator import transitions as coordinator_transitions
        from coordinator.core import Coordinator
        from participant import events as participant_events
        from participant import transitions as participant_transitions
        from participant.core import Participant

        for name, core, events, transitions in (
            ("coordinator", Coordinator, coordinator_events, coordinator_transitions),
            ("participant", Participant, participant_events, participant_transitions),
        ):
            shell = [kind for kind in vars(events).values() if _is_kind_of(kind, events.Event)]
            kinds = {*shell, *TYPE_NAMES} - {events.Event, events.Received}
            self.possible |= {_pair(name, state, kind) for state in transitions.State for kind in kinds}
            self._watch(name, core)

    def _watch(self, name: str, core: type[Any]) -> None:
        handle = core.handle

        def noting(this: Any, event: Any) -> Any:
            message = getattr(event, "message", None)
            self.seen.add(_pair(name, this.state, type(event if message is None else message.body)))
            return handle(this, event)

        core.handle = noting


def _is_kind_of(kind: object, event: type[Any]) -> bool:
    return isinstance(kind, type) and issubclass(kind, event)


def _pair(core: str, state: Any, kind: type[Any]) -> str:
    return f"{core}: {kind.__name__} in {state.name}"


def _measure_here(out: Path) -> int:
    measured = coverage.Coverage(branch=True, data_file=None, source_pkgs=list(CORES), config_file=False)
    measured.start()
    pairs = Pairs()
    pairs.watch()
    files = [str(file) for pattern in TESTS for file in sorted((ROOT / "tests").glob(pattern))]
    failed = pytest.main(["-q", "-p", "no:cacheprovider", "-k", f"not {LEFT_OUT}", *files])
    if failed:
        return int(failed)
    from tests.simulation.world import World

    for seed in range(SCHEDULES):
        World(seed).run()
    measured.stop()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        measured.json_report(outfile=str(report))
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    out.write_text(json.dumps(asdict(_figures(files, pairs))), encoding="utf-8")
    return 0


def _figures(files: dict[str, Any], pairs: Pairs) -> Figures:
    by_path = {Path(path).resolve(): found for path, found in files.items()}
    percent: dict[str, float] = {}
    missing: list[str] = []
    excluded = 0
    for core, modules in CORES.items():
        found = {f"{core}/{m}.py": by_path[ROOT / core / f"{m}.py"] for m in modules}
        walked = sum(f["summary"]["covered_branches"] for f in found.values())
        percent[core] = round(100 * walked / sum(f["summary"]["num_branches"] for f in found.values()), 2)
        excluded += sum(f["summary"]["excluded_lines"] for f in found.values())
        missing += [f"{n}:{a}->{b}" for n, f in found.items() for a, b in f["missing_branches"]]
        missing += [f"{n}:{line}" for n, f in found.items() for line in f["missing_lines"]]
    return Figures(
        coordinator_branch_percent=percent["coordinator"],
        participant_branch_percent=percent["participant"],
        state_event_pairs=len(pairs.seen & pairs.possible),
        state_event_pairs_possible=len(pairs.possible),
        schedules=SCHEDULES,
        missing=tuple(missing),
        pairs_missing=tuple(sorted(pairs.possible - pairs.seen)),
        excluded_lines=excluded,
    )


def main() -> int:
    """With `--into FILE`, measure in this process; without, in another, and keep the figures as evidence."""
    if sys.argv[1:2] == ["--into"]:
        return _measure_here(Path(sys.argv[2]))
    from tests import evidence

    figures = asdict(measure())
    whole = figures["state_event_pairs"] == figures["state_event_pairs_possible"]
    percents = (figures["coordinator_branch_percent"], figures["participant_branch_percent"])
    passed = whole and min(percents) >= 98
    evidence.write("coverage", command=COMMAND, passed=passed, figures=figures)
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
