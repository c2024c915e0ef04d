"""The control topic is deleted, cut off, flooded; the broker is away for a while."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from control_topic.codec import encode
from control_topic.messages import CoordinatorClaim, Halt, Message
from control_topic.refused_writes import LASTS_MAX_S
from control_topic.stubs import control_pb2
from tests.broker_fixture import create_topic, delete_topic, set_config
from tests.faults.acts import GOES_ON_S, goes_on, halts, lasting
from tests.faults.commits import wall_ms
from tests.faults.scenario import Notes, Scenario, put
from tests.faults.stage import Stage

HUGE_BYTES = 900_000
FLOOD = 20_000
HUGE = 40
AGAIN_S = 5.0
"""A topic that is being deleted is there for a moment longer: so long its name is tried."""
NOTICED = "is not what it was: deleted, made again or cut off"
REFUSED = "does not take this worker's messages"


def control_topic(stage: Stage) -> str:
    return f"{stage.pipeline.topic}-control"


def delete_records(stage: Stage, topic: str, partitions: int, *, before: int = -1) -> None:
    """As retention would: everything before this offset goes; -1: everything."""
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})
    cuts = [TopicPartition(topic, number, before) for number in range(partitions)]
    for future in admin.delete_records(cuts).values():
        future.result(30)


# --- what is done -----------------------------------------------------------------------------------


def _deleted(stage: Stage) -> None:
    delete_topic(stage.broker.bootstrap_servers, control_topic(stage))


def _deleted_after_a_restart(stage: Stage) -> None:
    """Who reads it knows of a leader's epoch then that the new topic does not have yet."""
    with broker_away(stage):
        pass
    stage.recovery_s(wall_ms(), deadline_s=GOES_ON_S)
    _deleted(stage)


def _truncated(stage: Stage) -> None:
    delete_records(stage, control_topic(stage), 1)


@retry(retry=retry_if_exception_type(KafkaException), stop=stop_after_attempt(10), reraise=True)
def _made_again_with_three_partitions(stage: Stage) -> None:
    """The driver makes it again as well, with one: the topic is deleted until this comes first."""
    _deleted(stage)
    create_topic(stage.broker.bootstrap_servers, control_topic(stage), partitions=3, deadline_s=AGAIN_S)


@contextmanager
def _compacted(stage: Stage) -> Iterator[None]:
    """A topic with this setting takes no message without a key."""
    servers, topic = stage.broker.bootstrap_servers, control_topic(stage)
    set_config(servers, topic, {"cleanup.policy": "compact"})
    yield
    set_config(servers, topic, {"cleanup.policy": "delete"})


def _flooded(stage: Stage) -> Notes:
    producer = Producer(
        {"bootstrap.servers": stage.broker.bootstrap_servers, "message.max.bytes": 2 * HUGE_BYTES}
    )
    for number, value in enumerate(foreign(stage.pipeline.id)):
        producer.produce(control_topic(stage), value, partition=0)
        producer.poll(0)
        if number == FLOOD // 2:
            stage.current.kill_worker(coordinator=True)
    assert producer.flush(60) == 0
    return {"foreign_messages": FLOOD + HUGE}


def foreign(pipeline: str) -> Iterator[bytes]:
    """What has no business on the topic, the same every time."""
    dice = random.Random(1)
    later_version = control_pb2.Envelope(version=99, pipeline=pipeline, run="later", epoch=1_000_000)
    kinds = [
        lambda: dice.randbytes(dice.randrange(1, 400)),
        lambda: b"",
        lambda: later_version.SerializeToString(),
        lambda: _of_another_pipeline(CoordinatorClaim()),
        lambda: _of_another_pipeline(Halt(reason="this is not your halt")),
    ]
    for number in range(FLOOD):
        yield kinds[number % len(kinds)]()
        if number % (FLOOD // HUGE) == 0:
            yield dice.randbytes(HUGE_BYTES)


def _of_another_pipeline(body: CoordinatorClaim | Halt) -> bytes:
    message = Message(
        pipeline="somebody-else",
        run="r",
        epoch=1_000_000,
        sender="coordinator@worker-0",
        incarnation="i",
        sequence=1,
        sent_at_ms=wall_ms(),
        body=body,
    )
    return encode(message)[0]


@contextmanager
def broker_away(stage: Stage) -> Iterator[None]:
    stage.broker.kill()
    try:
        yield
    finally:
        stage.broker.start()


@contextmanager
def _broker_frozen(stage: Stage) -> Iterator[None]:
    stage.broker.pause()
    yield
    stage.broker.resume()


put(
    "Kafka",
    Scenario(
        "control_topic_deleted",
        "the control topic is deleted while the pipeline runs",
        "the driver makes it again, what was said is repeated, and commits go on by themselves",
        partial(goes_on, fault=_deleted),
        20,
        in_tests=True,
    ),
    Scenario(
        "control_topic_truncated",
        "all records of the control topic are deleted while the pipeline runs",
        "nobody notices: what matters is said again",
        partial(goes_on, fault=_truncated),
        10,
    ),
    Scenario(
        "control_topic_made_again_with_three_partitions",
        "the control topic is deleted and made again with three partitions while the pipeline runs",
        "only partition 0 is used, which a warning says, and commits go on by themselves",
        partial(
            goes_on,
            fault=_made_again_with_three_partitions,
            said=("must have exactly 1; only partition 0 is used",),
        ),
        20,
    ),
    Scenario(
        "control_topic_made_again_after_a_broker_restart",
        "the broker is killed and started again, and once commits go on the control topic is deleted",
        "the driver makes it again, everybody knows the new one by its id, and commits go on by themselves",
        partial(goes_on, fault=_deleted_after_a_restart, said=("is gone and is made again", NOTICED)),
        20,
    ),
    Scenario(
        "control_topic_that_refuses_messages",
        "somebody sets cleanup.policy=compact on the control topic, which then refuses every message, "
        "while the pipeline runs",
        "`lockstep status` says so from the first on; after two minutes the run halts with that reason, "
        "and goes on when the setting is taken back",
        partial(
            halts,
            during=_compacted,
            alarm=(REFUSED,),
            said=(REFUSED, "set it to delete"),
            deadline_s=LASTS_MAX_S + 180,
        ),
    ),
    Scenario(
        "control_topic_flooded",
        "the control topic is flooded with foreign bytes, other protocol versions, other pipelines' claims "
        "and halts, and huge messages, and the coordinator's worker is killed in the middle of it",
        "nothing of it is obeyed, and commits go on by themselves",
        partial(goes_on, fault=_flooded),
        20,
    ),
    Scenario(
        "broker_away_for_20_s",
        "the broker is killed and comes back after 20 s",
        "everybody waits, and commits go on by themselves",
        partial(goes_on, fault=lasting(20, broker_away)),
        20,
    ),
    Scenario(
        "broker_away_for_60_s",
        "the broker is killed and comes back after 60 s",
        "everybody waits, and commits go on by themselves",
        partial(goes_on, fault=lasting(60, broker_away)),
        20,
    ),
    Scenario(
        "broker_frozen_for_30_s",
        "the broker is frozen for 30 s: connections stay, nothing answers",
        "everybody waits, and commits go on by themselves",
        partial(goes_on, fault=lasting(30, _broker_frozen)),
        20,
    ),
)
