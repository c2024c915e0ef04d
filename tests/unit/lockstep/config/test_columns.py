"""`record.columns` in the configuration: what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.config.load import from_json, load
from tests.unit.lockstep.config.test_config import config_of, problems_of

SCHEMA = {"record.schema": "id BIGINT, city STRING, key STRING"}


def test_columns_are_written_as_a_table_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(
        """
        [pipeline]
        id = "events"
        [source]
        bootstrap_servers = "127.0.0.1:9092"
        topics = ["events"]
        [record]
        schema = "user_id BIGINT, city STRING, key STRING"
        [record.columns]
        user_id = "value.user.`id.now`"
        city = "value.address.city"
        [table]
        path = "file:///data/lake/events"
        name = "events"
        """
    )
    environment = {"LOCKSTEP_RECORD__COLUMNS__USER_ID": "key.id"}
    config = load(path, environment=environment, sets=["record.columns.key=header.token"])
    wanted = {"user_id": "key.id", "city": "value.address.city", "key": "header.token"}
    assert config.record.columns == wanted
    assert from_json(config.to_json()) == config
    assert dict(config.record_spec().columns) == wanted and config.record_spec().wants_whole


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"city": "valu.city"}, "record.columns: column city: 'valu.city' is nothing that a record has"),
        ({"city": 7}, 'record.columns: column city is 7: write where it comes from, "value.name"'),
        ({"town": "value.city"}, "record.columns: town is no column of record.schema"),
        ({"City": "value.city"}, "record.columns: City is no column of record.schema; did you mean city?"),
        ({"id": "value.a", "city": "value.a"}, "columns id and city both come from value.a, as BIGINT and"),
        ({"id": "value.id as TIMESTAMP"}, "column id, from value.id: no BIGINT is made of a TIMESTAMP"),
    ],
)
def test_what_cannot_be_a_column_is_refused_with_a_sentence(columns: dict[str, Any], sentence: str) -> None:
    assert sentence in problems_of({**SCHEMA, "record.columns": columns})


def test_a_row_is_keyed_by_what_its_delete_has_as_well() -> None:
    upserts = {**SCHEMA, "table.kind": "upsert", "table.key": ["id"]}
    for source in ("key.id", "key", "header.id", "value.user.id", "partition"):
        config_of({**upserts, "record.columns": {"id": source}})
    said = problems_of({**upserts, "record.columns": {"id": "offset"}})
    assert "record.columns: column id, from offset, says which row a record deletes" in said
    config_of({**SCHEMA, "table.key": ["id"], "record.columns": {"id": "offset"}})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"record.rest": "more"}, "record.rest: 'more' is no column of record.schema: add more STRING"),
        ({"record.rest": "id"}, "record.rest: 'id': what is left over is JSON, for a STRING"),
        (
            {
                "record.rest": "city",
                "record.envelope": "debezium",
                "table.kind": "upsert",
                "table.key": ["id"],
            },
            "record.rest: it is not had of debezium events",
        ),
        (
            {"record.rest": "city", "record.format": "avro", "registry.url": "http://r"},
            "record.rest: it is had of json, json_schema, not of avro: make columns of the fields",
        ),
    ],
)
def test_what_is_left_over_is_had_of_json_in_a_column_of_texts(
    changes: dict[str, Any], sentence: str
) -> None:
    assert sentence in problems_of({**SCHEMA, **changes})
    assert config_of({**SCHEMA, "record.rest": "city"}).record_spec().rest == "city"


def test_columns_from_elsewhere_do_not_keep_the_others_from_following_the_schemas() -> None:
    """Where their types are given: which type a header has, no schema says."""
    registry = {"record.format": "avro", "registry.url": "http://r"}
    follows = {**SCHEMA, **registry, "record.columns": {"city": "header.city"}}
    assert config_of(follows).record.changes == "ignore"
    for changes in ("evolve", "halt"):
        asked = config_of({**follows, "record.on_schema_change": changes})
        assert asked.record_spec().on_schema_change == changes
    said = problems_of({**registry, "record.schema": "", "record.columns": {"city": "header.city"}})
    assert "record.schema: missing; record.columns says where city comes from, and not of what type" in said
