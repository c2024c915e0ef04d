"""A real Kafka broker for the whole test session, and topics in it."""

from __future__ import annotations

import socket
import struct
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from lockstep.brokers.local import Broker
from tests.harness import await_that

DEADLINE_S = 90.0
PASSING = (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_REPLICATION_FACTOR)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Started when first asked for. `broker.bootstrap_servers` says where it is."""
    properties = {"log.cleaner.backoff.ms": "100"}
    with Broker(tmp_path_factory.mktemp("broker"), heap_mb=512, properties=properties) as running:
        yield running


@pytest.fixture
def make_topic(broker: Broker, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Creates a topic whose name nobody else has: `make_topic(partitions=4)` gives the name."""

    def make(*, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = f"{request.node.originalname[:60]}-{uuid.uuid4().hex[:8]}"
        create_topic(broker.bootstrap_servers, name, partitions=partitions, config=config)
        return name

    return make


def create_topic(
    bootstrap_servers: str,
    name: str,
    *,
    partitions: int = 1,
    config: dict[str, str] | None = None,
    deadline_s: float = DEADLINE_S,
) -> None:
    """Waits for a deleted topic of that name to be gone, and for a broker that nobody takes for dead; then
    until that broker knows it, a moment after it was made.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    deadline = time.monotonic() + deadline_s
    while True:
        wanted = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        created: Future[None] = admin.create_topics([wanted])[name]
        try:
            created.result(DEADLINE_S)
            break
        except KafkaException as error:
            if error.args[0].code() not in PASSING or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    await_that(f"topic {name}", lambda: topic_id(admin, name), deadline_s=DEADLINE_S)


def delete_topic(bootstrap_servers: str, name: str) -> None:
    """Waits until the broker knows none of that name, or another one: until then the topic takes messages,
    which go with it.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})  # its futures fail when it is collected
    deleted = topic_id(admin, name)
    admin.delete_topics([name])[name].result(DEADLINE_S)
    await_that(f"end of topic {name}", lambda: topic_id(admin, name) != deleted, deadline_s=DEADLINE_S)


def topic_id(admin: AdminClient, name: str) -> str:
    """Of the topic of that name that the broker knows now; empty where there is none."""
    asked = admin.describe_topics(TopicCollection([name]))[name]
    try:
        return str(asked.result(DEADLINE_S).topic_id)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return ""


def set_config(bootstrap_servers: str, topic: str, config: Mapping[str, str]) -> None:
    """Set these of the topic's properties, and leave the others."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})  # its futures fail when it is collected
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)


def set_produce_quota(bootstrap_servers: str, client: str, bytes_per_s: int) -> None:
    """How much the clients of this id may produce; 0 takes the quota away. librdkafka cannot ask for it."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    entity = struct.pack(">i", 1) + text("client-id") + text(client)
    operation = text("producer_byte_rate") + struct.pack(">d?", bytes_per_s, not bytes_per_s)
    body = struct.pack(">i", 1) + entity + struct.pack(">i", 1) + operation + struct.pack(">?", False)
    request = struct.pack(">hhi", 49, 0, 1) + text("tests") + body  # AlterClientQuotas, version 0
    host, _, port = bootstrap_servers.partition(":")
    with socket.create_connection((host, int(port)), DEADLINE_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            answer = answers.read(*struct.unpack(">i", answers.read(4)))
    _, _, entries, error = struct.unpack_from(">iiih", answer)
    assert (entries, error) == (1, 0), answer
