"""The scheduler with processes that only note what they receive."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tests.suite.plan import Lane, Test
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
    tests = [Test(file=f"tests/unit/test_{n}.py", lane=Lane.PURE, takes_s=1.0) for n in range(9)]
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
