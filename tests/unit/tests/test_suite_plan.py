"""Who plays which test next, and what is said of it: each test once, and nothing costly started twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.suite import took
from tests.suite.plan import SECOND_SPARK_S, Lane, Plan, Test, lane_of
from tests.suite.progress import Progress, readable, short

PROCESSES = 3


def some(lane: Lane, file: str, count: int, takes_s: float = 1.0) -> list[Test]:
    return [Test(file=f"tests/{file}.py", lane=lane, takes_s=takes_s)] * count


MIXED = [
    *some(Lane.PURE, "unit/test_a", 3),
    *some(Lane.SPARK, "integration/test_b", 2),
    *some(Lane.PARTS, "integration/test_c", 2, 20.0),
    *some(Lane.PURE, "unit/test_d", 2),
    *some(Lane.SPARK, "integration/test_e", 2),
    *some(Lane.PARTS, "faults/test_f", 2, 60.0),
]


def all_of(plan: Plan, process: int) -> list[int]:
    found = []
    while (number := plan.next(process)) is not None:
        found.append(number)
    return found


@pytest.mark.parametrize(
    ("file", "fixtures", "markers", "lane"),
    [
        ("tests/integration/test_x.py", ["spark", "broker"], ["integration"], Lane.SPARK),
        ("tests/integration/test_x.py", ["tmp_path"], [], Lane.PARTS),
        ("tests/conformance/test_x.py", ["broker"], [], Lane.PARTS),
        ("tests/conformance/test_x.py", ["s3"], [], Lane.PARTS),
        ("tests/faults/test_x.py", ["tmp_path"], ["integration"], Lane.PARTS),
        ("tests/faults/test_x.py", ["tmp_path"], [], Lane.PURE),
        ("tests/simulation/test_x.py", [], ["timeout"], Lane.PURE),
    ],
)
def test_what_a_test_asks_for_decides_its_lane(
    file: str, fixtures: list[str], markers: list[str], lane: Lane
) -> None:
    assert lane_of(file, fixtures, markers) is lane


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(20))
def test_every_test_is_played_once_whoever_asks_when_and_whoever_is_lost(processes: int, seed: int) -> None:
    chance = Random(seed)
    tests = [
        Test(
            file=f"tests/f{chance.randrange(9)}.py", lane=chance.choice([*Lane]), takes_s=chance.random() * 50
        )
        for _ in range(chance.randrange(200))
    ]
    plan, played = Plan(tests, processes), []
    while plan.left:
        process = chance.randrange(processes)
        number = plan.next(process, only_pure=chance.random() < 0.3)
        if number is None:
            continue
        if chance.random() < 0.05:
            plan.give_back(process, [number])
        else:
            played.append(number)
    assert sorted(played) == list(range(len(tests)))


def test_one_process_has_the_spark_one_starts_parts_and_one_computes() -> None:
    plan = Plan(MIXED, PROCESSES)
    assert [MIXED[plan.next(process) or 0].lane for process in range(PROCESSES)] == [*Lane]


def test_the_tests_of_a_file_that_share_something_stay_together_in_their_order() -> None:
    assert all_of(Plan(MIXED, PROCESSES), 0)[:4] == [3, 4, 9, 10]
    assert all_of(Plan(MIXED, PROCESSES), 2)[:5] == [0, 1, 2, 7, 8]


def test_tests_of_a_group_are_played_by_one_process_one_after_the_other() -> None:
    alone = some(Lane.PARTS, "integration/test_c", 2)
    group = [replace(one, together="cluster") for one in some(Lane.PARTS, "integration/test_d", 2)]
    plan = Plan([*alone, *group], PROCESSES)
    assert [plan.next(1), plan.next(2), plan.next(1), plan.next(2)] == [2, 0, 3, 1]


def test_what_takes_longest_is_started_first_and_each_by_whoever_is_free() -> None:
    plan = Plan(MIXED, PROCESSES)
    assert [plan.next(1), plan.next(2), plan.next(1)] == [11, 0, 12]


def test_in_a_slice_the_commit_orders_tests_that_start_components() -> None:
    tests = [Test(file=f"tests/integration/test_{n}.py", lane=Lane.PARTS, takes_s=float(n)) for n in range(9)]
    orders = {tuple(all_of(Plan(tests, PROCESSES, shuffled_by=f"{commit}"), 0)) for commit in range(20)}
    assert len(orders) == 20 and all(sorted(order) == list(range(9)) for order in orders)
    assert all_of(Plan(tests, PROCESSES, shuffled_by="7"), 0) == all_of(
        Plan(tests, PROCESSES, shuffled_by="7"), 0
    )


def test_who_has_nothing_left_helps_the_others() -> None:
    assert sorted(all_of(Plan(MIXED, PROCESSES), 0)) == list(range(len(MIXED)))
    assert {MIXED[number].lane for number in all_of(Plan(MIXED, PROCESSES), 1)} == {Lane.PARTS, Lane.PURE}
    assert {MIXED[number].lane for number in all_of(Plan(MIXED, PROCESSES), 2)} == {Lane.PARTS, Lane.PURE}


def test_a_second_spark_is_started_only_where_much_is_left_for_the_first() -> None:
    little = some(Lane.SPARK, "integration/test_b", 2, SECOND_SPARK_S / 2)
    assert Plan(little, PROCESSES).next(1) is None
    assert Plan([*little, *some(Lane.SPARK, "integration/test_c", 1)], PROCESSES).next(1) == 0


def test_until_the_real_parts_can_be_started_everybody_computes() -> None:
    plan = Plan(MIXED, PROCESSES)
    assert [plan.next(process, only_pure=True) for process in range(PROCESSES)] == [0, 7, None]
    assert plan.next(2) == 11


def test_progress_weighs_tests_by_what_they_take_and_is_whole_only_at_the_end() -> None:
    progress = Progress(MIXED)
    assert progress.line(0, []).startswith("[  0 %] 0 of 13 tests, 0 s gone, about 94 s left")
    progress.done(11)
    progress.done(11)
    assert progress.line(30, ["tests/faults/test_f.py::test_x"]).startswith(
        "[ 35 %] 1 of 13 tests, 30 s gone"
    )
    for number in set(range(13)) - {0}:
        progress.done(number)
    assert progress.percent == 99
    progress.done(0)
    assert progress.line(200, []) == "[100 %] 13 of 13 tests, 3 min gone, done"


def test_the_time_left_follows_the_speed_of_the_run() -> None:
    slow, quick = Progress(MIXED), Progress(MIXED)
    slow.done(11)
    quick.done(11)
    assert slow.left_s(600) > 5 * quick.left_s(20)


def test_times_and_names_are_short() -> None:
    assert [readable(one) for one in (3.2, 119, 120, 900)] == ["3 s", "119 s", "2 min", "15 min"]
    assert short("tests/unit/test_a.py::test_x[1]") == "unit/test_a: x[1]"
    assert len(short("tests/unit/test_a.py::" + "x" * 500)) < 60


def test_what_files_took_is_kept_only_where_all_was_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seconds = tmp_path / "took.json", {number: 2.0 for number in range(len(MIXED))}
    monkeypatch.delenv("RECORD", raising=False)
    took.write(MIXED, seconds, path)
    assert not path.exists()
    monkeypatch.setenv("RECORD", "1")
    took.write(MIXED, {0: 2.0}, path)
    assert not path.exists()
    took.write(MIXED, {**seconds, 0: 5.0}, path)
    assert took.read(path)["tests/unit/test_a.py"] == 3.0
    assert took.described("tests/unit/test_a.py", Lane.PURE, "", took.read(path)).takes_s == 3.0
    path.write_text("[]")
    assert took.read(path) == {} == took.read(tmp_path / "none")
