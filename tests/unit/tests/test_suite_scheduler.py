"""The scheduler with processes that only note what they receive."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.suite.plan import Lane, Plan, Test
from tests.suite.scheduler import Scheduler


class Node:
    """A process that runs no test."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.received: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, numbers: Sequence[int]) -> None:
        self.received += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def test_once_the_time_is_up_a_process_ends_with_the_tests_that_it_has() -> None:
    is_up = False
    tests = [Test(file=f"tests/unit/table/test_{n}.py", lane=Lane.PURE, takes_s=1.0) for n in range(9)]
    nodes: list[Any] = [Node(0), Node(1)]
    scheduler = Scheduler(2, lambda _: tests, lambda _: True, lambda: is_up)
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, [test.file for test in tests])
    scheduler.schedule()
    assert [len(node.received) for node in nodes] == [2, 2]

    scheduler.mark_test_complete(nodes[0], nodes[0].received[0])
    assert len(nodes[0].received) == 3
    is_up = True
    scheduler.mark_test_complete(nodes[0], nodes[0].received[1])
    assert len(nodes[0].received) == 3 and nodes[0].shutting_down
    received = nodes[0].received + nodes[1].received
    assert sorted(received + scheduler.not_run) == list(range(9))
    assert len(scheduler.not_run) == 4


def started(lane: Lane, numbers: Sequence[int], count: int) -> tuple[Scheduler, list[Any]]:
    tests = [Test(file=f"tests/integration/test_{n}.py", lane=lane, takes_s=1.0) for n in range(count)]
    nodes: list[Any] = [Node(number) for number in numbers]
    scheduler = Scheduler(len(nodes), lambda _: tests, lambda _: True, lambda: False)
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, [test.file for test in tests])
    scheduler.schedule()
    return scheduler, nodes


def play_all(scheduler: Scheduler, node: Any) -> None:
    for number in node.received:  # grows while it is read
        scheduler.mark_test_complete(node, number)


def test_the_process_that_replaces_the_one_with_the_spark_runs_the_tests_that_are_left() -> None:
    scheduler, (spark, *others) = started(Lane.SPARK, range(3), 6)
    assert [node.shutting_down for node in others] == [True, True]
    for node in others:
        assert scheduler.remove_node(node) is None
    assert scheduler.remove_node(spark) == "tests/integration/test_0.py"
    assert not scheduler.tests_finished

    replacing: Any = Node(3)
    scheduler.add_node(replacing)
    scheduler.add_node_collection(replacing, scheduler.collection)
    assert scheduler.collection_is_completed, "xdist waits for all processes, and two have ended"
    scheduler.schedule()
    play_all(scheduler, replacing)
    assert sorted(replacing.received) == [1, 2, 3, 4, 5]
    assert scheduler.tests_finished and replacing.shutting_down


def test_a_process_that_was_replaced_before_the_tests_began_had_the_spark() -> None:
    scheduler, nodes = started(Lane.SPARK, (1, 2, 3), 6)
    assert [len(node.received) for node in nodes] == [0, 0, 2]
    play_all(scheduler, nodes[2])
    assert scheduler.tests_finished


def test_the_last_process_that_takes_tests_takes_those_of_a_spark_too() -> None:
    scheduler, (spark, other, crashed) = started(Lane.PURE, range(3), 6)
    scheduler.plan = Plan([Test(file="tests/integration/test_0.py", lane=Lane.SPARK, takes_s=1.0)], 3)
    spark.shutting_down = other.shutting_down = True
    for number in list(crashed.received):
        scheduler.mark_test_complete(crashed, number)
    assert crashed.received[-1] == 0 and crashed.shutting_down


def test_a_process_that_collects_other_tests_later_ends_the_run() -> None:
    scheduler, (first, _) = started(Lane.PURE, range(2), 6)
    scheduler.remove_node(first)
    replacing: Any = Node(2)
    scheduler.add_node(replacing)
    with pytest.raises(RuntimeError, match="different tests, for example x"):
        scheduler.add_node_collection(replacing, [*scheduler.collection, "x"])


def test_tests_of_the_whole_tree_run_though_the_time_is_up() -> None:
    files = [f"tests/unit/{name}.py" for name in ("table/test_a", "test_tiers", "table/test_b", "test_house")]
    tests = [Test(file=file, lane=Lane.PURE, takes_s=1.0) for file in files]
    node: Any = Node(0)
    scheduler = Scheduler(1, lambda _: tests, lambda _: True, lambda: True)
    scheduler.add_node(node)
    scheduler.add_node_collection(node, files)
    scheduler.schedule()
    play_all(scheduler, node)
    assert (node.received, scheduler.not_run) == ([1, 3], [0, 2])
    assert scheduler.tests_finished and node.shutting_down
