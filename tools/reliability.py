"""Write what full runs found into docs/reliability.md. Run by `make docs`, tested for staleness.

The figures are those of docs/evidence/*.json, which the runs themselves write; the scenarios are the fault
tests' own catalogue, and so are the seeded bugs of the shells; the checkers are the simulator's. The prose
around them is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import evidence  # noqa: E402
from tests.faults.play import load_catalogue  # noqa: E402
from tests.faults.scenario import Scenario  # noqa: E402
from tests.seeded import BUGS  # noqa: E402
from tests.seeded.__main__ import recorded  # noqa: E402
from tests.seeded.holes import Hole  # noqa: E402
from tests.simulation.checkers import CHECKERS  # noqa: E402
from tools.places import fill  # noqa: E402
from tools.staleness import changed_mark, commit_mark, row_mark  # noqa: E402
from tools.suite_numbers import number  # noqa: E402

DOCUMENT = ROOT / "docs" / "reliability.md"
Row = Mapping[str, Any]
"""Recorded evidence, or a row of it."""

RUNS: Mapping[str, str] = {
    "simulation": "Random and exhaustive schedules",
    "bucket": "A table on an object store, and seeded bugs of it",
    "mutants": "Seeded bugs",
    "seeded": "Seeded bugs of the shells",
    "coverage": "Coverage of the cores",
    "spec": "Model",
    "faults": "Kills and pauses over one long load",
    "faults-upserts": "Kills and pauses over one long load of upserts, with compactions",
    "scenarios": "Every scenario once",
    "soak": "Soak",
    "fuzz": "Fuzzing",
    "fuzz-native": "Fuzzing of the native module, steered by coverage, with AddressSanitizer",
}
"""The evidence that full runs leave, in the order of the document."""


def updated(document: str) -> str:
    """The document with every generated part in its place."""
    return fill(document, PARTS, DOCUMENT.name)


# --- the parts --------------------------------------------------------------------------------------


def commands() -> str:
    """The commands that show it again, and how much each plays."""
    usual = f"{number('schedules')} random schedules, every seed that ever failed"
    soak = f"{number('soak_schedules')} schedules, {number('soak_inputs')} fuzzed inputs"
    played = {
        "make test": f"{usual}, a selection of faults",
        "make soak MINUTES=60": f"{soak}, faults under a continuous load",
        "make faults CYCLES=100": "kills and pauses at protocol steps, from a seed that is printed",
        "make spec": "the model, explored exhaustively",
    }
    return "\n".join(["```console", *(f"$ {one:<26} # {what}" for one, what in played.items()), "```"])


def checkers() -> str:
    """Each invariant, the checker that watches it in the simulator, the seeded bugs that it alone finds."""
    found = _found_by()
    first = f"seeded bugs that it was the first to find{commit_mark(evidence.read('mutants'))}"
    lines = [f"| | the simulator's checker | {first} |", "|---|---|---|"]
    for checker in sorted(CHECKERS, key=lambda one: _in_order(one.name)):
        path = f"{checker.__module__.replace('.', '/')}.py"
        bugs = ", ".join(found.get(checker.name, ())) or "–"
        lines.append(f"| {checker.name} | [{Path(path).name}](../{path}) | {bugs} |")
    return "\n".join(lines)


def seeded() -> str:
    """The seeded bugs of the shells by what they open again, each with the tests that find it."""
    kept, known = evidence.read("seeded"), recorded()
    lines = []
    for hole in Hole:
        lines += [f"**{hole.value}**", "", "| seeded bug | found by | |", "|---|---|---|"]
        for bug in (one for one in BUGS.values() if one.hole is hole):
            tests = "; ".join(map(_linked, bug.found_by))
            lines.append(f"| {bug.says} | {tests} | {_found(known.get(bug.name), kept)} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def scenarios() -> str:
    """The catalogue of the fault tests, with what was measured when each was played last."""
    kept = evidence.read("scenarios")
    measured = {one["name"]: one for one in evidence.rows("scenarios", "each")}
    groups: dict[str, list[Scenario]] = {}
    for scenario in load_catalogue().values():
        groups.setdefault(scenario.group, []).append(scenario)
    lines = []
    for group, members in groups.items():
        lines += [f"### {group[:1].upper()}{group[1:]}", ""]
        lines += ["| what is done | what is expected | recovers within | measured |", "|---|---|---|---|"]
        for one in members:
            limit = f"{one.limit_s:g} s" if one.limit_s is not None else "–"
            seen = _seen(measured.get(one.name), one.limit_s, kept)
            lines.append(f"| {one.fault} | {one.expected} | {limit} | {seen} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def figures() -> str:
    """The figures of the last full runs."""
    lines: list[str] = []
    for name, title in RUNS.items():
        found = evidence.read(name)
        lines += [f"### {title}", ""]
        if found is None:
            lines += ["No full run is recorded.", ""]
            continue
        verdict = "passed" if found["passed"] else "**failed**"
        lines += [
            f"`{found['command']}`: {verdict} on {found['at']}, commit `{found['commit']}`"
            f"{changed_mark(found)}, {found['cpus']} processors.",
            "",
            *_table(found["figures"]),
            "",
        ]
    return "\n".join(lines).rstrip()


PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "checkers": checkers,
    "seeded": seeded,
    "scenarios": scenarios,
    "figures": figures,
}


# --- pieces -------------------------------------------------------------------------------------------


def _found_by() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in evidence.rows("mutants", "mutants"):
        found.setdefault(one["found_by"], []).append(f"{one['bug']} ({one['found_after_schedules']:,})")
    return found


def _linked(test: str) -> str:
    """A test's sentence, which leads to its file."""
    file, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{file})"


def _found(row: Row | None, kept: Row | None) -> str:
    """That a seeded bug of a shell was found, and its commit."""
    return "not played yet" if row is None else f"found ({row['commit']}{row_mark(row, kept)})"


def _seen(measured: Row | None, limit_s: float | None, kept: Row | None = None) -> str:
    """The outcome and its commit; and the limit, where the lock's time to expire was allowed on top."""
    if measured is None:
        return "not played yet"
    recovery_s = measured.get("recovery_s")
    allowed = measured.get("limit_s")
    of = f" of {allowed:g} s, the lock's expiry included" if allowed != limit_s else ""
    seen = measured["outcome"] + (f", {recovery_s:.1f} s{of}" if recovery_s is not None else "")
    return f"{seen} ({measured['commit']}{row_mark(measured, kept)})"


def _table(found: Mapping[str, Any]) -> Iterator[str]:
    """Plain figures as two columns; what is a list of rows is shown elsewhere or as a table of its own."""
    plain = {name: value for name, value in found.items() if not isinstance(value, (list, dict))}
    if plain:
        yield from ("| | |", "|---|---|")
        yield from (f"| {name.replace('_', ' ')} | {_show(value)} |" for name, value in plain.items())
    for name, value in found.items():
        rows = [{"": key, **row} for key, row in value.items()] if isinstance(value, dict) else value
        if name in ELSEWHERE or not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
            continue
        columns = list(rows[0])
        yield from ("", f"{name.replace('_', ' ')}:", "")
        yield "| " + " | ".join(column.replace("_", " ") for column in columns) + " |"
        yield "|---" * len(columns) + "|"
        for row in rows:
            yield "| " + " | ".join(_show(row.get(column, "")) for column in columns) + " |"


ELSEWHERE = {"each", "mutants"}
"""Rows that other parts of the document show."""


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _in_order(name: str) -> tuple[int, int, str]:
    """S1 … S13, L1 … L3, then whatever has a name and no number."""
    matched = re.fullmatch(r"([SL])(\d+)", name)
    if matched is None:
        return 2, 0, name
    return "SL".index(matched[1]), int(matched[2]), name


def main() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(updated(document), encoding="utf-8")


if __name__ == "__main__":
    main()
