"""The control topic and the table service under hypothesis: whatever bytes come, they are answered."""

from __future__ import annotations

import tracemalloc
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from control_topic.codec import Incomplete, MessageDecoder, Unreadable
from control_topic.messages import Message
from control_topic.parts import Joiner
from control_topic.stubs import control_pb2 as pb
from tests.fuzz import control, strategies

TOPIC, CALLS = control.TARGETS
FLOOD_RECORDS = 600
FLOOD_LIMIT_BYTES = 4 * 1024 * 1024


@settings(strategies.PROFILE, max_examples=300)
@given(strategies.cases(TOPIC))
def test_any_records_are_answered_and_a_sound_message_is_read_after_them(case: Any) -> None:
    TOPIC.check(case)


@settings(strategies.PROFILE, max_examples=300)
@given(strategies.cases(CALLS))
def test_any_call_is_understood_or_malformed(case: Any) -> None:
    CALLS.check(case)


@settings(strategies.PROFILE, max_examples=500)
@given(st.binary(max_size=200))
def test_any_bytes_are_answered(raw: bytes) -> None:
    assert isinstance(MessageDecoder().feed(raw), Message | Unreadable | Incomplete)


def test_a_flood_of_parts_with_long_names_costs_bounded_memory() -> None:
    decoder = MessageDecoder(Joiner(assemblies_max=64, pending_bytes_max=64 * 1024))
    flood = [
        pb.Envelope(
            version=1,
            pipeline="p" * 100_000,
            digest=number.to_bytes(32, "big"),
            part=number % 4_096,
            parts=4_096,
            body=b"x" * (number % 2),
        ).SerializeToString()
        for number in range(FLOOD_RECORDS)
    ]
    tracemalloc.start()
    try:
        for raw in flood:
            decoder.feed(raw)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < FLOOD_LIMIT_BYTES
