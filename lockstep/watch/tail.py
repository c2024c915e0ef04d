"""The control topic's newest messages, as commands need them: bounded in number and in time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from control_topic.clocks import wall_ms
from control_topic.kafka import ControlReader, ControlTopic
from control_topic.messages import Message
from control_topic.transport import Received
from lockstep.watch.told import Heard, dated

MESSAGES_MAX = 2_000
TIMEOUT_S = 15.0
POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What was read."""

    heard: tuple[Heard, ...]
    problem: str = ""
    """Why this is not the whole tail, or empty."""


def as_heard(received: Received, pipeline: str) -> Heard | None:
    """None for another pipeline's message, and for what cannot be read."""
    content = received.content
    if not isinstance(content, Message) or content.pipeline != pipeline:
        return None
    return Heard(offset=received.offset, time_ms=received.time_ms, message=content, marked=received.marked)


def read_tail(
    kafka: Mapping[str, str],
    topic: str,
    *,
    pipeline: str,
    messages_max: int | None = MESSAGES_MAX,
    timeout_s: float = TIMEOUT_S,
) -> Tail:
    """The last messages of the pipeline, or all that there are.

    Raises `control_topic.errors.ControlTopicUnavailable`.
    """
    if not ControlTopic(kafka, topic).describe(timeout_s=timeout_s).exists:
        return Tail(heard=(), problem=f"The control topic {topic} does not exist: no run has been here yet.")
    deadline = time.monotonic() + timeout_s
    heard: list[Heard] = []
    reader = (
        ControlReader(kafka, topic, start="beginning", pipeline=pipeline)
        if messages_max is None
        else ControlReader(kafka, topic, start="tail", tail_messages=messages_max, pipeline=pipeline)
    )
    try:
        while not reader.caught_up:
            if time.monotonic() > deadline:
                reason = reader.last_error or "it was slow"
                problem = (
                    f"The control topic {topic} was not read to its end within {timeout_s:.0f} s: {reason}."
                )
                return Tail(heard=tuple(heard), problem=problem)
            arrived = filter(None, (as_heard(received, pipeline) for received in reader.poll(POLL_S)))
            heard += [dated(one, wall_ms()) for one in arrived]
    finally:
        reader.close()
    return Tail(heard=tuple(heard))
