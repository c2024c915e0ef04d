"""The control topic is deleted, cut off, flooded; the broker is away for a while."""

from __future__ import annotations

import random
from collections.abc import Iterator

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from control_topic.codec import encode
from control_topic.messages import CoordinatorClaim, Halt, Message
from control_topic.refused_writes import LASTS_MAX_S
from control_topic.stubs import control_pb2
from tests.broker_fixture import create_topic, delete_topic, set_config
from tests.faults.acts import CALM_PER_SECOND, assert_said, ends_with, hold, proved, survive
from tests.faults.commits import wall_ms
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import Stage
from tests.harness import await_that

GROUP = "Kafka"
HUGE_BYTES = 900_000
FLOOD = 20_000
HUGE = 40
REFUSED = "does not take this worker's messages"


def control_topic(stage: Stage) -> str:
    return f"{stage.pipeline.topic}-control"


def delete_records(stage: Stage, topic: str, partitions: int, *, before: int = -1) -> None:
    """As retention would: everything before this offset goes; -1: everything."""
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})
    cuts = [TopicPartition(topic, number, before) for number in range(partitions)]
    for future in admin.delete_records(cuts).values():
        future.result(30)


# --- the control topic ------------------------------------------------------------------------------


@scenario(
    GROUP,
    fault="the control topic is deleted while the pipeline runs",
    expected="the driver makes it again, what was said is repeated, and commits go on by themselves",
    limit_s=20,
    in_tests=True,
)
def control_topic_deleted(stage: Stage) -> Outcome:
    return survive(stage, lambda: delete_topic(stage.broker.bootstrap_servers, control_topic(stage)))


@scenario(
    GROUP,
    fault="all records of the control topic are deleted while the pipeline runs",
    expected="nobody notices: what matters is said again",
    limit_s=10,
)
def control_topic_truncated(stage: Stage) -> Outcome:
    return survive(stage, lambda: delete_records(stage, control_topic(stage), 1))


@scenario(
    GROUP,
    fault="the control topic is deleted and made again with three partitions while the pipeline runs",
    expected="only partition 0 is used, which a warning says, and commits go on by themselves",
    limit_s=20,
)
def control_topic_made_again_with_three_partitions(stage: Stage) -> Outcome:
    def fault() -> None:
        delete_topic(stage.broker.bootstrap_servers, control_topic(stage))
        create_topic(stage.broker.bootstrap_servers, control_topic(stage), partitions=3)

    outcome = survive(stage, fault)
    assert_said(stage.current, ["must have exactly 1; only partition 0 is used"])
    return outcome


@scenario(
    GROUP,
    fault="somebody sets cleanup.policy=compact on the control topic, which then refuses every message, "
    "while the pipeline runs",
    expected="`lockstep status` says so from the first on; after two minutes the run halts with that reason, "
    "and goes on when the setting is taken back",
)
def control_topic_that_refuses_messages(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND)
    began_ms = wall_ms()
    set_config(stage.broker.bootstrap_servers, control_topic(stage), {"cleanup.policy": "compact"})
    await_that("alarm in the status", lambda: REFUSED in stage.status_json(), deadline_s=60)
    alarm_s = (wall_ms() - began_ms) / 1_000
    ends_with(run, 3, REFUSED, "set it to delete", deadline_s=LASTS_MAX_S + 180)
    halted_s = (wall_ms() - began_ms) / 1_000
    set_config(stage.broker.bootstrap_servers, control_topic(stage), {"cleanup.policy": "delete"})
    again = stage.restart()
    recovery_s = stage.recovery_s(wall_ms())
    return proved(
        stage, again, recovery_s=recovery_s, alarm_after_s=round(alarm_s), halted_after_s=round(halted_s)
    )


@scenario(
    GROUP,
    fault="the control topic is flooded with foreign bytes, other protocol versions, other pipelines' claims "
    "and halts, and huge messages, and the coordinator's worker is killed in the middle of it",
    expected="nothing of it is obeyed, and commits go on by themselves",
    limit_s=20,
)
def control_topic_flooded(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND)
    producer = Producer(
        {"bootstrap.servers": stage.broker.bootstrap_servers, "message.max.bytes": 2 * HUGE_BYTES}
    )
    for number, value in enumerate(foreign(stage.pipeline.id)):
        producer.produce(control_topic(stage), value, partition=0)
        producer.poll(0)
        if number == FLOOD // 2:
            run.kill_worker(coordinator=True)
    assert producer.flush(60) == 0
    recovery_s = stage.recovery_s(wall_ms())
    return proved(stage, run, recovery_s=recovery_s, foreign_messages=FLOOD + HUGE)


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


# --- the broker -------------------------------------------------------------------------------------


def _broker_away(stage: Stage, away_s: float) -> None:
    stage.broker.kill()
    hold(away_s)
    stage.broker.start()


@scenario(
    GROUP,
    fault="the broker is killed and comes back after 20 s",
    expected="everybody waits, and commits go on by themselves",
    limit_s=20,
)
def broker_away_for_20_s(stage: Stage) -> Outcome:
    return survive(stage, lambda: _broker_away(stage, 20))


@scenario(
    GROUP,
    fault="the broker is killed and comes back after 60 s",
    expected="everybody waits, and commits go on by themselves",
    limit_s=20,
)
def broker_away_for_60_s(stage: Stage) -> Outcome:
    return survive(stage, lambda: _broker_away(stage, 60))


@scenario(
    GROUP,
    fault="the broker is frozen for 30 s: connections stay, nothing answers",
    expected="everybody waits, and commits go on by themselves",
    limit_s=20,
)
def broker_frozen_for_30_s(stage: Stage) -> Outcome:
    def fault() -> None:
        stage.broker.pause()
        hold(30)
        stage.broker.resume()

    return survive(stage, fault)
