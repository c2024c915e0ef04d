"""The control topic's newest messages, as commands need them: bounded in number and in time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from control_topic.kafka import ControlReader, ControlTopic
from control_topic.messages import Message

MESSAGES_MAX = 2_000
TIMEOUT_S = 15.0
POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A readable message of one pipeline. `time_ms`: the broker's timestamp, Unix epoch.

    `marked`: it carries a mark of some run, which nobody has checked here.
    """

    offset: int
    time_ms: int
    message: Message
    marked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """`problem`: why this is not the whole tail, or empty."""

    heard: tuple[Heard, ...]
    problem: str = ""


def read_tail(
    kafka: Mapping[str, str],
    topic: str,
    *,
    pipeline: str,
    messages_max: int = MESSAGES_MAX,
    timeout_s: float = TIMEOUT_S,
) -> Tail:
    """The last messages of the pipeline. Raises `control_topic.errors.ControlTopicUnavailable`."""
    if not ControlTopic(kafka, topic).describe(timeout_s=timeout_s).exists:
        return Tail(heard=(), problem=f"The control topic {topic} does not exist: no run has been here yet.")
    deadline = time.monotonic() + timeout_s
    heard: list[Heard] = []
    reader = ControlReader(kafka, topic, start="tail", tail_messages=messages_max, pipeline=pipeline)
    try:
        while not reader.caught_up:
            if time.monotonic() > deadline:
                reason = reader.last_error or "it was slow"
                problem = (
                    f"The control topic {topic} was not read to its end within {timeout_s:.0f} s: {reason}."
                )
                return Tail(heard=tuple(heard), problem=problem)
            for received in reader.poll(POLL_S):
                content = received.content
                if isinstance(content, Message) and content.pipeline == pipeline:
                    heard.append(
                        Heard(
                            offset=received.offset,
                            time_ms=received.time_ms,
                            message=content,
                            marked=received.marked,
                        )
                    )
    finally:
        reader.close()
    return Tail(heard=tuple(heard))
