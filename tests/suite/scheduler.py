"""The plan, as pytest-xdist asks for it: it gives each process two tests at a time, the one it plays and the
next, which it has to know to tear down what that one does not share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdist.workermanage import WorkerController

from tests.suite.plan import Plan, Test

AHEAD = 2


class Scheduler:
    """One run. `describe`: node ids to tests, once they are collected. `parts_ready`: whether what the real
    parts need is there; waits for it where it is given True. `time_is_up`: no further test is to start.
    `shuffled_by`: see `Plan`.

    Each process has a place in the plan. The process that replaces a crashed one takes its place."""

    def __init__(
        self,
        processes: int,
        describe: Callable[[Sequence[str]], Sequence[Test]],
        parts_ready: Callable[[bool], bool],
        time_is_up: Callable[[], bool],
        *,
        shuffled_by: str = "",
    ) -> None:
        self._processes = processes
        self._describe = describe
        self._parts_ready = parts_ready
        self._time_is_up = time_is_up
        self._shuffled_by = shuffled_by
        self._pending: dict[WorkerController, list[int]] = {}
        self._places: dict[WorkerController, int] = {}
        self._collected: dict[WorkerController, list[str]] = {}
        self.collection: list[str] = []
        self.plan: Plan | None = None
        self.not_run: list[int] = []
        """Tests that did not start because the time was up, in the order of the collection."""

    # --- what xdist asks ------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[WorkerController]:
        return list(self._pending)

    @property
    def collection_is_completed(self) -> bool:
        return self.plan is not None or len(self._collected) >= self._processes

    @property
    def tests_finished(self) -> bool:
        if self.plan is None or self.plan.left:
            return False
        return all(len(pending) < AHEAD for pending in self._pending.values())

    @property
    def has_pending(self) -> bool:
        return self.plan is not None and (self.plan.left > 0 or any(self._pending.values()))

    def add_node(self, node: WorkerController) -> None:
        self._pending[node] = []
        free = [place for place in range(self._processes) if place not in self._places.values()]
        self._places[node] = number_of(node) if number_of(node) in free else min(free)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        self._collected[node] = list(collection)
        if self.plan is not None:
            must_be_equal(self.collection, self._collected[node])

    def schedule(self) -> None:
        """Give out what can be. Raises `RuntimeError` where two processes have collected different tests."""
        if self.plan is None:
            first, *others = self._collected.values()
            for other in others:
                must_be_equal(first, other)
            self.collection = first
            self.plan = Plan(self._describe(first), self._processes, shuffled_by=self._shuffled_by)
        self._feed(*self.nodes)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        self._pending[node].remove(item_index)
        self._feed(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """The test that it was playing when it died, None where it ended in order."""
        pending, place = self._pending.pop(node), self._places.pop(node)
        self._collected.pop(node, None)
        if not pending or self.plan is None:
            return None
        playing, *following = pending
        self.plan.give_back(place, following)
        self._feed(*self.nodes)
        return self.collection[playing]

    def mark_test_pending(self, item: str) -> None:
        raise NotImplementedError("no test is played twice")

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        raise NotImplementedError("no test is taken back")

    # --- what the report asks -------------------------------------------------------------------------

    def playing(self) -> list[str]:
        """The node id of what each process plays, in their order. Another thread may ask."""
        pending = {number_of(node): list(numbers) for node, numbers in list(self._pending.items())}
        return [self.collection[numbers[0]] for _, numbers in sorted(pending.items()) if numbers]

    def _feed(self, *nodes: WorkerController) -> None:
        """Each gets one test before any gets its second, which nobody else can play then."""
        assert self.plan is not None
        if self._time_is_up():
            self.not_run += self.plan.drop()
        ready = self._parts_ready(False)
        for ahead in range(1, AHEAD + 1):
            for node in nodes:
                while not node.shutting_down and len(self._pending[node]) < ahead:
                    number = self.plan.next(
                        self._places[node], only_pure=not ready, is_last=self._is_last(node)
                    )
                    if number is not None:
                        self._pending[node].append(number)
                        node.send_runtest_some([number])
                    elif ready:
                        node.shutdown()
                    else:
                        ready = self._parts_ready(True)

    def _is_last(self, node: WorkerController) -> bool:
        return all(other is node or other.shutting_down for other in self._pending)


def must_be_equal(first: Sequence[str], second: Sequence[str]) -> None:
    """Raises `RuntimeError` if two processes have collected different tests."""
    if list(first) != list(second):
        different = sorted({*first} ^ {*second})
        which = f"for example {different[0]}" if different else "in another order"
        raise RuntimeError(
            f"two processes have collected different tests, {which}: "
            "is a parameter random, or was a file changed while the tests ran?"
        )


def number_of(node: WorkerController) -> int:
    """xdist calls them gw0, gw1, …"""
    return int(node.gateway.id.removeprefix("gw"))
