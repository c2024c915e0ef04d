"""Write the suite's numbers, and the marks of figures typed by hand, into README, CONTRIBUTING and docs.

Run by `make docs`, tested for staleness.

No document has a number of the suite as typed text. It is in a span, `<!-- n:schedules -->8,000<!-- /n -->`,
and comes from the code that plays it, or from recorded evidence. A figure that was copied from evidence by
hand has a span for its mark (`tools/staleness.py`): `<!-- age:NAME OF THE EVIDENCE --><!-- /age -->`.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import evidence  # noqa: E402
from tests.faults.play import load_catalogue  # noqa: E402
from tests.seeded import BUGS  # noqa: E402
from tests.simulation.bucket.mutants import MUTANTS as BUGS_ON_A_STORE  # noqa: E402
from tests.simulation.exhaustive import all_points  # noqa: E402
from tests.simulation.mutants import MUTANTS  # noqa: E402
from tests.simulation.walked import SCHEDULES  # noqa: E402
from tools.places import fill_spans  # noqa: E402
from tools.staleness import commit_mark  # noqa: E402

NUMBER, AGE = "n", "age"
"""Kinds of spans."""


def documents() -> list[Path]:
    """Return the documents that may have spans."""
    others = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "spec" / "README.md")
    return [*others, *sorted((ROOT / "docs").glob("*.md"))]


def updated(document: str, name_of_it: str) -> str:
    """Return a document with its spans filled. Raises `ValueError` for an unknown name."""
    return fill_spans(fill_spans(document, NUMBER, number, name_of_it), AGE, _age_mark, name_of_it)


@functools.cache
def number(name: str) -> str:
    """Return the text of a number. Raises `KeyError` for an unknown name."""
    return NUMBERS[name]()


def _age_mark(name: str) -> str:
    kept = evidence.read(name)
    if kept is None:
        raise KeyError(name)
    return commit_mark(kept)


# --- the numbers --------------------------------------------------------------------------------------


def _makefile_default(variable: str) -> int:
    """Return the default of a variable of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(rf"^{variable} \?= (\d+)$", makefile, re.MULTILINE)
    if found is None:
        raise ValueError(f"Makefile has no default of {variable}: a number of the documents is read from it.")
    return int(found[1])


def _schedules_to_the_rarest_bug() -> int:
    kept = evidence.read("mutants")
    return kept["figures"]["most_schedules"] if kept is not None else 0


def _test_count(tier: str) -> str:
    """Return how many tests a tier of the suite has; without a number where that is not recorded."""
    kept = evidence.read("suite")
    counted = kept["figures"]["tiers"].get(tier) if kept is not None else None
    return f"{counted['tests']:,} tests" if counted else "tests"


NUMBERS: Mapping[str, Callable[[], str]] = {
    "schedules": lambda: f"{SCHEDULES:,}",
    "soak_schedules": lambda: f"{_makefile_default('SCHEDULES'):,}",
    "soak_inputs": lambda: f"{_makefile_default('INPUTS'):,}",
    "schedules_to_the_rarest_bug": lambda: f"{_schedules_to_the_rarest_bug():,}",
    "small_world_points": lambda: f"{len(all_points()):,}",
    "bugs_of_the_cores": lambda: f"{len(MUTANTS):,}",
    "bugs_of_the_shells": lambda: f"{len(BUGS):,}",
    "bugs_on_an_object_store": lambda: f"{len(BUGS_ON_A_STORE):,}",
    "scenarios": lambda: f"{len(load_catalogue()):,}",
    "tests_in_make_test": lambda: _test_count("test"),
    "tests_in_all": lambda: _test_count("all"),
}
"""Text by name. `tests_in_…` have their noun, so that a sentence is whole without the number."""


def main() -> None:
    for path in documents():
        document = path.read_text(encoding="utf-8")
        new = updated(document, str(path.relative_to(ROOT)))
        if new != document:
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
