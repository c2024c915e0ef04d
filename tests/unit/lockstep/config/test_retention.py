"""How long table partitions live, as the configuration takes it."""

from __future__ import annotations

import pytest

from lockstep.config.load import from_json, from_mapping
from lockstep.config.model import Config
from lockstep.config.problems import InvalidConfiguration

BY_TS = {"retention": "90d", "retention_by": "ts", "partition_by": "n"}
ONE_TIME = "table.retention: needs table.partition_by to say one time"


def config_of(schema: str = "event_id STRING, day DATE, n BIGINT, ts TIMESTAMP", **table: object) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["events"]},
            "record": {"schema": schema},
            "table": {
                "path": "file:///lake/t",
                "name": "t",
                "key": ["event_id"],
                "partition_by": "day",
                **table,
            },
        }
    )


@pytest.mark.parametrize(("given", "days"), [("90d", 90), ("0", 0), (0, 0), ("48h", 2), ("36500d", 36_500)])
def test_a_retention_is_said_in_days_or_as_a_duration(given: object, days: int) -> None:
    config = config_of(retention=given)
    assert config.table_spec().retention_ms == days * 86_400_000
    assert from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"retention": "59m"}, "table.retention: '59m' is out of bounds: at least 1h"),
        ({"retention": "36501d"}, "is out of bounds"),
        ({"retention": 90}, "table.retention: 90 has no unit"),
        ({"retention": "90d", "kind": "upsert"}, "takes table partitions out of the table"),
        ({"retention": "90d", "partition_by": ""}, ONE_TIME),
        ({"retention": "90d", "partition_by": ["day", "event_id"]}, ONE_TIME),
        ({"retention": "90d", "partition_by": "bucket(4, n)"}, ONE_TIME),
        ({"retention": "90d", "partition_by": 'format(day, "Md/yyyy")'}, "where its month begins"),
        ({"retention": "90d", "partition_by": "n"}, "table.retention: 'n' is neither a DATE nor a STRING"),
        ({"retention_pattern": "MM"}, "table.retention_pattern: 'MM' does not say a time"),
        ({"retention_by": "day"}, "table.retention_by: means nothing without table.retention"),
        ({**BY_TS, "kind": "upsert"}, "takes table partitions out of the table"),
        ({**BY_TS, "partition_by": ""}, "table.retention_by: needs table.partition_by"),
        ({**BY_TS, "retention_by": "n"}, "table.retention_by: n is BIGINT: a table partition ages by"),
        ({**BY_TS, "retention_by": "dya"}, "'dya' is not a field of record.schema; did you mean day?"),
        ({**BY_TS, "retention_pattern": "yyyy"}, "means nothing beside table.retention_by"),
        (
            {**BY_TS, "retention_by": "_kafka_timestamp", "kafka_columns": False},
            "table.retention_by: _kafka_timestamp is not in the table",
        ),
    ],
)
def test_a_retention_that_cannot_be_is_refused_with_a_sentence(
    given: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        config_of(**given)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("field", ["ts", "day", "_kafka_timestamp"])
def test_what_rows_hold_may_say_how_old_a_table_partition_is_whatever_it_is_called(field: str) -> None:
    config = config_of(**{**BY_TS, "retention_by": field})
    assert config.table_spec().retention_field == field
    assert from_json(config.to_json()) == config
