"""Which hooks a configuration asks for. Each is imported where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lockstep.config import Config
from lockstep.config.hooks import resolve_webhook
from lockstep.hooks.commits import TableTold
from lockstep.hooks.port import Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTold:
    """The run, as others are told of it."""

    run: str
    table_ddl: str
    """The table's columns."""


def sinks_of(config: Config, kafka: Mapping[str, str], told: RunTold) -> list[Sink]:
    """Raises `LockstepError` where a secret cannot be had, or a library is missing."""
    return list(_sinks(config, kafka, told))


def table_told(config: Config) -> TableTold:
    table = config.table
    return TableTold(path=table.path, name=table.name, kind=table.format, mode=table.kind)


def _sinks(config: Config, kafka: Mapping[str, str], told: RunTold) -> Iterator[Sink]:
    hooks, pipeline, table = config.hooks, config.pipeline.id, table_told(config)
    if hooks.topic:
        from lockstep.hooks.topic import TopicSink

        yield TopicSink(kafka, hooks.topic, pipeline=pipeline, table=table)
    if hooks.webhook:
        from lockstep.hooks.webhook import WebhookSink

        address, headers = resolve_webhook(hooks)
        timeout_s = hooks.webhook_timeout_ms / 1_000
        yield WebhookSink(address, headers, timeout_s=timeout_s, pipeline=pipeline, table=table)
