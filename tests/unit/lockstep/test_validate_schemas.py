"""What `lockstep validate` says of a schema registry, of a real server."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from lockstep.config import Config
from lockstep.config.load import from_mapping
from lockstep.validate_schemas import check_schemas
from tests.debezium_avro import ENVELOPE
from tests.registry_server import HTML, Registry


def config_of(
    registry: Registry,
    of: str = "avro",
    named: Mapping[str, object] | None = None,
    *,
    on_schema_change: str = "auto",
    ddl: str = "id STRING, n BIGINT",
    envelope: str = "none",
    **table: object,
) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "b:9092", "topics": ["events"]},
            "record": {
                "schema": ddl,
                "envelope": envelope,
                "format": of,
                "key_format": of,
                "on_schema_change": on_schema_change,
            },
            "registry": {"url": registry.url, "timeout": "1s", **(named or {})},
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


def test_what_the_newest_schema_adds_must_go_with_the_other_settings(registry: Registry) -> None:
    """Else a run halts at the first such record."""
    registry.known.register("events-value", schema({"id": "string", "ts_day": "string"}))
    config = config_of(registry, on_schema_change="evolve")
    assert said(config)[0][1:] == (
        "ok",
        "the newest, schema 1, has more than the table: ts_day STRING, which a run adds",
    )
    config = config_of(registry, on_schema_change="evolve", partition_by=["day(_kafka_timestamp) as ts_day"])
    ((_, verdict, detail),) = said(config)
    assert verdict == "failed"
    assert detail.startswith("the newest: schema 1 has more columns, ts_day STRING: table.partition_by: ")


def test_keys_are_looked_at_where_they_are_read(registry: Registry) -> None:
    registry.known.register("events-value", schema({"id": "string"}))
    registry.known.register("events-key", {"schema": '"long"'})
    assert len(said(config_of(registry))) == 1
    keys = said(config_of(registry, kind="upsert", key=["id"]))[1]
    assert keys[:2] == ("schemas of events-key", "failed") and "a long is not read as STRING" in keys[2]
    registry.known.register("events-key", {"schema": '"string"'})
    assert said(config_of(registry, kind="upsert", key=["id"]))[1][1] == "ok"


def test_subjects_are_those_that_the_registry_section_names(registry: Registry) -> None:
    named = {"value_subjects": ["shop.Order", "{topic}-shop.Order"], "key_subjects": ["shop.OrderKey"]}
    registry.known.register("shop.Order", schema({"id": "string"}))
    registry.known.register("shop.OrderKey", {"schema": '"string"'})
    found = said(config_of(registry, named=named, kind="upsert", key=["id"]))
    assert [name for name, _, _ in found] == [
        f"schemas of {name}" for name in ("shop.Order", "events-shop.Order", "shop.OrderKey")
    ]
    assert [verdict for _, verdict, _ in found] == ["ok"] * 3
    assert "no such subject" in found[1][2] and "(registry.value_subjects)" in found[1][2]
    assert found[2][2] == "the newest, schema 2, fits record.schema"


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


STRANGE = 'syntax = "proto3"; message Strange { int32 id = 1; }'
EVENT = f"{STRANGE} message Event {{ string id = 1; }}"


def proto(text: str) -> dict[str, str]:
    return {"schema": text, "schemaType": "PROTOBUF"}


def test_of_protobuf_one_of_the_files_messages_must_fit(registry: Registry) -> None:
    config = config_of(registry, "protobuf", kind="upsert", key=["id"])
    registry.known.register("events-value", proto(EVENT))
    registry.known.register("events-key", proto(STRANGE))
    values, keys = said(config)
    assert values == ("schemas of events-value", "ok", "the newest, schema 1, fits record.schema")
    assert keys[:2] == ("schemas of events-key", "failed")
    assert keys[2].startswith("the newest: message 0 of schema 2 cannot be read by: field id: an int32")
    registry.known.register("events-key", proto('syntax = "proto3";'))
    assert said(config)[1][2] == "the newest: schema 3 has no message"


def test_a_newest_schema_of_another_kind_is_no_subject_that_is_missing(registry: Registry) -> None:
    registry.known.register("events-value", schema({"id": "string"}))
    assert said(config_of(registry, "protobuf")) == [
        ("schemas of events-value", "failed", "the newest: it is one of AVRO, not of Protobuf")
    ]
    registry.known.register("events-value", proto(EVENT))
    ((_, verdict, detail),) = said(config_of(registry))
    assert (verdict, detail) == ("failed", "the newest: it is one of PROTOBUF, not of Avro")


def test_of_json_schema_the_newest_is_said_to_be_one_and_nothing_is_claimed_of_its_columns(
    registry: Registry,
) -> None:
    registry.known.register("events-value", {"schema": '{"type":"object"}', "schemaType": "JSON"})
    assert said(config_of(registry, "json_schema")) == [
        (
            "schemas of events-value",
            "ok",
            "the newest, schema 1, is one of JSON; values are not held against it",
        )
    ]
    registry.known.register("events-value", proto(EVENT))
    ((_, verdict, detail),) = said(config_of(registry, "json_schema"))
    assert (verdict, detail) == ("failed", "the newest: it is one of PROTOBUF, not of JSON Schema")


@pytest.mark.parametrize(
    ("ddl", "why"),
    [
        ("id INT NOT NULL, paid DECIMAL(10,2)", ""),
        ("id INT, paid DOUBLE", "field before.paid: a decimal(10,2) is not read as DOUBLE"),
        (
            "id INT, x INT NOT NULL",
            "Value has no field after.x, which is required",
        ),
    ],
)
def test_of_debeziums_events_it_is_the_row_that_must_fit(registry: Registry, ddl: str, why: str) -> None:
    registry.known.register("events-value", {"schema": json.dumps(ENVELOPE)})
    config = config_of(registry, ddl=ddl, envelope="debezium", kind="upsert", key=["id"])
    (_, verdict, detail), _ = said(config)
    assert (verdict, why in detail) == ("failed" if why else "ok", True), detail


def test_a_newest_schema_that_is_no_change_events_does_not_fit(registry: Registry) -> None:
    registry.known.register("events-value", schema({"ts_ms": "long"}))
    (_, verdict, detail), _ = said(config_of(registry, envelope="debezium", kind="upsert", key=["id"]))
    assert verdict == "failed" and "the Avro schema is no change event's" in detail
