"""Write the time profile of the test suite into CONTRIBUTING.md, from docs/evidence/suite.json.

Run by `make docs`. `RECORD=1 make test` and `RECORD=1 make test-all` record it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import evidence  # noqa: E402
from tools.cells import table  # noqa: E402
from tools.places import fill  # noqa: E402

DOCUMENT = ROOT / "CONTRIBUTING.md"
COMMANDS = {"test": "make test", "all": "make test-all"}
FILES_SHOWN = 8


def updated(document: str, tiers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the document with the times of these tiers. Raises `ValueError` if they have no place."""
    return fill(document, {"times": lambda: "\n".join(lines(tiers))}, DOCUMENT.name)


def lines(tiers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    recorded = {name: tiers[name] for name in COMMANDS if name in tiers}
    if not recorded:
        yield "No times are recorded yet."
        return
    rows = [
        (
            f"`{COMMANDS[name]}` at `{kept['commit']}`",
            f"{kept['tests']:,}",
            f"{kept['wall_s'] / 60:.1f} min",
            f"{kept['cpu_s'] / 60:.1f} min",
            " · ".join(f"{one['busy_s']} s" for one in kept["processes"]),
            ", ".join(f"{short(file)} {seconds:.0f} s" for file, seconds in longest(kept)),
        )
        for name, kept in recorded.items()
    ]
    yield from table(("command", "tests", "time", "CPU", "in tests, by process", "longest files"), rows)


def longest(kept: Mapping[str, Any]) -> list[tuple[str, float]]:
    return list(kept["files"].items())[:FILES_SHOWN]


def short(file: str) -> str:
    return f"`{file.removeprefix('tests/').removesuffix('.py')}`"


def main() -> None:
    kept = evidence.read("suite")
    tiers = kept["figures"]["tiers"] if kept is not None else {}
    DOCUMENT.write_text(updated(DOCUMENT.read_text(encoding="utf-8"), tiers), encoding="utf-8")


if __name__ == "__main__":
    main()
