"""`lockstep infer` on a real broker."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from lockstep.brokers.local import Broker
from lockstep.commands.infer import command
from lockstep.config.load import load
from lockstep.errors import ConfigError, Failed
from table.schema import parse_ddl
from tests.avro_types import record
from tests.broker_fixture import create_topic
from tests.registry_server import Registry
from tests.transactions import end_transaction

pytestmark = pytest.mark.integration
PARTITIONS = 3


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = f"infer-{len(request.node.name)}-{request.node.name[5:40]}".replace("_", "-")
    create_topic(broker.bootstrap_servers, name, partitions=PARTITIONS)
    return name


def file(folder: Path, broker: Broker, topic: str, **record: str) -> Path:
    """A pipeline of which nothing is known but where its records are."""
    path = folder / "pipeline.toml"
    told = "".join(f'{name} = "{value}"\n' for name, value in record.items())
    path.write_text(
        f"""
        [pipeline]
        id = "{topic}"
        [source]
        bootstrap_servers = "{broker.bootstrap_servers}"
        topics = ["{topic}"]
        [record]
        {told}
        """
    )
    return path


def produce(broker: Broker, topic: str, values: list[bytes | None], **settings: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def run(path: Path, *arguments: str) -> str:
    done = CliRunner().invoke(command, ["-c", str(path), *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def found(path: Path, *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(path, "--output", "json", *arguments))
    return document


def test_a_topic_says_by_itself_what_its_columns_are_and_nothing_is_committed(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    values: list[bytes | None] = [
        json.dumps(
            {"id": n, "user-id": f"Quokka {n}", "at": "2026-01-02T03:04:05Z", "x": {"y": n / 2}}
        ).encode()
        for n in range(300)
    ]
    produce(broker, topic, [*values, None, b"no json", b"[]"])
    path = file(tmp_path, broker, topic)
    text = run(path)
    assert "Quokka" not in text
    pasted = tmp_path / "pasted.toml"
    body = path.read_text().replace("[record]", text)
    pasted.write_text(body + '\n[table]\npath = "file:///t"\nname = "t"\nkey = ["id"]\n')
    config = load(pasted)
    assert config.record.columns == {"user_id": "value.user-id"}
    assert config.record.ddl.split() == (
        ["id", "BIGINT,", "user_id", "STRING,", "at", "TIMESTAMP,", "x", "STRUCT<y:", "DOUBLE>"]
    )
    document = found(path)
    assert (document["records"], document["without_value"]) == (303, 1)
    assert (document["rows"], document["rejects"]) == (300, 2)
    assert sorted(document["no_objects"].values()) == [1, 1]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    groups = admin.list_consumer_groups().result(30)
    assert topic not in [group.group_id for group in groups.valid]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic})
    consumer.close()


def test_so_many_records_are_read_as_were_asked_for_the_newest_or_the_oldest(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    produce(broker, topic, [b'{"old":%d}' % n for n in range(3_000)])
    produce(broker, topic, [b'{"new":%d}' % n for n in range(3_000)])
    path = file(tmp_path, broker, topic)
    newest = found(path, "--records", "300")
    assert (newest["records"], newest["schema"]) == (300, "new BIGINT")
    oldest = found(path, "--records", "300", "--oldest")
    assert (oldest["records"], oldest["schema"]) == (300, "old BIGINT")
    whole = found(path, "--records", "100000")
    assert (whole["records"], whole["schema"]) == (6_000, "old BIGINT,\nnew BIGINT")
    one = found(path, "--records", "1")
    assert (one["records"], one["source_partitions"]) == (1, PARTITIONS)


def test_records_that_were_taken_back_are_not_looked_at(tmp_path: Path, broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions()
    for name, keeps in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        for number in range(30):
            producer.produce(topic, b'{"%s":1}' % name, partition=number % PARTITIONS)
        end_transaction(producer, topic, {"bootstrap.servers": broker.bootstrap_servers}, commit=keeps)
    document = found(file(tmp_path, broker, topic))
    assert (document["records"], document["schema"]) == (60, "a BIGINT,\nc BIGINT")


def test_of_avro_the_registry_says_the_columns_and_no_record_is_read(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    schema = record({"id": "long", "at": ["null", {"type": "long", "logicalType": "timestamp-millis"}]})
    with Registry() as registry:
        registry.known.register(f"{topic}-value", {"schema": schema})
        path = file(tmp_path, broker, topic, format="avro")
        path.write_text(path.read_text() + f'\n[registry]\nurl = "{registry.url}"\n')
        document = found(path)
        text = run(path)
    said = f"schema 1 ({topic}-value)"
    assert (document["said_by"], document["schema"]) == (said, "`id` BIGINT,\n`at` TIMESTAMP")
    pasted = tomllib.loads(text)["record"]["schema"]
    assert parse_ddl(pasted) == parse_ddl("id BIGINT, at TIMESTAMP")


def test_of_json_of_a_registry_what_stands_behind_the_ids_is_read(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """By an id before the value, or in a header, where the registry says nothing."""
    rows = [json.dumps({"id": n, "x": {"y": n / 2}}).encode() for n in range(300)]
    produce(broker, topic, [*(b"\0\0\0\0\x07" + one for one in rows), None, b"{}", b"\0\0\0\0\x07[]"])
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(
        topic, b'{"more":true}', headers=[("__value_schema_id", b"\0\0\0\0\x08")], partition=PARTITIONS - 1
    )
    assert producer.flush(30) == 0
    path = file(tmp_path, broker, topic, format="json_schema")
    path.write_text(path.read_text() + '\n[registry]\nurl = "http://127.0.0.1:9"\n')
    for reader in ("auto", "plain"):
        document = found(path, "--set", f"source.reader={reader}")
        assert document["schema"].split() == [
            "id",
            "BIGINT,",
            "x",
            "STRUCT<y:",
            "DOUBLE>,",
            "more",
            "BOOLEAN",
        ]
        assert (document["records"], document["without_value"]) == (304, 1)
        assert (document["rows"], sum(document["no_objects"].values())) == (301, 2)
        assert document["notes"][-1].startswith(
            "the schema registry says no columns, so records were looked at"
        )
    refused = CliRunner().invoke(command, ["-c", str(file(tmp_path, broker, topic, format="string"))])
    assert isinstance(refused.exception, ConfigError) and "of string no schema" in str(refused.exception)


def test_what_cannot_be_inferred_is_refused_with_a_sentence(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    path = file(tmp_path, broker, topic)
    runner = CliRunner()
    empty = runner.invoke(command, ["-c", str(path)])
    assert isinstance(empty.exception, Failed) and "no records are in" in str(empty.exception)
    bad = runner.invoke(command, ["-c", str(path), "--topic", "no topic"])
    assert isinstance(bad.exception, ConfigError) and "--topic" in str(bad.exception)
    other = file(tmp_path, broker, topic, envelope="debezium")
    sets = ["--set", "table.kind=upsert", "--set", "table.key=id"]
    events = runner.invoke(command, ["-c", str(other), *sets])
    assert isinstance(events.exception, ConfigError) and "debezium events" in str(events.exception)
