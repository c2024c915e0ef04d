"""How the configuration says where rows are laid out, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.config.load import from_json, load
from tests.unit.lockstep.config.test_config import UPSERT, config_of, problems_of

COLUMNS = "id STRING, region STRING, ts TIMESTAMP, day STRING, at BIGINT"
BASE = {"record.schema": COLUMNS, "table.key": ["id"]}


def test_one_field_is_as_good_as_a_list_of_one_and_nothing_is_none() -> None:
    assert config_of({**BASE, "table.partition_by": "day"}).table.partition_by == ("day",)
    assert config_of({**BASE, "table.partition_by": ["day"]}).table.partition_by == ("day",)
    assert config_of({**BASE, "table.partition_by": ""}).table.partition_by == ()


def test_the_table_is_told_its_columns_and_how_those_are_made_that_records_have_not() -> None:
    given = {
        **BASE,
        "table.partition_by": ["region", 'day(ts, "Europe/Berlin") as d', "hour(now())"],
        "partition.max_age": "720h",
        "partition.beyond": "late",
    }
    config = config_of(given)
    spec = config.table_spec()
    assert spec.partition_fields == ("region", "d", "now_hour")
    assert spec.partition_terms == ('day(ts, "Europe/Berlin") as d', "hour(now())")
    bounds = spec.partition_bounds
    assert (bounds.max_age_ms, bounds.max_ahead_ms, bounds.set_aside) == (30 * 86_400_000, 0, True)
    assert from_json(config.to_json()) == config


def test_a_comma_within_a_function_separates_nothing_where_only_text_is_known(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(
        f'[pipeline]\nid = "p"\n[source]\nbootstrap_servers = "b:9092"\ntopics = ["t"]\n'
        f'[record]\nschema = "{COLUMNS}"\n'
        '[table]\npath = "file:///t"\nname = "t"\n',
        encoding="utf-8",
    )
    for text, terms in (
        ("region, minutes(15, ts), day", ("region", "minutes(15, ts)", "day")),
        ("day(ts)", ("day(ts)",)),
        ("", ()),
    ):
        config = load(path, environment={"LOCKSTEP_TABLE__PARTITION_BY": text})
        assert config.table.partition_by == terms


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"table.partition_by": "day(tz)"}, "table.partition_by: 'tz' is not a field of record.schema"),
        ({"table.partition_by": "day(ts"}, "'day(ts', character 7: wanted is"),
        ({"table.partition_by": ["day", "day"]}, "day and day are both the column day"),
        ({"table.partition_by": ["f"] * 9}, "9 fields, at most 8"),
        ({"table.partition_by": "ts"}, "a TIMESTAMP cannot be a table partition: "),
        ({"table.partition_by": "day(at)"}, "no TIMESTAMP, TIMESTAMP_NTZ or DATE"),
        ({"table.partition_by": "day(ts) as day"}, "records have a field of that name"),
        ({"table.partition_by": 7}, "is not a list"),
        ({"partition.max_age": "1h"}, "partition.max_age: means nothing here"),
        (
            {"partition.max_ahead": "1h", "table.partition_by": "day(now())"},
            "partition.max_ahead: means nothing here",
        ),
        ({"partition.max_age": "9000000h"}, "at most a hundred years"),
    ],
)
def test_what_cannot_lay_rows_out_is_refused(changes: dict[str, object], sentence: str) -> None:
    assert sentence in problems_of({**BASE, **changes})


@pytest.mark.parametrize(
    ("term", "why"),
    [
        ("day(epoch_ms(ts))", "ts, which is not in table.key"),
        ("day(now())", "the transaction's time"),
        ("day(_kafka_timestamp)", "the record's timestamp in Kafka"),
    ],
)
def test_upserts_refuse_what_could_move_a_row(term: str, why: str) -> None:
    assert f"is made of {why}: a later version of a row" in problems_of(
        {**UPSERT, "table.partition_by": term}
    )


def test_upserts_take_functions_of_their_key_and_no_bounds() -> None:
    given = {
        **UPSERT,
        "table.key": ["id", "ts"],
        "table.partition_by": ["bucket(4, id)", "day(epoch_ms(ts))"],
    }
    assert config_of(given).table_spec().partition_fields == ("id_bucket", "ts_day")
    assert "partition.max_age: means nothing to table.kind" in problems_of(
        {**given, "partition.max_age": "1h"}
    )
