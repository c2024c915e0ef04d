"""A shop's orders and what becomes of them, as change events of Debezium's PostgreSQL connector. Pure.

The shop has some orders when the connector reads them in its first snapshot. Then they change, new ones come,
and some go, to come back perhaps. All of it follows from the numbers in `Shop`: the same shop tells the same
events, to the last byte.

Source of the format: Debezium's documentation, "Data change events" of the PostgreSQL connector, for a table
with REPLICA IDENTITY FULL and the settings that docs/upserts.md names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from lockstep.demo.records import DemoRecord

SCHEMA = (
    "id BIGINT NOT NULL, customer BIGINT, status STRING, amount DECIMAL(10,2), rating INT, "
    "updated_at TIMESTAMP"
)
"""Spark DDL of an order."""

KEY = "id"
SEED = 7
OPENED = datetime(2026, 1, 5, 8)
DAY_US = 9 * 3_600 * 1_000_000
"""The changes of a shop are spread over nine hours, however many they are."""
FIRST_LSN = 24_023_128
LSN_STEP = (56, 400)
FIRST_TRANSACTION = 555

NEXT = {"placed": "paid", "paid": "packed", "packed": "shipped", "shipped": "delivered"}
STATUSES = (*NEXT, "delivered", "cancelled")
CREATED, RESTORED, CANCELLED, DISCOUNTED, FORGOTTEN = 0.14, 0.2, 0.1, 0.15, 0.3
"""How often: a change is a new order; a new order is one that had gone; a placed one is cancelled, or gets
another amount; a delivered one goes rather than being rated."""

FOLLOWED = 42
"""The order whose history is shown. What becomes of others is chance, its own changes are spread evenly."""
ITS_STATUSES = ("placed", "paid", "packed", "shipped", "returned", "", "placed", "paid", "shipped")
"""From the snapshot on. Empty: it is deleted, to be restored with the next."""


class Order(NamedTuple):
    """A row."""

    id: int
    customer: int
    status: str
    amount: str
    """A decimal of two places, as text."""

    rating: int | None
    updated_at: str
    """ISO 8601 in UTC, microseconds."""


class RowChange(NamedTuple):
    """One change of one row."""

    op: str
    """`r` read by the snapshot, `c` created, `u` updated, `d` deleted."""

    before: Order | None
    after: Order | None
    lsn: int
    transaction: int
    at_us: int
    """After `OPENED`."""

    @property
    def id(self) -> int:
        order = self.after or self.before
        assert order is not None
        return order.id


class Version(NamedTuple):
    """A row as it ends, and the position in the source's log that the table keeps with it."""

    order: Order
    position: int


@dataclass(slots=True)
class Model:
    """What the table must hold when every change is in it."""

    rows: dict[int, Version] = field(default_factory=dict)
    """By order id."""

    ops: Counter[str] = field(default_factory=Counter)
    """How many changes of each op."""

    spread: Counter[int] = field(default_factory=Counter)
    """By number of the source partition: the records that carry the changes, tombstones included."""

    followed: list[Order | None] = field(default_factory=list)
    """What became of FOLLOWED, None where it was gone."""

    @property
    def records(self) -> int:
        return self.spread.total()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """`orders` in the snapshot, FOLLOWED or more, then `changes`, from `seed`. Raises `ValueError`."""

    orders: int
    changes: int
    seed: int = SEED

    def __post_init__(self) -> None:
        if self.orders < FOLLOWED:
            raise ValueError(f"a shop of {self.orders} orders has no order {FOLLOWED}")

    def history(self) -> Iterator[RowChange]:
        """The snapshot, then the changes in the order of the database's log."""
        return _Day(self).history()

    def model(self, source_partitions: int) -> Model:
        """Everything that happens, taken together."""
        model = Model()
        for change in self.history():
            model.ops[change.op] += 1
            model.spread[change.id % source_partitions] += 2 if change.op == "d" else 1
            if change.after is None:
                del model.rows[change.id]
            else:
                model.rows[change.id] = Version(change.after, 0 if change.op == "r" else change.lsn)
            if change.id == FOLLOWED:
                model.followed.append(change.after)
        return model


class _Day:
    """The database while a shop's history is told once."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._chance = Random(shop.seed)
        self._rows: dict[int, Order] = {}
        self._ids: list[int] = []  # of the rows that chance may choose
        self._gone: list[Order] = []
        self._lsn = FIRST_LSN
        self._step_us = DAY_US // max(shop.changes, 1)
        self._its_turns = _turns(shop.changes)
        self._its_order = self._snapshot_row(FOLLOWED)._replace(status=ITS_STATUSES[0])

    def history(self) -> Iterator[RowChange]:
        for number in range(1, self._shop.orders + 1):
            order = self._its_order
            if number != FOLLOWED:
                self._rows[number] = order = self._snapshot_row(number)
                self._ids.append(number)
            yield RowChange("r", None, order, FIRST_LSN, FIRST_TRANSACTION, 0)
        last_id = self._shop.orders
        for number in range(self._shop.changes):
            at_us = (number + 1) * self._step_us
            status = self._its_turns.get(number)
            if status is not None:
                before, after = self._followed(status, at_us)
            elif not self._ids or self._chance.random() < CREATED:
                before, after = None, self._created(last_id + 1, at_us)
                last_id = max(last_id, after.id)
            else:
                before, after = self._changed(at_us)
            yield self._logged(number, before, after, at_us)

    def _logged(self, number: int, before: Order | None, after: Order | None, at_us: int) -> RowChange:
        self._lsn += self._chance.randrange(*LSN_STEP)
        op = "c" if before is None else "d" if after is None else "u"
        return RowChange(op, before, after, self._lsn, FIRST_TRANSACTION + 1 + number, at_us)

    def _snapshot_row(self, number: int) -> Order:
        chance = self._chance
        status = STATUSES[int(chance.random() * len(STATUSES))]
        return Order(number, chance.randrange(1, 20_000), status, self._amount(), None, _time(0))

    def _created(self, number: int, at_us: int) -> Order:
        chance = self._chance
        if self._gone and chance.random() < RESTORED:
            order = self._gone.pop()._replace(status="placed", rating=None, updated_at=_time(at_us))
        else:
            order = Order(number, chance.randrange(1, 20_000), "placed", self._amount(), None, _time(at_us))
        self._rows[order.id] = order
        self._ids.append(order.id)
        return order

    def _changed(self, at_us: int) -> tuple[Order, Order | None]:
        chance = self._chance
        place = int(chance.random() * len(self._ids))
        before = self._rows[self._ids[place]]
        after = self._next(before, at_us)
        if after is not None:
            self._rows[before.id] = after
            return before, after
        self._ids[place] = self._ids[-1]
        self._ids.pop()
        self._gone.append(self._rows.pop(before.id))
        return before, None

    def _next(self, order: Order, at_us: int) -> Order | None:
        """What becomes of an order; None where it goes."""
        fate = self._chance.random()
        if order.status == "cancelled" or (order.status == "delivered" and fate < FORGOTTEN):
            return None
        if order.status == "delivered":
            return order._replace(rating=1 + int(fate * 5), updated_at=_time(at_us))
        if order.status == "placed" and fate < CANCELLED:
            return order._replace(status="cancelled", updated_at=_time(at_us))
        if order.status == "placed" and fate < CANCELLED + DISCOUNTED:
            return order._replace(amount=self._amount(), updated_at=_time(at_us))
        return order._replace(status=NEXT[order.status], updated_at=_time(at_us))

    def _followed(self, status: str, at_us: int) -> tuple[Order | None, Order | None]:
        earlier = self._its_order
        self._its_order = earlier._replace(status=status, updated_at=_time(at_us))
        return (earlier if earlier.status else None), (self._its_order if status else None)

    def _amount(self) -> str:
        cents = int(self._chance.random() * 50_000) + 1
        return f"{cents // 100}.{cents % 100:02d}"


def _turns(changes: int) -> dict[int, str]:
    """Number of a change -> what becomes of the followed order with it."""
    later = ITS_STATUSES[1:]
    return {(place + 1) * changes // (len(later) + 1): status for place, status in enumerate(later)}


def _time(at_us: int) -> str:
    return (OPENED + timedelta(microseconds=at_us)).isoformat(timespec="microseconds") + "Z"


# --- as Debezium tells it -----------------------------------------------------------------------


def records(shop: Shop, source_partitions: int) -> Iterator[DemoRecord]:
    """The shop's history on a topic: records of one order are in one source partition, in order.

    A delete is followed by its tombstone, as by default.
    """
    opened_us = int((OPENED - datetime(1970, 1, 1)).total_seconds()) * 1_000_000
    for change in shop.history():
        number = change.id
        key, place = b'{"id":%d}' % number, number % source_partitions
        snapshot = "false" if change.op != "r" else "last" if number == shop.orders else "true"
        yield DemoRecord(place, key, _event(change, snapshot, opened_us + change.at_us))
        if change.op == "d":
            yield DemoRecord(place, key, None)


def _event(change: RowChange, snapshot: str, at_us: int) -> bytes:
    source = (
        f'{{"version":"3.0.0.Final","connector":"postgresql","name":"shop","ts_ms":{at_us // 1_000},'
        f'"snapshot":"{snapshot}","db":"shop","sequence":"[\\"{change.lsn - 8}\\",\\"{change.lsn}\\"]",'
        f'"ts_us":{at_us},"ts_ns":{at_us * 1_000},"schema":"public","table":"orders",'
        f'"txId":{change.transaction},"lsn":{change.lsn},"xmin":null}}'
    )
    told_us = at_us + 250_000  # the connector hears of it a moment later
    return (
        f'{{"before":{_row(change.before)},"after":{_row(change.after)},"source":{source},'
        f'"transaction":null,"op":"{change.op}","ts_ms":{told_us // 1_000},"ts_us":{told_us},'
        f'"ts_ns":{told_us * 1_000}}}'
    ).encode()


def _row(order: Order | None) -> str:
    if order is None:
        return "null"
    return (
        f'{{"id":{order.id},"customer":{order.customer},"status":"{order.status}","amount":"{order.amount}",'
        f'"rating":{"null" if order.rating is None else order.rating},"updated_at":"{order.updated_at}"}}'
    )
