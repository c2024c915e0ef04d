"""Rows from worker to worker: streams of gRPC and what the simulator has for them come to the same."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest

from control_topic.messages import SourcePartition
from participant import events as ev
from participant.errors import HandingBroken
from participant.exchange.writer import ExchangingWriter
from tests.harness import await_that
from tests.simulation.exchange import SEEDS
from tests.simulation.exchange import Exchange as SimulatedExchange
from tests.simulation.world import World
from tests.unit.participant.exchange.crew import DEADLINE_S, Crew, started
from tests.unit.table.hudi.files.test_base_writer import rows

BROKEN = "broken"
FOR_EVER_MS = 1_000_000


class Side(Protocol):
    """Two workers, a and b."""

    def open(self, name: str, transaction: str) -> None:
        """It has heard START, which names both."""

    def write(self, name: str, count: int) -> None:
        """It has read so many rows, of many table partitions."""

    def finish(self, name: str) -> None:
        """It has heard END."""

    def came_to(self, name: str) -> tuple[int, int] | str:
        """Rows that it handed over and took, once it has all of the other's; or `BROKEN`."""

    def is_reached(self, name: str) -> None:
        """The other's stream has begun there."""

    def hears(self, name: str) -> bool:
        """Whether it learns, before END, that what is open is of no use any more."""

    def give_up(self, name: str) -> None:
        """It discards what is open."""

    def die(self, name: str) -> None: ...


class Real:
    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._writers: dict[str, ExchangingWriter] = {}
        self._pool = ThreadPoolExecutor(len(crew.names))
        self._done: dict[str, Future[object]] = {}
        self._wrote = 0

    def open(self, name: str, transaction: str) -> None:
        self._writers[name] = self._crew.writer(name, transaction)

    def write(self, name: str, count: int) -> None:
        self._wrote += 1
        with suppress(HandingBroken):  # which `came_to` tells
            self._writers[name].write(rows(count, days=20, topic=f"{name}{self._wrote}"))

    def finish(self, name: str) -> None:
        self._done[name] = self._pool.submit(self._writers[name].close)

    def came_to(self, name: str) -> tuple[int, int] | str:
        writer = self._writers[name]
        try:
            self._done[name].result(DEADLINE_S)
        except HandingBroken:
            writer.discard()
            return BROKEN
        return sum(writer.handed.values()), sum(writer.taken.values())

    def is_reached(self, name: str) -> None:
        inbox = self._crew.exchanges[name]._inbox
        await_that("stream from the other", lambda: inbox._streaming, deadline_s=DEADLINE_S)

    def hears(self, name: str) -> bool:
        """As the plane does when it is told that something has arrived."""
        try:
            await_that("word of it", lambda: self._writers[name].take(), deadline_s=DEADLINE_S)
        except HandingBroken:
            self._writers[name].discard()
            return True
        return False

    def give_up(self, name: str) -> None:
        self._writers[name].discard()

    def die(self, name: str) -> None:
        self._crew.exchanges[name].close()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Simulated:
    """A world in which nothing happens but this."""

    def __init__(self) -> None:
        self.world = World(SEEDS[0])
        network = self.world.network
        assert network is not None
        network.breaks = network.loses = network.shy = 0.0
        driver = self.world.start_driver()
        driver.pause(FOR_EVER_MS)  # so that nobody begins anything
        made = [self.world.start_worker(driver, slot) for slot in (8, 9)]
        self._workers = dict(zip("ab", made, strict=True))
        self._takers = {one.incarnation: one.incarnation for one in made}
        self._next = 0

    def _exchange(self, name: str) -> SimulatedExchange:
        exchange = self._workers[name].plane.exchange
        assert exchange is not None
        return exchange

    def open(self, name: str, transaction: str) -> None:
        self._exchange(name).open(ev.Open(transaction=transaction, instant="1", takers=self._takers))

    def write(self, name: str, count: int) -> None:
        partition = SourcePartition("events", "ab".index(name))
        self._exchange(name).divided([(partition, self._next + n, 0) for n in range(count)])
        self._next += count

    def finish(self, name: str) -> None:
        self._exchange(name).finish()

    def came_to(self, name: str) -> tuple[int, int] | str:
        exchange = self._exchange(name)
        self.world.scheduler.run_until(self.world.scheduler.now_ms + 400)
        exchange.look()
        if exchange.broken:
            return BROKEN
        assert not exchange.awaited
        return sum(exchange.handed.values()), sum(exchange.taken.values())

    def is_reached(self, name: str) -> None:
        self.world.scheduler.run_until(self.world.scheduler.now_ms + 400)

    def hears(self, name: str) -> bool:
        self.world.scheduler.run_until(self.world.scheduler.now_ms + 400)
        return bool(self._exchange(name).broken)

    def give_up(self, name: str) -> None:
        self._exchange(name).close()

    def die(self, name: str) -> None:
        self._workers[name].alive = False


@pytest.fixture(params=["simulated", "real"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    if request.param == "simulated":
        yield Simulated()
        return
    with started(tmp_path, names=("a", "b")) as crew:
        real = Real(crew)
        yield real
        real.close()


def both(side: Side, transaction: str = "t1") -> None:
    for name in ("a", "b"):
        side.open(name, transaction)


def counts(side: Side) -> dict[str, tuple[int, int]]:
    found = {}
    for name in ("a", "b"):
        came = side.came_to(name)
        assert not isinstance(came, str)
        found[name] = came
    return found


def test_what_one_handed_over_the_other_has_taken(side: Side) -> None:
    both(side)
    for name in ("a", "b"):
        side.write(name, 300)
        side.write(name, 200)
        side.finish(name)
    found = counts(side)
    assert found["a"] == found["b"][::-1] and all(0 < handed < 500 for handed, _ in found.values())


def test_who_has_read_nothing_takes_all_the_same(side: Side) -> None:
    both(side)
    side.write("a", 300)
    for name in ("a", "b"):
        side.finish(name)
    found = counts(side)
    assert found["a"][1] == found["b"][0] == 0 and found["a"][0] == found["b"][1] > 0


def test_what_comes_before_its_taker_has_heard_start_is_taken_once_it_has(side: Side) -> None:
    side.open("a", "t1")
    side.write("a", 300)
    side.finish("a")
    side.open("b", "t1")
    side.finish("b")
    found = counts(side)
    assert found["a"][0] == found["b"][1] > 0


def test_where_one_has_given_up_the_other_has_nothing_to_wait_for(side: Side) -> None:
    both(side)
    side.give_up("b")
    side.write("a", 300)
    side.finish("a")
    assert side.came_to("a") == BROKEN


def test_where_one_is_gone_the_other_has_nothing_to_wait_for(side: Side) -> None:
    both(side)
    side.die("b")
    side.write("a", 300)
    side.finish("a")
    assert side.came_to("a") == BROKEN


def test_where_one_gives_up_the_other_hears_of_it_before_end(side: Side) -> None:
    both(side)
    side.is_reached("a")
    side.give_up("b")
    assert side.hears("a")


def test_where_one_has_given_up_the_other_hears_of_it_though_it_opens_later(side: Side) -> None:
    side.open("b", "t1")
    side.give_up("b")
    side.open("a", "t1")
    assert side.hears("a")


def test_rows_of_a_transaction_that_is_over_are_refused(side: Side) -> None:
    both(side)
    side.give_up("b")
    side.open("b", "t2")
    side.write("a", 300)
    side.finish("a")
    assert side.came_to("a") == BROKEN


def test_a_transaction_that_follows_knows_nothing_of_the_one_before(side: Side) -> None:
    both(side)
    side.write("a", 300)
    for name in ("a", "b"):
        side.give_up(name)
    both(side, "t2")
    side.write("b", 100)
    for name in ("a", "b"):
        side.finish(name)
    found = counts(side)
    assert found["b"] == found["a"][::-1] and found["a"][0] == 0
