"""What each file of tests takes, about: for the order of tests and the time that is left.

Nothing is proved by it, and a file of which nothing is known is played like all others.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.suite.plan import USUALLY_S, Lane, Test

RECORDED = Path(__file__).with_name("took.json")
"""By file: seconds for one of its tests, on two cores with nothing else to do."""
LEAST_S = 0.002


def read(path: Path = RECORDED) -> dict[str, float]:
    """Empty where there is none, or none that can be read."""
    try:
        return {str(file): float(seconds) for file, seconds in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def described(file: str, lane: Lane, together: str, took: Mapping[str, float]) -> Test:
    return Test(file=file, lane=lane, takes_s=took.get(file, USUALLY_S[lane]), together=together)


def write(tests: Sequence[Test], seconds: Mapping[int, float], path: Path = RECORDED) -> None:
    """Keep the mean of each file that was played. With RECORD=1, and if all selected tests were played."""
    if os.environ.get("RECORD") != "1" or len(seconds) < len(tests):
        return
    by_file: dict[str, list[float]] = defaultdict(list)
    for number, test in enumerate(tests):
        by_file[test.file].append(seconds[number])
    means = {file: round(max(LEAST_S, sum(all_) / len(all_)), 3) for file, all_ in sorted(by_file.items())}
    kept = dict(sorted({**read(path), **means}.items()))
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
