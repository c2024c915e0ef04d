"""What is asked for an archive, part by part. Each may fail or take too long, and none holds up another."""

from __future__ import annotations

import io
import json
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

from control_topic.kafka import ControlReader, ControlTopic
from control_topic.spelling import json_escaped
from lockstep.brokers.source_topics import SourceTopics
from lockstep.commands.status import observe
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.errors import Failed
from lockstep.offsets import standing
from lockstep.output import ConsoleOutput, Text
from lockstep.support.machine import machine
from lockstep.support.page import page_document
from lockstep.support.redaction import redacted
from lockstep.watch.status_text import to_text
from lockstep.watch.topic_lines import as_json
from table.instants import Instant, MissingTable
from table.kinds import table_kind
from table.state import TableState, nest

EVENTS_MAX = 2_000
EVENTS_BYTES_MAX = 20_000_000
INSTANTS_MAX = 200
LOG_BYTES_MAX = 20_000_000
BROKER_S = 10.0
POLL_S = 0.2


@dataclass(slots=True)
class Found:
    """What a part has come to so far: what is in it counts, however the part ends."""

    members: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`names`: its members, each with what it is. `within_s`: it is not waited for any longer."""

    title: str
    names: Mapping[str, str]
    within_s: float
    gather: Callable[[Found], None]


def parts(config: Config) -> list[Part]:
    """A secret that cannot be had here costs those parts that need it."""
    return [
        Part(
            title="the configuration",
            names={"configuration.json": "all settings, secrets left out"},
            within_s=10,
            gather=lambda found: _put(found, "configuration.json", redacted(config)),
        ),
        Part(
            title="the versions",
            names={"versions.json": "Lockstep, what it runs on, the machine"},
            within_s=20,
            gather=lambda found: _put(found, "versions.json", machine(config)),
        ),
        Part(
            title="the status",
            names={
                "status.json": "lockstep status --output json, the driver's own figures in it",
                "status.txt": "lockstep status",
            },
            within_s=30,
            gather=lambda found: _status(found, config),
        ),
        Part(
            title="the offsets",
            names={
                "offsets.json": "lockstep offsets --output json",
                "offsets.txt": "lockstep offsets",
            },
            within_s=30,
            gather=lambda found: _offsets(found, config),
        ),
        Part(
            title="the control topic",
            names={"events.jsonl": f"its last {EVENTS_MAX:,} messages, as lockstep events --output json"},
            within_s=30,
            gather=lambda found: _events(found, config),
        ),
        Part(
            title="the timeline",
            names={
                "timeline.json": f"its newest {INSTANTS_MAX} instants, our commits' data, what is pending"
            },
            within_s=60,
            gather=lambda found: _timeline(found, config),
        ),
        Part(
            title="the page",
            names={"page.json": "the document of the driver's page"},
            within_s=15,
            gather=lambda found: _put(found, "page.json", page_document(config)),
        ),
    ]


def log_parts(files: tuple[Path, ...]) -> list[Part]:
    """One for each: its last 20 MB."""
    return [
        Part(
            title=f"the log {path}",
            names={name: f"the end of {path.name}"},
            within_s=60,
            gather=lambda found, path=path, name=name: _log(found, path, name),  # type: ignore[misc]
        )
        for number, path in enumerate(files, start=1)
        for name in [f"logs/{number}-{re.sub(r'[^A-Za-z0-9._-]', '_', path.name)[:100]}"]
    ]


def _put(found: Found, name: str, document: object) -> None:
    found.members[name] = json_escaped(json.dumps(document, ensure_ascii=False, indent=1)) + "\n"


def _text(text: Text) -> str:
    shown = io.StringIO()
    ConsoleOutput(shown).document(None, text)
    return shown.getvalue()


def _status(found: Found, config: Config) -> None:
    status = observe(config)
    _put(found, "status.json", status.to_json())
    found.members["status.txt"] = _text(to_text(status))


def _offsets(found: Found, config: Config) -> None:
    source = SourceTopics(checked_kafka(config), config.source.topics, timeout_s=BROKER_S)
    view = standing.look(source, config.group_id)
    state: TableState | None = None
    try:
        reader = table_kind(config.table.format).reader(config.table.path, config.store_settings())
        state = reader.newest(config.pipeline.id)
    except MissingTable as error:
        found.problems.append(str(error))
    rows = standing.compare(state, view)
    _put(found, "offsets.json", standing.to_json(rows))
    found.members["offsets.txt"] = _text(standing.to_text(rows, state))


def _events(found: Found, config: Config) -> None:
    """The newest that there is room for."""
    kafka, topic = checked_kafka(config), config.control.topic
    if not ControlTopic(kafka, topic).describe(timeout_s=BROKER_S).exists:
        raise Failed(f"the control topic {topic} does not exist")
    lines: deque[str] = deque(maxlen=EVENTS_MAX)
    size, dropped, until_s = 0, 0, monotonic() + 2 * BROKER_S
    reader = ControlReader(kafka, topic, start="tail", tail_messages=EVENTS_MAX, surface_parts=True)
    try:
        while not reader.caught_up and monotonic() < until_s:
            for received in reader.poll(POLL_S):
                line = json_escaped(json.dumps(as_json(received), ensure_ascii=False)) + "\n"
                lines.append(line)
                size += len(line)
                while size > EVENTS_BYTES_MAX:
                    size -= len(lines.popleft())
                    dropped += 1
        if not reader.caught_up:
            found.problems.append(f"not read to its end: {reader.last_error or 'it was slow'}")
    finally:
        reader.close()
        if dropped:
            found.problems.append(f"{dropped:,} older messages were too large together")
        found.members["events.jsonl"] = "".join(lines)


def _timeline(found: Found, config: Config) -> None:
    reader = table_kind(config.table.format).reader(config.table.path, config.store_settings())
    instants: list[dict[str, Any]] = []
    document: dict[str, Any] = {"place": reader.place, "mode": reader.mode, "completed": instants}
    try:
        document["pending"] = [
            {"requested": one.requested, "action": one.action, "phase": one.phase, "owner": dict(one.owner)}
            for one in islice(reader.pending(), INSTANTS_MAX)
        ]
        for one in islice(reader.completed(), INSTANTS_MAX):
            instants.append(_instant(one))
    finally:  # what was read before it failed
        _put(found, "timeline.json", document)


def _instant(one: Instant) -> dict[str, Any]:
    return {
        "requested": one.requested,
        "completed": one.completed,
        "action": one.action,
        "operation": one.operation,
        "files": len(one.files),
        "size_bytes": sum(file.size_bytes for file in one.files),
        "rows": sum(file.rows for file in one.files),
        "lockstep": _state(one.state) if one.state is not None else None,
    }


def _state(state: TableState) -> dict[str, Any]:
    return {
        "pipeline": state.pipeline,
        "run": state.run,
        "epoch": state.epoch,
        "transaction": state.transaction,
        "kind": state.kind,
        "operator": state.operator or None,
        "reason": state.reason or None,
        "offsets": nest(state.offsets),
        "ranges": [f"{one.partition} [{one.start},{one.next}) {one.records}" for one in state.ranges],
        "lost": [f"{one.partition} [{one.start},{one.next})" for one in state.lost],
        "rejects": state.reject_count,
        "cluster": state.cluster,
        "topics": dict(state.topics),
    }


def _log(found: Found, path: Path, name: str) -> None:
    """Its end. What was cut in two is left out: half of a secret is not known for one."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise Failed(f"{path} is no file")
            file.seek(max(0, about.st_size - LOG_BYTES_MAX))
            content = file.read(LOG_BYTES_MAX)
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from error
    if about.st_size > LOG_BYTES_MAX:
        found.problems.append(f"its last {LOG_BYTES_MAX // 1_000_000} MB of {about.st_size:,} bytes")
        content = content.partition(b"\n")[2]
    found.members[name] = content.decode("utf-8", "surrogateescape")


def _without_waiting(path: str, flags: int) -> int:
    """A pipe that nobody writes to would be waited for."""
    return os.open(path, flags | os.O_NONBLOCK)
