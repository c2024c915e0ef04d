"""Each hook, tried before a run: is somebody there? Nothing is sent to anybody."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lockstep.config import Config
from lockstep.config.hooks import host_of, resolve_lineage, resolve_webhook
from lockstep.errors import LockstepError
from lockstep.hooks.port import SinkError
from lockstep.ui.access import is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """`verdict`: ok, warning or failed."""

    name: str
    verdict: str
    detail: str


Trial = Callable[[Config, Mapping[str, str]], tuple[str, str]]
"""The verdict, and what is said. Raises `SinkError`, `LockstepError`."""


def try_hooks(config: Config, kafka: Mapping[str, str]) -> Iterator[Tried]:
    """Those that are configured. `kafka`: librdkafka's properties, secrets resolved."""
    for name, trial in TRIALS.items():
        if not getattr(config.hooks, name):
            continue
        try:
            verdict, detail = trial(config, kafka)
        except (SinkError, LockstepError) as error:
            verdict, detail = "failed", f"{error}. A run would go on, and try again"
        yield Tried(name=name, verdict=verdict, detail=detail)


def _topic(config: Config, kafka: Mapping[str, str]) -> tuple[str, str]:
    from lockstep.hooks.topic import NotificationTopic

    topic = NotificationTopic(kafka, config.hooks.topic)
    partitions = topic.partitions()
    if not partitions:
        topic.try_to_create()
        return "ok", f"the topic {config.hooks.topic} is not there yet; the run makes it"
    if partitions > 1:
        detail = "its messages have one key and so one source partition, in which their order is the commits'"
        return "ok", f"the topic {config.hooks.topic} has {partitions} partitions: {detail}"
    return "ok", f"the topic {config.hooks.topic} is there"


def _webhook(config: Config, kafka: Mapping[str, str]) -> tuple[str, str]:
    from lockstep.hooks.post import Poster

    address, headers = resolve_webhook(config.hooks)
    Poster(address, {}, timeout_s=config.hooks.webhook_timeout_ms / 1_000).connect()
    if headers and sent_in_the_clear(address):
        detail = (
            f"{host_of(address)} answers, but http:// shows its headers to whoever is on the way: use https"
        )
        return "warning", detail
    return "ok", f"{host_of(address)} answers; nothing was sent"


def _openlineage(config: Config, kafka: Mapping[str, str]) -> tuple[str, str]:
    from lockstep.hooks.openlineage import TIMEOUT_S, check_library
    from lockstep.hooks.post import Poster

    check_library()
    address, key = resolve_lineage(config.hooks)
    if address.startswith("file://"):
        folder = Path(address.removeprefix("file://")).parent
        if not os.access(folder, os.W_OK | os.X_OK):
            return "failed", f"{folder} is not a folder that this user may write to: make it, or name another"
        return "ok", f"events are appended to {address.removeprefix('file://')}"
    Poster(address, {}, timeout_s=TIMEOUT_S).connect()
    if key and sent_in_the_clear(address):
        return "warning", f"{host_of(address)} answers, but http:// shows the API key on the way: use https"
    return "ok", f"{host_of(address)} answers; nothing was sent"


def _complete_folder(config: Config, kafka: Mapping[str, str]) -> tuple[str, str]:
    from table.errors import TableError
    from table.store.location import store_at

    folder = config.hooks.complete_folder
    try:
        store = store_at(folder, setting="hooks.complete_folder", settings=config.store_settings())
        markers = len(store.names())
    except FileNotFoundError:
        return "ok", f"{folder} is not there yet; the run makes it"
    except (OSError, TableError) as error:
        raise SinkError(f"{folder} cannot be listed: {getattr(error, 'strerror', None) or error}") from error
    return "ok", f"{folder} can be listed, {markers:,} names are in it; nothing was written"


def sent_in_the_clear(address: str) -> bool:
    """Whether others than this machine see what is sent."""
    parts = urlsplit(address)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


TRIALS: Mapping[str, Trial] = {
    "topic": _topic,
    "webhook": _webhook,
    "complete_folder": _complete_folder,
    "openlineage": _openlineage,
}
"""By the setting that turns a hook on."""
