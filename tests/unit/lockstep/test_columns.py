"""The columns that a run begins with where `record.schema` does not give them; of a real registry server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lockstep.columns import begun, with_columns
from lockstep.config import Config, InvalidConfiguration
from lockstep.config.load import from_json, from_mapping
from lockstep.errors import ConfigError, Failed
from lockstep.infer.infer import told
from lockstep.validate_schemas import check_columns, check_schemas
from participant.records.changes import EVOLVE, HALT, IGNORE
from table.schema import parse_ddl
from tests.debezium_avro import envelope, optional
from tests.registry_server import ERROR, Registry


@pytest.fixture
def config(registry: Registry, tmp_path: Path) -> Config:
    return config_of(registry, tmp_path)


def config_of(
    registry: Registry,
    folder: Path,
    *topics: str,
    of: str = "avro",
    table: Any = None,
    subjects: Any = None,
    **record: Any,
) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "b:9092", "topics": list(topics or ("events",))},
            "record": {"format": of, "key_format": of, **record},
            "registry": {
                "url": registry.url,
                "timeout": "1s",
                "cache_folder": str(folder / "schemas"),
                **({"value_subjects": subjects} if subjects else {}),
            },
            "table": {"path": f"file://{folder}/t", "name": "t", "key": ["id"], **(table or {})},
        }
    )


def register(registry: Registry, subject: str, **fields: Any) -> None:
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    text = json.dumps({"type": "record", "name": "r", "fields": listed})
    registry.known.register(subject, {"schema": text})


def test_without_a_table_they_are_those_of_the_newest_schema(registry: Registry, config: Config) -> None:
    register(registry, "events-value", id="string")
    register(registry, "events-value", id="string", n=["null", "int"], at="double")
    found = begun(config)
    assert parse_ddl(found.config.record.ddl) == parse_ddl("id STRING, n INT, at DOUBLE")
    assert found.said_by == "schema 2 (events-value)"
    assert found.config.record.changes == config.record.changes == EVOLVE
    assert found.config.table_spec().follows
    assert found.config.record_spec().on_schema_change == EVOLVE
    assert from_json(found.config.to_json()) == found.config, "as a job is handed it"
    assert with_columns(found.config) is found.config


def test_of_several_topics_they_are_united_and_one_without_a_schema_says_nothing(
    registry: Registry, tmp_path: Path
) -> None:
    register(registry, "events-value", id="string", n="int")
    register(registry, "audit-value", n="long", who="string", id="string")
    found = begun(config_of(registry, tmp_path, "events", "audit", "more"))
    assert parse_ddl(found.config.record.ddl) == parse_ddl("id STRING, n BIGINT, who STRING")
    assert found.said_by == "schema 1 (events-value), schema 2 (audit-value)"
    register(registry, "audit-value", id="string", n="string")
    with pytest.raises(ConfigError, match=r"schema 3 \(audit-value\) does not do: field n is INT and would"):
        begun(config_of(registry, tmp_path, "events", "audit"))


def test_of_protobuf_they_are_those_of_the_first_message(registry: Registry, tmp_path: Path) -> None:
    text = 'syntax = "proto3"; message E { string id = 1; uint64 n = 2; } message F { int32 x = 1; }'
    registry.known.register("events-value", {"schema": text, "schemaType": "PROTOBUF"})
    found = begun(config_of(registry, tmp_path, of="protobuf"))
    assert parse_ddl(found.config.record.ddl) == parse_ddl("id STRING, n DECIMAL(20,0)")


def register_json(registry: Registry, subject: str, references: Any = None, **fields: Any) -> None:
    text = json.dumps({"type": "object", "properties": fields})
    asked = {"schema": text, "schemaType": "JSON", "references": references or []}
    registry.known.register(subject, asked)


def test_of_json_schema_they_are_those_that_its_properties_say(registry: Registry, tmp_path: Path) -> None:
    """What it refers to is asked for as well."""
    register_json(registry, "money", amount={"type": "number"})
    price = {"oneOf": [{"type": "null"}, {"$ref": "money.json"}]}
    reference = {"name": "money.json", "subject": "money", "version": 1}
    register_json(registry, "events-value", [reference], id={"type": "string"}, price=price)
    asked = config_of(registry, tmp_path, of="json_schema")
    assert asked.record.changes == EVOLVE
    found = begun(asked)
    assert parse_ddl(found.config.record.ddl) == parse_ddl("id STRING, price STRUCT<amount: DOUBLE>")
    assert found.said_by == "schema 2 (events-value)"
    assert found.config.record_spec().follows
    assert (told(asked) or found).said_by == found.said_by


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"id": {"type": ["string", "integer"]}},
            r"schema 1 \(events-value\) does not do: field id: integer",
        ),
        ({}, "names no field of an object"),
    ],
)
def test_a_json_schema_without_columns_to_begin_with_is_refused_with_what_to_do(
    registry: Registry, tmp_path: Path, fields: Any, why: str
) -> None:
    register_json(registry, "events-value", **fields)
    with pytest.raises(ConfigError, match=why) as caught:
        begun(config_of(registry, tmp_path, of="json_schema"))
    assert "Write record.schema" in str(caught.value)


def test_of_json_schema_fields_that_other_columns_come_from_are_not_looked_at(
    registry: Registry, tmp_path: Path
) -> None:
    trace = {"trace-id": {"type": "string"}}
    register_json(registry, "events-value", id={"type": "string"}, more={"type": "boolean"}, **trace)
    settings = {"schema": "id STRING, trace STRING, extra STRING", "rest": "extra"}
    mapped = config_of(
        registry,
        tmp_path,
        of="json_schema",
        on_schema_change="evolve",
        columns={"trace": "value.trace-id"},
        **settings,
    )
    (check,) = check_schemas(mapped)
    assert check.detail == "the newest, schema 1, has more than the table: more BOOLEAN, which a run adds"


def test_of_json_schema_validate_says_what_a_run_would_add_and_what_no_column_holds(
    registry: Registry, tmp_path: Path
) -> None:
    register_json(registry, "events-value", id={"type": "string"})
    (columns,), resolved = check_columns(config_of(registry, tmp_path, of="json_schema"))
    assert resolved is not None
    assert (columns.verdict, columns.detail) == ("ok", "those of schema 1 (events-value): id STRING")
    (check,) = check_schemas(resolved)
    assert check.detail == "the newest, schema 1, has no field that is no column"
    register_json(registry, "events-value", id={"type": "string"}, n={"type": "integer"})
    (check,) = check_schemas(resolved)
    assert check.detail == "the newest, schema 2, has more than the table: n BIGINT, which a run adds"
    register_json(registry, "events-value", id={"type": "string"}, u={})
    (check,) = check_schemas(resolved)
    assert (check.verdict, check.detail) == ("failed", "the newest: field u: no type goes into no column")
    halts = config_of(registry, tmp_path, of="json_schema", schema="id STRING", on_schema_change="ignore")
    (check,) = check_schemas(halts)
    assert check.detail == "the newest, schema 3, is one of JSON; values are not held against it"


def test_subjects_are_named_as_producers_name_them(registry: Registry, tmp_path: Path) -> None:
    """As RecordNameStrategy and TopicRecordNameStrategy do."""
    register(registry, "shop.Order", id="string", n="int")
    register(registry, "audit-shop.Refund", id="string", back="double")
    asked = config_of(registry, tmp_path, "events", "audit", subjects=["shop.Order", "{topic}-shop.Refund"])
    found = begun(asked)
    assert parse_ddl(found.config.record.ddl) == parse_ddl("id STRING, n INT, back DOUBLE")
    assert found.said_by == "schema 1 (shop.Order), schema 2 (audit-shop.Refund)"
    names = [check.name for check in check_schemas(found.config)]
    assert names == [
        f"schemas of {subject}" for subject in ("shop.Order", "events-shop.Refund", "audit-shop.Refund")
    ]
    with pytest.raises(ConfigError, match=r"name their subjects otherwise, say registry\.value_subjects"):
        begun(config_of(registry, tmp_path))


def test_of_protobuf_a_subject_says_which_message_of_its_file_is_meant(
    registry: Registry, tmp_path: Path
) -> None:
    text = (
        'syntax = "proto3"; package p; message E { string id = 1; } message F { string id = 1; int32 x = 2; }'
    )
    registry.known.register("events-p.F", {"schema": text, "schemaType": "PROTOBUF"})
    found = begun(config_of(registry, tmp_path, of="protobuf", subjects=["{topic}-p.F"]))
    assert parse_ddl(found.config.record.ddl) == parse_ddl("id STRING, x INT")
    (check,) = check_schemas(found.config)
    assert check.detail == "the newest, schema 1, fits record.schema"


def test_where_nobody_says_a_run_is_refused_with_what_to_do(registry: Registry, config: Config) -> None:
    with pytest.raises(ConfigError, match=r"has no subject events-value\. Register a schema there, or write"):
        begun(config)
    (check,), none = check_columns(config)
    assert (check.name, check.verdict, none) == ("columns", "failed", None)
    registry.does = ERROR
    with pytest.raises(Failed, match="answers with an error"):
        begun(config)


def test_a_column_that_a_setting_names_must_be_among_them(registry: Registry, config: Config) -> None:
    register(registry, "events-value", idd="string")
    with pytest.raises(InvalidConfiguration, match="did you mean idd"):
        begun(config)


def test_given_columns_are_what_they_are_and_change_only_where_that_is_asked_for(
    registry: Registry, tmp_path: Path
) -> None:
    given = config_of(registry, tmp_path, schema="id STRING")
    assert with_columns(given) is given and not registry.asked
    assert (given.record.changes, given.table_spec().follows) == (IGNORE, False)
    asked = config_of(registry, tmp_path, schema="id STRING", on_schema_change="halt")
    assert (asked.record.changes, asked.record_spec().on_schema_change) == (HALT, HALT)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({}, "record.schema: missing; write the columns in Spark DDL"),
        ({"schema": "id STRING", "on_schema_change": "evolve"}, "record.on_schema_change: 'evolve' means"),
    ],
)
def test_only_what_names_schemas_of_a_registry_can_be_followed(
    registry: Registry, tmp_path: Path, record: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=why):
        config_of(registry, tmp_path, of="json", **record)


def test_validate_says_which_columns_there_are_and_which_a_run_would_add(
    registry: Registry, config: Config, tmp_path: Path
) -> None:
    register(registry, "events-value", id="string")
    (columns,), resolved = check_columns(config)
    assert resolved is not None
    assert (columns.verdict, columns.detail) == ("ok", "those of schema 1 (events-value): id STRING")
    register(registry, "events-value", id="string", n="int")
    (check,) = check_schemas(resolved)
    assert check.detail == "the newest, schema 2, has more than the table: n INT, which a run adds"
    halts = config_of(registry, tmp_path, schema="id STRING", on_schema_change="halt")
    (check,) = check_schemas(halts)
    assert check.verdict == "warning" and check.detail.endswith("A run halts at the first such record")
    register(registry, "events-value", id="string", u=["string", "int"])
    (check,) = check_schemas(resolved)
    assert check.verdict == "failed" and "field u: a union of string, int goes into no column" in check.detail


UPSERTS = {"kind": "upsert", "buckets": 1}


def events(registry: Registry, folder: Path, **record: Any) -> Config:
    return config_of(registry, folder, table=UPSERTS, envelope="debezium", **record)


def register_events(registry: Registry, subject: str = "events-value", **fields: Any) -> None:
    registry.known.register(subject, {"schema": json.dumps(envelope(fields))})


def test_of_debeziums_events_they_are_those_of_the_row_in_them(registry: Registry, tmp_path: Path) -> None:
    config = events(registry, tmp_path)
    register_events(registry, id="int", note=optional("string"))
    found = begun(config)
    assert parse_ddl(found.config.record.ddl) == parse_ddl("id INT, note STRING")
    assert found.said_by == "schema 1 (events-value)"
    assert found.config.record.changes == EVOLVE and found.config.table_spec().follows
    assert found.config.record_spec().follows
    inferred = told(config)
    assert inferred is not None and inferred.ddl.replace("`", "") == "id INT,\nnote STRING"
    register_events(registry, id="int", u=["int", "string"])
    with pytest.raises(ConfigError, match=r"schema 2 \(events-value\) does not do: field after.u: a union"):
        begun(config)
    register(registry, "events-value", ts_ms="long")
    with pytest.raises(ConfigError, match="does not do: the Avro schema is no change event's"):
        begun(config)


def test_validate_says_which_columns_of_events_a_run_would_begin_with_and_add(
    registry: Registry, tmp_path: Path
) -> None:
    config = events(registry, tmp_path)
    register_events(registry, id="int")
    (columns,), resolved = check_columns(config)
    assert resolved is not None
    assert (columns.verdict, columns.detail) == ("ok", "those of schema 1 (events-value): id INT")
    register_events(registry, id="int", x="double")
    check, _ = check_schemas(resolved)
    assert check.detail == "the newest, schema 2, has more than the table: after.x DOUBLE, which a run adds"
    check, _ = check_schemas(events(registry, tmp_path, schema="id INT", on_schema_change="halt"))
    assert check.verdict == "warning" and check.detail.endswith("A run halts at the first such record")
    register_events(registry, id="string")
    check, _ = check_schemas(resolved)
    assert check.verdict == "failed" and "field after.id is INT and would be STRING" in check.detail


@pytest.mark.parametrize("of", ["json", "json_schema"])
def test_of_debeziums_events_in_json_somebody_has_to_say_which_columns_there_are(
    registry: Registry, tmp_path: Path, of: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=r"record\.schema: missing; write the columns"):
        config_of(registry, tmp_path, of=of, table=UPSERTS, envelope="debezium")
