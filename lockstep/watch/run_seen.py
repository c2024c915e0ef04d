"""What a pipeline's newest run says of itself: its driver, where it answers here, and the control topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.config import Config
from lockstep.driver.rundir import read_run_file
from lockstep.watch.looks import placed_run
from lockstep.watch.tail import TIMEOUT_S, read_tail
from lockstep.watch.topic_fold import Fold, fold
from table.service.client import Deadlines, TableClient

LIVE_S = 3.0


def ask_driver(pipeline: str) -> Mapping[str, Any] | None:
    """The driver's own figures; None where none answers on this machine, to this user."""
    file = read_run_file(pipeline)
    if file is None:
        return None
    client = TableClient(file.address, file.token, deadlines=Deadlines(status_s=LIVE_S))
    try:
        answer = client.status()
    finally:
        client.close()
    return answer if isinstance(answer, dict) and answer.get("run") == file.run else None


def read_topic(
    config: Config, kafka: Mapping[str, str], *, table_epoch: int, timeout_s: float = TIMEOUT_S
) -> tuple[Fold, list[str]]:
    """What the control topic's tail says of the run that started last, and what is odd about that.

    Raises `control_topic.errors.ControlTopicUnavailable`.
    """
    tail = read_tail(kafka, config.control.topic, pipeline=config.pipeline.id, timeout_s=timeout_s)
    known = fold(tail.heard, placed=placed_run(config), table_epoch=table_epoch)
    problems = [tail.problem] if tail.problem else []
    if known.ignored:
        problems.append(ignored_sentence(known.ignored, config.control.topic))
    return known, problems


def ignored_sentence(count: int, topic: str) -> str:
    """Of messages that are certainly no run's."""
    return (
        f"{count:,} messages on the control topic {topic} are no run's and were "
        "ignored: without a mark, or of an epoch that no run can have reached. Find out who writes there."
    )
