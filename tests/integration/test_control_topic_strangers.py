"""Whoever may write to the control topic, on a real broker: it costs time, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, Producer

from control_topic.kafka import ControlReader, ControlTopic
from control_topic.messages import CoordinatorClaim, Message
from control_topic.trust import Trust
from participant.records import headers
from tests.integration.test_control_topic import DEADLINE_S, KEY, kafka, open_writer, read, topic
from tests.odd_headers import produce_odd
from tests.raw_producer import produce_header, produce_zeros

__all__ = ["kafka", "topic"]

pytestmark = pytest.mark.integration


BOMBS, HEADERS_EACH = 80, 90_000
PEAK_KB_MAX = 200_000
"""Of a process that reads them; all at once they are a gigabyte."""
READS_IT_ALL = """
import json, sys, time
from control_topic.kafka import ControlReader
reader = ControlReader(json.loads(sys.argv[1]), sys.argv[2], start="beginning")
until = time.monotonic() + 100
while not reader.caught_up and time.monotonic() < until:
    reader.poll(1)
assert reader.caught_up
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(reader.unreadable, status["VmHWM"].split()[0])
"""


def hears_what_comes_after(kafka, topic) -> bool:
    """Whether a worker's reader, begun anew, hears its own run's word."""
    with closing(open_writer(kafka, topic)) as after:
        after.send(CoordinatorClaim(), epoch=1)
        assert after.flush(DEADLINE_S)
    trust = Trust(pipeline="events", run="r1", key=KEY)
    with closing(ControlReader(kafka, topic, pipeline="events", trust=trust)) as reader:
        return bool(read(reader, lambda received: any(isinstance(r.content, Message) for r in received)))


def test_a_transaction_that_a_stranger_leaves_open_holds_nobody_up(kafka, topic) -> None:
    stranger = Producer({**kafka, "transactional.id": topic, "transaction.timeout.ms": 900_000})
    stranger.init_transactions(DEADLINE_S)
    stranger.begin_transaction()
    stranger.produce(topic, b"x")
    assert stranger.flush(DEADLINE_S) == 0
    assert hears_what_comes_after(kafka, topic)


def test_a_header_whose_name_is_no_text_is_no_mark_and_ends_no_reader(kafka, topic) -> None:
    produce_header(kafka["bootstrap.servers"], topic, b"x", b"\xff\xfe")
    assert hears_what_comes_after(kafka, topic)


@pytest.mark.parametrize("codec", ["zstd", "gzip", "lz4"])
def test_a_record_that_unpacks_to_more_than_a_record_may_be_does_not_get_in(kafka, codec) -> None:
    topic = f"control-{codec}-{uuid4().hex[:8]}"
    ControlTopic(kafka, topic).ensure(timeout_s=DEADLINE_S)
    refused = produce_zeros(kafka, topic, codec=codec, size_bytes=64 << 20)
    assert isinstance(refused, KafkaError) and refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert hears_what_comes_after(kafka, topic)


def test_what_no_client_can_unpack_is_passed_over(kafka, topic) -> None:
    """In a topic that somebody else has made."""
    assert produce_zeros(kafka, topic, codec="zstd", size_bytes=256 << 20) is None
    assert hears_what_comes_after(kafka, topic)


def test_records_that_are_nothing_but_headers_do_not_fill_the_memory(kafka, topic) -> None:
    produce_odd(kafka, topic, headers.pack([("", b"")] * HEADERS_EACH), count=BOMBS)
    command = [sys.executable, "-c", READS_IT_ALL, json.dumps(kafka), topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S + 120, check=False)
    assert done.returncode == 0, done.stderr
    unreadable, peak_kb = map(int, done.stdout.split())
    assert unreadable == BOMBS
    assert peak_kb < PEAK_KB_MAX
    assert hears_what_comes_after(kafka, topic)
