"""The demo's shop: what it tells is what becomes of its orders, the same each time, and in order."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from lockstep.demo.shop import FOLLOWED, ITS_STATUSES, KEY, SCHEMA, Model, Shop, records
from participant.records.envelopes.debezium.decoder import DebeziumDecoder
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl

PARTITIONS = 4
SHOP = Shop(orders=500, changes=1_500)
Event = dict[str, Any]


def topic(shop: Shop = SHOP) -> list[tuple[int, Event, Event | None]]:
    """Source partition, key and value of each record, in order."""
    return [
        (one.source_partition, json.loads(one.key or b""), json.loads(one.value) if one.value else None)
        for one in records(shop, PARTITIONS)
    ]


def events(shop: Shop = SHOP) -> list[Event]:
    return [value for _, _, value in topic(shop) if value is not None]


@pytest.fixture(scope="module")
def model() -> Model:
    return SHOP.model(PARTITIONS)


def test_events_folded_by_debezium_s_rules_are_the_model(model: Model) -> None:
    rows: dict[int, tuple[Event, int]] = {}
    for _, key, value in topic():
        if value is None or value["op"] == "d":
            rows.pop(key["id"], None)
        else:
            rows[key["id"]] = (value["after"], 0 if value["op"] == "r" else value["source"]["lsn"])
    assert rows == {id_: (row.order._asdict(), row.position) for id_, row in model.rows.items()}


def test_an_event_s_before_is_the_after_of_the_row_s_last_event() -> None:
    known: dict[int, Event] = {}
    for _, key, value in topic():
        if value is not None:
            assert value["before"] == known.pop(key["id"], None)
            if value["after"] is not None:
                known[key["id"]] = value["after"]


def test_all_events_fit_the_schema_and_the_decoder_that_the_job_uses() -> None:
    values = [one.value for one in records(SHOP, PARTITIONS)]
    assert [*events()[0]["after"]] == parse_ddl(SCHEMA).names
    offsets = np.arange(len(values), dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition("orders", 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
    )
    decoded = DebeziumDecoder(parse_ddl(SCHEMA)).decode(batch)
    assert decoded.rejects == ()
    assert decoded.rows.num_rows == 2_000
    assert len(decoded.tombstones) == int(decoded.deleted.sum()) > 100


def test_the_snapshot_comes_first_and_then_as_many_changes_as_asked_for(model: Model) -> None:
    ops = [one["op"] for one in events()]
    assert set(ops[:500]) == {"r"}
    assert len(ops[500:]) == 1_500 and set(ops[500:]) == {"c", "u", "d"}
    assert Counter(ops) == model.ops
    assert [one["source"]["snapshot"] for one in events()[498:501]] == ["true", "last", "false"]


def test_log_positions_grow_from_change_to_change() -> None:
    positions = [one["source"]["lsn"] for one in events()[500:]]
    assert all(earlier < later for earlier, later in pairwise(positions))
    assert {one["source"]["lsn"] for one in events()[:500]} < set(range(positions[0]))


def test_records_of_one_order_are_in_one_source_partition_and_all_are_counted(model: Model) -> None:
    places: dict[int, set[int]] = {}
    for place, key, _ in topic():
        assert [*key] == [KEY]
        places.setdefault(key["id"], set()).add(place)
    assert all(len(found) == 1 for found in places.values())
    assert Counter(place for place, _, _ in topic()) == model.spread
    assert model.records == 2_000 + model.ops["d"]


def test_a_delete_is_followed_by_its_tombstone_and_some_rows_come_back() -> None:
    told = topic()
    gone, back = set[int](), 0
    for (_, key, value), (_, key_after, value_after) in pairwise(told):
        if value is not None and value["op"] == "d":
            assert (key_after, value_after) == (key, None)
            gone.add(key["id"])
        back += value is not None and value["op"] == "c" and key["id"] in gone
    assert back > 10


def test_the_same_shop_tells_the_same_to_the_last_byte_and_another_seed_something_else() -> None:
    assert list(records(SHOP, PARTITIONS)) == list(records(Shop(orders=500, changes=1_500), PARTITIONS))
    other = Shop(orders=500, changes=1_500, seed=8)
    assert list(records(SHOP, PARTITIONS)) != list(records(other, PARTITIONS))


def test_the_followed_order_goes_through_its_states_at_even_distances(model: Model) -> None:
    assert [one.status if one else "" for one in model.followed] == list(ITS_STATUSES)
    numbers = [number for number, (_, key, value) in enumerate(topic()) if key["id"] == FOLLOWED and value]
    steps = [later - earlier for earlier, later in pairwise(numbers[1:])]
    assert max(steps) < 1.5 * min(steps)


def test_a_shop_without_the_order_that_is_followed_is_refused() -> None:
    with pytest.raises(ValueError, match=f"no order {FOLLOWED}"):
        Shop(orders=FOLLOWED - 1, changes=1)
