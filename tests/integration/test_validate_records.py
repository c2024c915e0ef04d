"""Test the check of the newest records in `lockstep validate` on a real broker."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from lockstep.brokers.local import Broker
from lockstep.config.load import from_mapping
from lockstep.validate import Check
from lockstep.validate_records import NAME, check_records
from tests.transactions import end_transaction

pytestmark = pytest.mark.integration
PARTITIONS = 3
SCHEMA = {"type": "struct", "fields": []}


def produce(broker: Broker, topic: str, values: list[Any], **settings: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for number, value in enumerate(values):
        raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic, raw, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


@pytest.fixture
def checked(broker: Broker, make_topic: Callable[..., str]) -> Callable[..., Check]:
    """Return a function that produces values to a new topic and checks it."""

    def check(values: list[Any], table: dict[str, Any] | None = None, **record: Any) -> Check:
        topic = make_topic(partitions=PARTITIONS)
        produce(broker, topic, values)
        config = from_mapping(
            {
                "pipeline": {"id": topic, "workers": 1},
                "source": {"bootstrap_servers": broker.bootstrap_servers, "topics": [topic]},
                "record": {"schema": "id BIGINT, city STRING", **record},
                "table": {"path": "file:///nothing/yet", "name": "t", **(table or {})},
            }
        )
        found = check_records(config, {"bootstrap.servers": broker.bootstrap_servers})
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        groups = admin.list_consumer_groups().result(30)
        assert config.group_id not in [group.group_id for group in groups.valid]
        assert found.name == NAME
        return found

    return check


def test_a_sample_of_rows_passes(checked: Callable[..., Check]) -> None:
    found = checked([{"id": n, "city": "x"} for n in range(30)] + [None] * 3)
    assert (found.verdict, found.detail) == ("ok", "30 of the newest records are rows")


def test_an_empty_topic_and_a_topic_of_tombstones_pass(checked: Callable[..., Check]) -> None:
    found = checked([])
    assert found.verdict == "ok" and found.detail.endswith(" yet")
    found = checked([None, None])
    assert found.verdict == "ok" and "no record with a value" in found.detail


@pytest.mark.parametrize(
    ("value", "record", "hint"),
    [
        ({"schema": SCHEMA, "payload": {"id": 1}}, {}, 'record.envelope = "connect" reads its payload'),
        ({"id": 1}, {"envelope": "connect"}, 'record.envelope = "none" reads it'),
        ({"before": None, "after": {"id": 1}, "op": "c", "source": {}}, {}, 'record.envelope = "debezium"'),
        (
            {"schema": SCHEMA, "payload": {"before": None, "after": {"id": 1}, "op": "c", "source": {}}},
            {"envelope": "connect"},
            'record.envelope = "debezium"',
        ),
        ({"ID": 1}, {}, "Names are told apart by case"),
    ],
)
def test_a_sample_without_a_row_fails_and_names_the_setting(
    checked: Callable[..., Check], value: Any, record: dict[str, Any], hint: str
) -> None:
    found = checked([value] * 9, **record)
    assert found.verdict == "failed" and hint in found.detail
    assert found.detail.startswith("9 of 9 of the newest records are no rows, the first at ")
    assert 'record.on_error = "dead_letter" continues without it' in found.detail


def test_a_sample_with_some_rejects_warns_and_names_the_first(
    checked: Callable[..., Check],
) -> None:
    found = checked([{"id": 1}, {"id": "x"}, b"no json", {"id": 2}, {"id": 3}], on_error="dead_letter")
    assert found.verdict == "warning" and found.detail.startswith("2 of 5 of the newest records are no rows")
    assert ":1@0" in found.detail or ":2@0" in found.detail
    assert found.detail.endswith("A run sends such a record to the dead-letter topic")


def test_change_events_are_decoded_as_a_worker_decodes_them(checked: Callable[..., Check]) -> None:
    def event(number: int) -> dict[str, Any]:
        source = {"connector": "postgresql", "lsn": number, "ts_ms": 1, "sequence": f'["1","{number}"]'}
        return {"before": None, "after": {"id": number}, "op": "c", "source": source, "ts_ms": 2}

    table = {"kind": "upsert", "key": ["id"], "buckets": 1}
    ddl = "id BIGINT NOT NULL, city STRING"
    found = checked([event(n) for n in range(1, 10)], table, schema=ddl, envelope="debezium")
    assert (found.verdict, found.detail) == ("ok", "9 of the newest records are rows")
    found = checked([{"id": 1}], table, schema=ddl, envelope="debezium")
    assert found.verdict == "failed" and "not a change event" in found.detail


def test_a_base64_decimal_fails(checked: Callable[..., Check]) -> None:
    amount = base64.b64encode(b"\xff\x01").decode()
    found = checked([{"id": 1, "amount": amount}], schema="id BIGINT, amount DECIMAL(9,2)")
    assert found.verdict == "failed" and "amount" in found.detail


def test_records_of_an_open_producer_transaction_are_not_read(
    broker: Broker, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=1)
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer({**kafka, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b'{"id":1}')
    assert producer.flush(30) == 0
    config = from_mapping(
        {
            "pipeline": {"id": topic, "workers": 1},
            "source": {"bootstrap_servers": broker.bootstrap_servers, "topics": [topic]},
            "record": {"schema": "id BIGINT"},
            "table": {"path": "file:///nothing/yet", "name": "t"},
        }
    )
    found = check_records(config, kafka)
    assert (found.verdict, found.detail) == ("ok", f"no records are in {topic} yet")
    end_transaction(producer, topic, kafka, commit=True)
    assert check_records(config, kafka).detail == "1 of the newest records are rows"
