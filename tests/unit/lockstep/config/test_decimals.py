"""How decimals in change events of JSON are encoded is said at the start, or the start is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.config.load import InvalidConfiguration, from_mapping


def problems(columns: str = "id BIGINT, n DECIMAL(12,2)", *, key: str = "id", **record: Any) -> str:
    mapping = {
        "pipeline": {"id": "p"},
        "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["t"]},
        "record": {"envelope": "debezium", "schema": columns, **record},
        "registry": {"url": "http://127.0.0.1:8081"} if "format" in record else {},
        "table": {"path": "file:///lake/t", "name": "t", "kind": "upsert", "key": [key]},
    }
    try:
        config = from_mapping(mapping)
    except InvalidConfiguration as error:
        return str(error)
    assert config.record_spec().decimal_handling == record.get("decimal_handling", "")
    return ""


@pytest.mark.parametrize(
    "columns", ["n DECIMAL(12,2)", "n ARRAY<DECIMAL(9,0)>", "n STRUCT<m: MAP<STRING, DECIMAL(3,1)>>"]
)
@pytest.mark.parametrize("record", [{}, {"format": "json_schema"}])
def test_a_decimal_column_is_refused_until_its_encoding_is_configured(columns: str, record: Any) -> None:
    said = problems(f"id BIGINT, {columns}", **record)
    assert "record.decimal_handling: missing; column n is DECIMAL" in said
    assert not problems(f"id BIGINT, {columns}", decimal_handling="precise", **record)


@pytest.mark.parametrize("handling", ["precise", "string", "double", "schema"])
def test_each_mode_of_debezium_is_taken(handling: str) -> None:
    assert not problems(decimal_handling=handling)


def test_no_mode_is_needed_where_nothing_is_ambiguous() -> None:
    assert not problems("id BIGINT, n DOUBLE")
    assert not problems(format="avro")


def test_a_mode_that_reads_nothing_is_refused() -> None:
    assert "means nothing to avro" in problems(format="avro", decimal_handling="precise")
    assert "json_schema has not" in problems(format="json_schema", decimal_handling="schema")


def test_the_schema_of_an_event_does_not_say_how_its_key_is_encoded() -> None:
    columns = "id DECIMAL(12,2), n INT"
    assert "key column id is DECIMAL" in problems(columns, decimal_handling="schema")
    assert not problems(columns, decimal_handling="precise")
