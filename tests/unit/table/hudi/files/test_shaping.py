"""Keys, table partitions and Kafka columns stay with their rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from control_topic.messages import SourcePartition
from participant.records.json.decoder import JsonDecoder
from participant.records.raw import RawBatch, Values
from participant.records.rejects import Rejects
from table.hudi.files.dated import Dated
from table.hudi.files.shaping import InsertRows, InsertShaper
from table.hudi.layout import HudiLayout
from table.partition_columns import columns_of
from table.partitioners.bounds import Bounds
from table.schema import SchemaError, record_schema, table_schema

LAYOUT = HudiLayout(
    path="file:///lake/t",
    key_fields=("id",),
    key_format="plain",
    partition_fields=(),
    hive_style=False,
    url_encode=False,
    kafka_columns=True,
    target_file_bytes=1_000_000,
    ddl="id STRING, day STRING, at TIMESTAMP",
)


@dataclass(frozen=True, kw_only=True)
class Made(InsertRows):
    """With what the table refused, by name."""

    rejects: Rejects


def derive(*values: bytes | None, timestamp_ms: int | None = None, **changes: Any) -> Made:
    layout = replace(LAYOUT, **changes)
    schema = columns_of(layout)
    offsets = np.arange(100, 100 + 2 * len(values), 2, dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition("events", 3),
        offsets=offsets,
        timestamps_ms=(
            1_700_000_000_000 + offsets
            if timestamp_ms is None
            else np.full(len(values), timestamp_ms, dtype=np.int64)
        ),
        values=Values.of(values),
    )
    shaped = InsertShaper(layout, schema).shape(JsonDecoder(schema).decode(batch).rows(batch))
    parts = {one.name: getattr(shaped, one.name) for one in fields(shaped)}
    return Made(**parts, rejects=Rejects.of(shaped.refused, offsets))


def test_kafka_columns_follow_the_rows_that_were_kept() -> None:
    derived = derive(b'{"id":"a"}', b"oops", b'{"id":"c"}')
    assert derived.table.select(["id", "_kafka_topic", "_kafka_partition", "_kafka_offset"]).to_pylist() == [
        {"id": "a", "_kafka_topic": "events", "_kafka_partition": 3, "_kafka_offset": 100},
        {"id": "c", "_kafka_topic": "events", "_kafka_partition": 3, "_kafka_offset": 104},
    ]
    assert derived.table.column("_kafka_timestamp")[1].as_py() == datetime.fromtimestamp(
        1_700_000_000.104, UTC
    )
    assert derived.table.column_names == table_schema(LAYOUT.ddl, True).names
    assert not derived.rejects


def test_a_record_without_a_key_is_a_reject_at_its_own_offset() -> None:
    derived = derive(b"oops", b'{"id":""}', b'{"id":"b"}', b'{"id":null}')
    assert derived.record_key.to_pylist() == ["b"]
    assert derived.table.column("_kafka_offset").to_pylist() == [104]
    assert [(r.offset, r.index) for r in derived.rejects] == [(102, 1), (106, 3)]
    assert derived.rejects[0].reason == "the record key (id) is null or empty"


def test_a_table_partition_per_value_and_a_reject_where_it_would_nest() -> None:
    derived = derive(
        b'{"id":"a","day":"1"}', b'{"id":"b","day":"1/2"}', b'{"id":"c"}', b'{"id":"d","day":""}',
        partition_fields=("day",), hive_style=True,
    )  # fmt: skip
    assert derived.table_partition.to_pylist() == [
        *("day=1", "day=__HIVE_DEFAULT_PARTITION__", "day=__HIVE_DEFAULT_PARTITION__")
    ]
    assert len(set(derived.table_partition.dictionary.to_pylist())) == len(derived.table_partition.dictionary)
    assert derived.table.column("id").to_pylist() == derived.record_key.to_pylist() == ["a", "c", "d"]
    assert [(r.offset, r.index) for r in derived.rejects] == [(102, 1)]
    assert "1/2" not in derived.rejects[0].reason


def test_several_fields_are_folders_within_each_other_in_their_order() -> None:
    derived = derive(
        b'{"id":"a","day":"1","region":"eu"}', b'{"id":"b","day":"2"}', b'{"id":"c","day":"","region":"eu"}',
        b'{"id":"d","day":"1","region":"eu"}', b'{"id":"e","day":"1/2","region":"eu"}',
        ddl="id STRING, day STRING, region STRING", partition_fields=("region", "day"), hive_style=True,
    )  # fmt: skip
    assert derived.table_partition.to_pylist() == [
        "region=eu/day=1",
        "region=__HIVE_DEFAULT_PARTITION__/day=2",
        "region=eu/day=__HIVE_DEFAULT_PARTITION__",
        "region=eu/day=1",
    ]
    assert [reject.index for reject in derived.rejects] == [4]
    assert derived.rejects[0].reason.startswith("field day: a value with '/'")


def test_as_many_combinations_as_rows_are_each_in_their_own_folder() -> None:
    values = [b'{"id":"%d","day":"%d","region":"%d"}' % (i, i % 83, i) for i in range(2_000)]
    ddl = "id STRING, day STRING, region STRING"
    derived = derive(*values, ddl=ddl, partition_fields=("day", "region", "id"))
    assert derived.table_partition.to_pylist() == [f"{i % 83}/{i}/{i}" for i in range(2_000)]


def test_folders_that_no_store_could_name_in_all_are_refused() -> None:
    long = b"x" * 199
    names = ("a", "b", "c", "d")
    value = b'{"id":"1",' + b",".join(b'"%s":"%s"' % (name.encode(), long) for name in names) + b"}"
    ddl = "id STRING, a STRING, b STRING, c STRING, d STRING"
    assert derive(value, ddl=ddl, partition_fields=names[:3]).count == 1
    refused = derive(value, ddl=ddl, partition_fields=names)
    assert "values of more than 600 bytes" in refused.rejects[0].reason


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("s3a://lake/t", "a\\b", "some servers take it for '/'"),
        ("gs://lake/t", "a\\", "some servers take it for '/'"),
        ("abfss://lake@one.dfs.core.windows.net/t", "\\b", "some servers take it for '/'"),
        ("abfss://lake@one.dfs.core.windows.net/t", "a.", "Hadoop does not write there"),
        ("s3a://lake/t", "a.", ""),
        ("hdfs://nn/t", "a\\b.", ""),
        ("file:///lake/t", "a\\b.", ""),
    ],
)
def test_a_value_whose_folder_not_all_find_in_that_store_is_refused(path: str, value: str, said: str) -> None:
    """Rows in it would be committed, and neither compacted nor shown by Spark."""
    record = json.dumps({"id": "a", "region": "eu", "day": value}).encode()
    ddl = "id STRING, day STRING, region STRING"
    for style in (False, True):
        derived = derive(record, path=path, ddl=ddl, partition_fields=("region", "day"), hive_style=style)
        assert derived.count == (0 if said else 1)
        assert all(said in one.reason and "field day" in one.reason for one in derived.rejects)
    if "\\" in value and not value.endswith("."):
        coded = derive(record, path=path, ddl=ddl, partition_fields=("region", "day"), url_encode=True)
        assert coded.count == 1 and "%5C" in coded.table_partition.to_pylist()[0]


def test_a_function_makes_a_column_behind_the_records_own_and_its_folder() -> None:
    derived = derive(
        b'{"id":"a","day":"x","at":"2026-11-26T23:30:00Z"}', b'{"id":"b"}',
        partition_fields=("day", "at_day"), partition_terms=('day(at, "Europe/Berlin")',), hive_style=True,
    )  # fmt: skip
    assert derived.table.column_names[:5] == ["id", "day", "at", "at_day", "_kafka_topic"]
    assert derived.table.column("at_day").to_pylist() == ["2026-11-27", None]
    assert derived.table_partition.to_pylist() == [
        "day=x/at_day=2026-11-27",
        "day=__HIVE_DEFAULT_PARTITION__/at_day=__HIVE_DEFAULT_PARTITION__",
    ]


def test_a_column_that_is_made_is_none_of_the_records_own() -> None:
    layout = replace(LAYOUT, partition_fields=("at_day",), partition_terms=("day(at)",))
    schema = columns_of(layout)
    assert schema.names[3] == "at_day" and record_schema(schema).names == ["id", "day", "at"]
    read = pa.schema([field.remove_metadata() for field in schema])
    assert record_schema(read, made=("at_day",)).names == ["id", "day", "at"]


def test_times_that_are_too_far_away_are_rejects_of_their_own_records() -> None:
    values = [b'{"id":"%d","at":"2026-11-%02dT00:00:00Z"}' % (day, day) for day in (20, 26, 28)]
    changes: dict[str, Any] = {"partition_fields": ("at_day",), "partition_terms": ("day(at)",)}
    now_ms = 1_795_651_200_000  # 2026-11-26
    bounds = Bounds(max_age_ms=3 * 86_400_000, max_ahead_ms=86_400_000)
    derived = derive(*values, timestamp_ms=now_ms, partition_bounds=bounds, **changes)
    assert derived.record_key.to_pylist() == ["26"]
    assert [reject.index for reject in derived.rejects] == [0, 2]
    aside = replace(bounds, set_aside=True)
    derived = derive(*values, timestamp_ms=now_ms, partition_bounds=aside, **changes)
    assert derived.table_partition.to_pylist() == ["late", "2026-11-26", "late"]


@pytest.mark.parametrize("hive_style", [False, True])
def test_by_now_all_rows_are_where_their_transactions_instant_says(hive_style: bool) -> None:
    layout = replace(
        LAYOUT,
        partition_fields=("day", "hour"),
        partition_terms=('hour(now(), "Asia/Tokyo") as hour',),
        hive_style=hive_style,
    )
    names = [one.name for one in fields(LAYOUT) if one.name != "body"]
    given = {name: getattr(layout, name) for name in names}
    shaped = derive(b'{"id":"a","day":"x"}', b'{"id":"b","day":"y"}', b'{"id":"c","day":"x"}', **given)
    for instant, hour in (("20261231145959999", "2026-12-31-23"), ("20261231150000000", "2027-01-01-00")):
        dated = Dated(layout, instant).rows(shaped)
        assert dated.table.column("hour").to_pylist() == [hour] * 3
        folder = f"day=x/hour={hour}" if hive_style else f"x/{hour}"
        assert dated.table_partition.to_pylist()[::2] == [folder] * 2
        assert dated.table.column_names == columns_of(layout).names
        assert dated.count == 3 and not shaped.refused


@pytest.mark.parametrize("hive_style", [False, True])
@pytest.mark.parametrize("url_encode", [False, True])
def test_no_text_of_a_record_is_taken_for_the_mark_of_now(url_encode: bool, hive_style: bool) -> None:
    """Neither a folder above the table's, nor a name that no file system takes."""
    layout = replace(
        LAYOUT,
        partition_fields=("day", "hour"),
        partition_terms=("hour(now()) as hour",),
        hive_style=hive_style,
        url_encode=url_encode,
    )
    names = [one.name for one in fields(LAYOUT) if one.name != "body"]
    given = {name: getattr(layout, name) for name in names}
    texts = ("\0", "\0hour\0", "\0hour\0/../../../elsewhere", "\0day\0")
    shaped = derive(*(json.dumps({"id": "a", "day": text}).encode() for text in texts), **given)
    if not url_encode:
        assert len(shaped.refused) == len(texts) and not shaped.count
        return
    dated = Dated(layout, "20261231145959999").rows(shaped)
    wanted = [text.replace("\0", "%00").replace("/", "%2F") for text in texts]
    shape = "day={}/hour={}" if hive_style else "{}/{}"
    assert dated.table_partition.to_pylist() == [shape.format(one, "2026-12-31-14") for one in wanted]


def test_a_table_without_partitions_has_one_whose_name_is_empty() -> None:
    derived = derive(b'{"id":"a"}', b'{"id":"b"}')
    assert derived.table_partition.to_pylist() == ["", ""]


def test_a_table_without_key_fields_has_coordinates_as_keys() -> None:
    derived = derive(b"{}", b"oops", b"{}", key_fields=(), key_format="coordinates")
    assert derived.record_key.to_pylist() == ["events-3-100", "events-3-104"]


def test_a_complex_key_goes_by_the_tables_fields() -> None:
    derived = derive(b'{"id":"a","day":"1"}', key_fields=("id", "day"), key_format="complex")
    assert derived.record_key.to_pylist() == ["id:a,day:1"]


EXTREMES = [
    (-(2**63), "0001-01-01T00:00:00+00:00"),
    (-(2**62), "0001-01-01T00:00:00+00:00"),
    (-62_135_596_800_001, "0001-01-01T00:00:00+00:00"),
    (-62_135_596_800_000, "0001-01-01T00:00:00+00:00"),
    (-1, "1969-12-31T23:59:59.999000+00:00"),
    (0, "1970-01-01T00:00:00+00:00"),
    (253_402_300_799_999, "9999-12-31T23:59:59.999000+00:00"),
    (253_402_300_800_000, "9999-12-31T23:59:59.999000+00:00"),
    (2**62, "9999-12-31T23:59:59.999000+00:00"),
    (2**63 - 1, "9999-12-31T23:59:59.999000+00:00"),
]


@pytest.mark.parametrize(("given_ms", "shown"), EXTREMES)
def test_a_timestamp_that_no_calendar_has_is_the_nearest_that_one_has(given_ms: int, shown: str) -> None:
    derived = derive(b'{"id":"a"}', timestamp_ms=given_ms)
    assert derived.table.column("_kafka_timestamp")[0].as_py().isoformat() == shown
    assert not derived.rejects


def test_a_table_without_kafka_columns_gets_none() -> None:
    assert derive(b'{"id":"a"}', kafka_columns=False).table.column_names == ["id", "day", "at"]


def test_a_batch_without_rows_derives_to_nothing() -> None:
    for values in ((), (b"oops",), (b'{"id":""}',)):
        derived = derive(*values, partition_fields=("day",))
        assert derived.table.num_rows == len(derived.record_key) == len(derived.table_partition) == 0
        assert derived.table.column_names == table_schema(LAYOUT.ddl, True).names


def test_a_key_that_is_a_column_is_not_counted_twice_as_memory() -> None:
    derived = derive(*[b'{"id":"%064d"}' % i for i in range(1_000)])
    assert derived.nbytes < 1.1 * (derived.table.nbytes + derived.table_partition.nbytes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"key_fields": ("nope",)}, "column nope is to be a record key, but the schema does not have it"),
        ({"partition_fields": ("nope",)}, "column nope is to be a table partition"),
        ({"ddl": "id DOUBLE"}, "column id: a DOUBLE cannot be a record key"),
        (
            {"ddl": "id STRING, f FLOAT", "partition_fields": ("f",)},
            "column f: a FLOAT cannot be a table partition",
        ),
        ({"key_fields": ("id", "day")}, "a plain record key is one column, not 2"),
        ({"key_fields": (), "key_format": "complex"}, "a complex record key has at least one column"),
    ],
)
def test_a_layout_that_the_schema_cannot_serve_is_refused(changes: dict[str, Any], sentence: str) -> None:
    layout = replace(LAYOUT, **changes)
    with pytest.raises(SchemaError, match=sentence.replace("(", r"\(")):
        InsertShaper(layout, table_schema(layout.ddl, True))


def test_columns_of_derived_rows_have_the_tables_types() -> None:
    derived = derive(b'{"id":"a"}')
    for field, wanted in zip(derived.table.schema, table_schema(LAYOUT.ddl, True), strict=True):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        assert (field.name, kind, field.nullable) == (wanted.name, wanted.type, wanted.nullable)
