"""What `lockstep validate` says of a schema registry, of a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest

from lockstep.config import Config
from lockstep.config.load import from_mapping
from lockstep.validate_schemas import check_schemas
from tests.registry_server import HTML, Registry


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def config_of(registry: Registry, **table: object) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "b:9092", "topics": ["events"]},
            "record": {"schema": "id STRING, n BIGINT", "format": "avro", "key_format": "avro"},
            "registry": {"url": registry.url, "timeout": "1s"},
            "table": {"path": "file:///t", "name": "t", **table},
        }
    )


def schema(fields: Mapping[str, str]) -> dict[str, str]:
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"schema": json.dumps({"type": "record", "name": "r", "fields": listed})}


def said(config: Config) -> list[tuple[str, str, str]]:
    return [(check.name, check.verdict, check.detail) for check in check_schemas(config)]


def test_the_newest_schema_of_the_topics_subject_must_fit(registry: Registry) -> None:
    config = config_of(registry)
    ((name, verdict, detail),) = said(config)
    assert (name, verdict) == ("schemas of events-value", "ok") and "has no such subject" in detail
    registry.known.register("events-value", schema({"id": "string"}))
    assert said(config) == [("schemas of events-value", "ok", "the newest, schema 1, fits record.schema")]
    registry.known.register("events-value", schema({"id": "long"}))
    ((_, verdict, detail),) = said(config)
    assert verdict == "failed"
    assert detail.startswith("the newest: schema 2 cannot be read by: field id: a long is not read as STRING")


def test_keys_are_looked_at_where_they_are_read(registry: Registry) -> None:
    registry.known.register("events-value", schema({"id": "string"}))
    registry.known.register("events-key", {"schema": '"long"'})
    assert len(said(config_of(registry))) == 1
    keys = said(config_of(registry, kind="upsert", key=["id"]))[1]
    assert keys[:2] == ("schemas of events-key", "failed") and "a long is not read as STRING" in keys[2]
    registry.known.register("events-key", {"schema": '"string"'})
    assert said(config_of(registry, kind="upsert", key=["id"]))[1][1] == "ok"


def test_a_registry_that_gives_no_schemas_is_said_once(registry: Registry) -> None:
    registry.does = HTML
    ((name, verdict, detail),) = said(config_of(registry))
    assert (name, verdict) == (f"schema registry {registry.url}", "failed")
    assert "answers with something that is not JSON" in detail


def test_without_a_registry_nothing_is_said() -> None:
    sections: dict[str, dict[str, object]] = {
        "pipeline": {"id": "events"},
        "source": {"bootstrap_servers": "b:9092", "topics": ["events"]},
        "record": {"schema": "id STRING"},
        "table": {"path": "file:///t", "name": "t"},
    }
    assert not list(check_schemas(from_mapping(sections)))
