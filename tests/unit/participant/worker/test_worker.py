"""What a worker makes of the control topic, and what it does not say of it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from control_topic.messages import CoordinatorClaim, Message, ParticipantReady
from participant.worker.worker import Worker

OURS = Message(
    pipeline="p",
    run="r",
    epoch=7,
    sender="coordinator@worker-0",
    incarnation="i",
    sequence=1,
    sent_at_ms=0,
    body=CoordinatorClaim(),
)


def test_what_a_worker_hears_on_the_control_topic_is_no_line_of_its_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A claim least of all: at a start each worker hears each of them, several times."""
    coordinator: list[Message] = []
    lane: list[Any] = []
    worker: Any = SimpleNamespace(
        _spec=SimpleNamespace(pipeline="p", run="r"),
        _coordinator=SimpleNamespace(received=coordinator.append),
        _lane=SimpleNamespace(post=lane.append),
    )
    ready = Message(**{**_fields(OURS), "body": ParticipantReady(), "sender": "worker-0"})
    with caplog.at_level(logging.INFO):
        for message in (OURS, OURS, ready, Message(**{**_fields(OURS), "pipeline": "q"})):
            Worker._hear(worker, message)
    assert caplog.messages == []
    assert coordinator == [event.message for event in lane] == [OURS, OURS, ready]


def _fields(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__dataclass_fields__}
