"""One record of a source topic by its place, for somebody who wants to see why it is a dead letter."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from control_topic.messages import SourcePartition
from lockstep.errors import Failed

_client_log = logging.getLogger(f"{__name__}.librdkafka")

POLL_S = 0.2
FETCH_BYTES = 1024 * 1024
"""An answer has one batch at least, however large."""


def read_value(
    kafka: Mapping[str, str], group: str, partition: SourcePartition, offset: int, *, timeout_s: float
) -> bytes | None:
    """The record's value; None where it has none. The group is named for its access rights, and never joined.

    Raises `Failed` where the record is there no more, or does not come.
    """
    consumer = Consumer(
        {
            **kafka,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            "fetch.max.bytes": max(FETCH_BYTES, int(kafka.get("message.max.bytes", 0))),
            "max.partition.fetch.bytes": FETCH_BYTES,
            "queued.min.messages": 1,
        },
        logger=_client_log,
    )
    where, until_s = f"{partition}@{offset}", time.monotonic() + timeout_s
    try:
        consumer.assign([TopicPartition(partition.topic, partition.number, offset)])
        while time.monotonic() < until_s:
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is None and message.offset() == offset:
                return message.value()
            gone = error is None or error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET)
            why = "it is not in the log any more" if gone else (error.str() if error is not None else "")
            raise Failed(f"{where} cannot be read: {why}.")
    except KafkaException as error:
        raise Failed(f"{where} cannot be read: {error.args[0].str()}.") from error
    finally:
        consumer.close()
    raise Failed(f"{where} did not come within {timeout_s:.0f} s.")
