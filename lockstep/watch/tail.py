"""The control topic's newest messages, as commands need them: bounded in number and in time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from control_topic.clocks import wall_ms
from control_topic.kafka import ControlReader, ControlTopic
from control_topic.messages import Message
from control_topic.transport import Received
from lockstep.watch.told import Heard, dated

MESSAGES_MAX = 2_000
BYTES_MAX = 32 * 1024 * 1024
"""Of the messages that are kept where not all are asked for, as they travel: the newest."""
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
    kept: deque[tuple[int, list[Heard]]] = deque()
    kept_bytes, problem = 0, ""
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
                break
            before_bytes = reader.bodies_bytes
            arrived = list(filter(None, (as_heard(received, pipeline) for received in reader.poll(POLL_S))))
            if arrived:
                kept.append((reader.bodies_bytes - before_bytes, [dated(one, wall_ms()) for one in arrived]))
                kept_bytes += kept[-1][0]
            while messages_max is not None and kept_bytes > BYTES_MAX and len(kept) > 1:
                kept_bytes -= kept.popleft()[0]
                problem = (
                    f"Of the control topic {topic} only the newest {BYTES_MAX // 2**20} MiB were looked at:"
                    " its messages are larger than they should be."
                )
    finally:
        reader.close()
    return Tail(heard=tuple(one for _, some in kept for one in some), problem=problem)
