"""What the bench of file sizes makes of what it saw."""

from __future__ import annotations

from typing import Any

import pytest

from bench.queries import ratio
from bench.sizes import PERFECT, SERVED, problems

RUNS = [
    {"table": table, "round": number, "seconds": seconds, "answer": [7, 1.0]}
    for number, (served, perfect) in enumerate([(9.0, 1.0), (1.2, 1.0), (2.0, 2.0), (3.3, 3.0)], -1)
    for table, seconds in ((SERVED, served), (PERFECT, perfect))
]
WELL: dict[str, Any] = {
    "rows": 7,
    "records": 7,
    "digests": {SERVED: ["1"], PERFECT: ["1"]},
    "runs": RUNS,
    "settled": {"worst": 2},
}


def test_a_query_is_compared_round_by_round_without_those_that_warm_up() -> None:
    found = ratio(RUNS, SERVED, PERFECT)
    assert found is not None
    assert (found["min"], found["median"], found["max"]) == pytest.approx((1.0, 1.1, 1.2))


def test_a_run_in_which_every_record_is_there_once_and_few_files_are_small_is_well() -> None:
    assert problems(WELL) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rows": 8}, "the table has 8 rows of 7 records"),
        ({"digests": {SERVED: ["1"], PERFECT: ["2"]}}, "the perfect copy holds other rows"),
        ({"runs": [{**RUNS[0], "answer": [6, 1.0]}]}, "did not count every record once"),
        ({"settled": {"worst": 3}}, "3 small files are left in a table partition"),
    ],
)
def test_whatever_is_not_as_it_should_be_is_said(changes: dict[str, Any], sentence: str) -> None:
    (found,) = problems({**WELL, **changes})
    assert sentence in found
