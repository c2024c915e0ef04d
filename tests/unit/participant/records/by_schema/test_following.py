"""Columns that grow with the schemas that records name: by the formats' own readers and a real server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from control_topic.messages import SourcePartition
from participant.records.by_schema import following
from participant.records.by_schema.following import FollowingDecoder
from participant.records.changes import EVOLVE, HALT, IGNORE
from participant.records.errors import SchemasUnavailable
from participant.records.headers import pack
from participant.records.port import Decoder, RecordSpec
from participant.records.raw import RawBatch, Values
from participant.records.registry.settings import RegistrySettings
from participant.worker.stages import decoder
from table.partition_columns import columns_of as columns_of_table
from table.port import UPSERT, TableLayout, TableSpec
from table.schema import table_schema
from table.widening import ddl_of
from tests.avro_types import record, written
from tests.harness import await_that
from tests.proto_files import Classes, compiled
from tests.registry_server import ERROR, WELL, Registry

NARROW = record({"id": "string", "n": "int"})
WIDE = record({"id": "string", "n": "long", "at": ["null", "double"]})
SUBJECT = "events-value"
MADE_OF = {"partition_fields": ("ts_day",), "partition_terms": ("day(_kafka_timestamp) as ts_day",)}


def registered(registry: Registry, *texts: str) -> list[int]:
    return [registry.known.register(SUBJECT, {"schema": text}) for text in texts]


def made(
    registry: Registry, folder: Path, ddl: str = "id STRING, n INT", *, changes: str = EVOLVE, **table: Any
) -> Decoder:
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(folder / "schemas"))
    of = "avro" if table.get("kind") != "protobuf" else table.pop("kind")
    spec = TableSpec(path="/t", name="t", ddl=ddl, **{"mode": "insert", "key_fields": ("id",), **table})
    record = RecordSpec(format=of, key_format=of, registry=settings, on_schema_change=changes)
    return decoder(spec, table_schema(ddl, True), record)


def batch(values: Sequence[bytes | None], headers: Sequence[bytes] | None = None) -> RawBatch:
    offsets = np.arange(len(values), dtype=np.int64)
    return RawBatch(
        partition=SourcePartition("events", 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(list(values)),
        headers=Values.of(headers) if headers is not None else None,
    )


def value(number: int, text: str, **row: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + written(text, row)


def plain(table: pa.Table) -> str:
    return ddl_of(table.schema).replace("`", "")


def test_from_the_first_record_of_a_newer_schema_on_rows_have_its_columns(
    registry: Registry, tmp_path: Path
) -> None:
    old, new = registered(registry, NARROW, WIDE)
    reads = made(registry, tmp_path)
    first = value(old, NARROW, id="a", n=1)
    before = reads.decode(batch([first]))
    assert plain(before.table) == "id STRING, n INT"
    both = reads.decode(
        batch([first, value(new, WIDE, id="b", n=2**40, at=0.5), value(old, NARROW, id="c", n=3)])
    )
    assert plain(both.table) == "id STRING, n BIGINT, at DOUBLE"
    assert both.table.to_pylist() == [
        {"id": "a", "n": 1, "at": None},
        {"id": "b", "n": 2**40, "at": 0.5},
        {"id": "c", "n": 3, "at": None},
    ]
    assert plain(reads.decode(batch([first])).table) == "id STRING, n BIGINT, at DOUBLE"
    assert getattr(reads, "news", "") == f"schema {new} ({SUBJECT} version 2)"


def test_a_schema_is_asked_for_once_however_often_the_columns_grow(
    registry: Registry, tmp_path: Path
) -> None:
    texts = [record({"id": "string", **{f"c{n}": "int" for n in range(count)}}) for count in range(5)]
    numbers = registered(registry, *texts)
    rows = [
        value(number, text, id="a", **{f"c{n}": n for n in range(count)})
        for count, (number, text) in enumerate(zip(numbers, texts, strict=True))
    ]
    reads = made(registry, tmp_path, "id STRING")
    decoded = reads.decode(batch(rows))
    assert decoded.table.column_names == ["id", "c0", "c1", "c2", "c3"]
    asked = [one for one in registry.asked if one.split("?")[0].rsplit("/", 1)[-1].isdigit()]
    assert sorted(asked) == sorted(set(asked)) and len(asked) == 5


def test_what_is_ignored_is_read_over(registry: Registry, tmp_path: Path) -> None:
    (new,) = registered(registry, WIDE)
    reads = made(registry, tmp_path, "id STRING, n BIGINT", changes=IGNORE)
    assert not isinstance(reads, FollowingDecoder)
    assert reads.decode(batch([value(new, WIDE, id="b", n=1, at=None)])).table.column_names == ["id", "n"]


def test_a_run_that_halts_at_changes_stops_at_the_first_record_and_names_field_subject_and_version(
    registry: Registry, tmp_path: Path
) -> None:
    old, new = registered(registry, NARROW, WIDE)
    reads = made(registry, tmp_path, changes=HALT)
    rows = [value(old, NARROW, id="a", n=1), value(new, WIDE, id="b", n=1, at=None)]
    assert reads.decode(batch(rows[:1])).stop is None
    stop = reads.decode(batch(rows)).stop
    assert stop is not None
    assert stop[0] == 1
    assert stop[1].startswith(
        f"schema {new} ({SUBJECT} version 2) has what the table has not, n BIGINT, at DOUBLE, and"
    )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"id": "string", "n": "string"}, "field n is INT and would be STRING"),
        ({"id": "long"}, "field id is STRING and would be BIGINT"),
        ({"id": "string", "u": ["string", "long"]}, "field u: a union of string, long goes into no column"),
        ({"id": "string", "_kafka_x": "int"}, "_kafka_"),
        ({"id": "string", "N": "int"}, "field N is there as n"),
    ],
)
def test_what_no_column_holds_stops_at_that_record_and_says_what_to_do(
    registry: Registry, tmp_path: Path, fields: Mapping[str, Any], why: str
) -> None:
    (number,) = registered(registry, record(fields))
    stop = made(registry, tmp_path).decode(batch([value(number, NARROW, id="a", n=1)])).stop
    assert stop is not None and stop[0] == 0
    assert stop[1].startswith(f"schema {number} ({SUBJECT} version 1): ") and why in stop[1]
    assert 'record.on_schema_change = "ignore"' in stop[1]


def test_a_column_by_which_rows_are_found_does_not_change(registry: Registry, tmp_path: Path) -> None:
    (number,) = registered(registry, record({"id": "string", "n": "long"}))
    reads = made(registry, tmp_path, partition_fields=("n",))
    stop = reads.decode(batch([value(number, WIDE, id="a", n=1, at=None)])).stop
    assert stop is not None and "rows or files are found by it" in stop[1]
    assert "begin a new table, with another pipeline.id and table.path" in stop[1]
    assert "on_schema_change" not in stop[1], "leaving the wider type out would reject the record"


def test_a_new_table_with_the_wider_type_has_the_rows_of_before_and_after(
    registry: Registry, tmp_path: Path
) -> None:
    """The advice of the halt before, followed as it is written."""
    wide = record({"id": "string", "n": "long"})
    old, new = registered(registry, NARROW, wide)
    reads = made(registry, tmp_path, "id STRING, n BIGINT", partition_fields=("n",))
    decoded = reads.decode(batch([value(old, NARROW, id="a", n=1), value(new, wide, id="b", n=2**40)]))
    assert decoded.stop is None and decoded.table.column("n").to_pylist() == [1, 2**40]


@pytest.mark.parametrize(
    ("fields", "table", "why"),
    [
        ({"ts_day": "int"}, MADE_OF, "makes the column ts_day, and records have a field of that name"),
        ({"TS_DAY": "int"}, MADE_OF, "makes the column ts_day, and records have a field of that name"),
        ({"n": "double"}, {"lookup_fields": ("n",)}, "n is DOUBLE; bloom filters are of"),
    ],
)
def test_what_other_settings_of_the_table_rule_out_stops_at_that_record_and_nothing_has_changed(
    registry: Registry, tmp_path: Path, fields: Mapping[str, Any], table: Mapping[str, Any], why: str
) -> None:
    texts = [NARROW, record({"id": "string", "n": "int", **fields})]
    old, new = registered(registry, *texts)
    ddl = "id STRING, n INT"
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    layout = TableLayout(
        **{"path": "/t", "key_fields": (), "partition_fields": (), "kafka_columns": True, **table},
        target_file_bytes=1,
        ddl=ddl,
        kind="hudi",
    )
    spec = RecordSpec(format="avro", registry=settings, on_schema_change=EVOLVE)
    reads = decoder(layout, columns_of_table(layout), spec)
    row = {"id": "a", "n": 1}
    rows = [value(old, texts[0], **row), value(new, texts[1], **{**row, **dict.fromkeys(fields, 1)})]
    for _ in range(2):
        stop = reads.decode(batch(rows)).stop
        assert stop is not None and stop[0] == 1
        assert stop[1].startswith(f"schema {new} ({SUBJECT} version 2) has more columns, ") and why in stop[1]
        assert 'record.on_schema_change = "ignore"' in stop[1]
        assert plain(reads.decode(batch(rows[:1])).table) == "id STRING, n INT"


def test_a_schema_that_is_not_known_or_none_is_a_reject_as_ever(registry: Registry, tmp_path: Path) -> None:
    (recursive,) = registered(
        registry,
        json.dumps(
            {"type": "record", "name": "r", "fields": [{"name": "r", "type": ["null", "r"]}]},
        ),
    )
    rows = [value(99, NARROW, id="a", n=1), b"\0\0", b"x" * 9, b"", value(recursive, NARROW, id="a", n=1)]
    decoded = made(registry, tmp_path).decode(batch(rows))
    assert decoded.stop is None
    assert [len(decoded.rejects), decoded.table.num_rows] == [5, 0]


def test_a_registry_that_is_away_is_an_outage_and_no_row_is_decoded_with_less(
    registry: Registry, tmp_path: Path
) -> None:
    (new,) = registered(registry, WIDE)
    reads = made(registry, tmp_path)
    row = value(new, WIDE, id="b", n=1, at=0.5)
    registry.does = ERROR
    with pytest.raises(SchemasUnavailable):
        reads.decode(batch([row]))
    registry.does = WELL

    def decoded() -> list[dict[str, Any]] | None:
        try:
            return list(reads.decode(batch([row])).table.to_pylist())
        except SchemasUnavailable:
            return None  # it is not asked again at once

    assert await_that("the schema", decoded) == [{"id": "b", "n": 1, "at": 0.5}]


def test_schemas_that_headers_and_guids_name_are_followed_as_well(registry: Registry, tmp_path: Path) -> None:
    (new,) = registered(registry, WIDE)
    datum = written(WIDE, {"id": "b", "n": 1, "at": 0.5})
    reads = made(registry, tmp_path)
    named = pack([("__value_schema_id", b"\0" + new.to_bytes(4, "big"))])
    decoded = reads.decode(batch([datum, datum], [named, named]))
    assert decoded.table.column("at").to_pylist() == [0.5, 0.5]
    guid = bytes.fromhex(str(registry.known.told(new)["guid"]).replace("-", ""))
    decoded = made(registry, tmp_path).decode(batch([b"\x01" + guid + datum]))
    assert decoded.table.column("at").to_pylist() == [0.5]


def test_values_that_begin_alike_are_looked_at_once_and_again_where_a_schema_is_new(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where more schemas are known than are compared one by one, or remembered at all."""
    texts = [record({"id": "string", f"c{place}": ["null", "int"]}) for place in range(12)]
    numbers = registered(registry, *texts)
    for keys_max in (1_000, 3):
        monkeypatch.setattr(following, "KEYS_MAX", keys_max)
        reads = made(registry, tmp_path, "id STRING")
        for count in range(1, 13):
            rows = [
                value(number, text, id="a", **{f"c{place}": place})
                for place, (number, text) in enumerate(zip(numbers[:count], texts, strict=False))
            ]
            table = reads.decode(batch([*rows, *rows[::-1], b"\0"])).table
            assert table.column_names == ["id", *(f"c{place}" for place in range(count))]
            assert table.to_pylist()[count - 1][f"c{count - 1}"] == count - 1


def test_of_an_upsert_table_records_without_a_value_are_deletes_as_before(
    registry: Registry, tmp_path: Path
) -> None:
    (new,) = registered(registry, WIDE)
    reads = made(registry, tmp_path, mode=UPSERT)
    row = value(new, WIDE, id="b", n=1, at=0.5)
    one = batch([None, row])
    decoded = reads.decode(
        RawBatch(
            partition=one.partition,
            offsets=one.offsets,
            timestamps_ms=one.timestamps_ms,
            values=one.values,
            keys={0: None},
        )
    )
    assert decoded.table.to_pylist() == [{"id": "b", "n": 1, "at": 0.5}]
    assert len(decoded.rejects) == 1


def test_a_table_has_no_more_columns_than_it_may(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "COLUMNS_MAX", 4)
    (number,) = registered(registry, record({"id": "string", **{f"c{n}": "int" for n in range(4)}}))
    stop = made(registry, tmp_path, "id STRING").decode(batch([value(number, NARROW, id="a", n=1)])).stop
    assert stop is not None and "more than 4 columns" in stop[1]


def test_fields_that_a_message_of_protobuf_gains_become_columns(registry: Registry, tmp_path: Path) -> None:
    sources = [
        'syntax = "proto3"; message E { string id = 1; }',
        'syntax = "proto3"; message E { string id = 1; int64 n = 2; }',
    ]
    rows = []
    for place, text in enumerate(sources):
        number = registry.known.register(SUBJECT, {"schema": text, "schemaType": "PROTOBUF"})
        made_of = Classes(compiled({f"e{place}.proto": text}))
        row = made_of["E"](id="a", **({"n": 7} if place else {}))
        rows.append(b"\0" + number.to_bytes(4, "big") + b"\0" + row.SerializeToString())
    reads = made(registry, tmp_path, "id STRING", kind="protobuf")
    decoded = reads.decode(batch([*rows, rows[0]]))
    assert decoded.table.to_pylist() == [{"id": "a", "n": None}, {"id": "a", "n": 7}, {"id": "a", "n": None}]


def test_a_column_from_elsewhere_stays_as_it_is_and_what_it_comes_from_is_no_column_of_its_own(
    registry: Registry, tmp_path: Path
) -> None:
    (number,) = registered(registry, record({"id": "string", "n": "string", "x": "long", "k": "double"}))
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    ddl, columns = "id STRING, n BIGINT, y BIGINT, k INT", (("n", "value.n as STRING"), ("y", "value.x"))
    spec = RecordSpec(
        format="avro", registry=settings, on_schema_change=EVOLVE, columns=(*columns, ("k", "partition"))
    )
    table = TableSpec(path="/t", name="t", mode="insert", ddl=ddl)
    reads = decoder(table, table_schema(ddl, True), spec)
    row = {"id": "a", "n": "7", "x": 8, "k": 0.5}
    text = record({"id": "string", "n": "string", "x": "long", "k": "double"})
    found = reads.decode(batch([value(number, text, **row)]))
    assert found.stop is None
    assert found.table.to_pylist() == [{"id": "a", "n": 7, "y": 8, "k": 0}]
    assert plain(found.table) == "id STRING, n BIGINT, y BIGINT, k INT"


def test_a_field_that_becomes_a_column_and_is_read_in_part_by_another_stops_where_both_cannot_be(
    registry: Registry, tmp_path: Path
) -> None:
    fits, other = (
        record(
            {"id": "string", "at": {"type": "record", "name": "at", "fields": [{"name": "x", "type": of}]}}
        )
        for of in ("long", "string")
    )
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    ddl = "id STRING, x BIGINT"
    spec = RecordSpec(
        format="avro", registry=settings, on_schema_change=EVOLVE, columns=(("x", "value.at.x"),)
    )
    table = TableSpec(path="/t", name="t", mode="insert", ddl=ddl)
    reads = decoder(table, table_schema(ddl, True), spec)
    first, second = registered(registry, fits, other)
    found = reads.decode(batch([value(first, fits, id="a", at={"x": 7})]))
    assert found.table.to_pylist() == [{"id": "a", "x": 7, "at": {"x": 7}}]

    reads = decoder(table, table_schema(ddl, True), spec)
    stopped = reads.decode(batch([value(second, other, id="a", at={"x": "7"})]))
    assert stopped.stop is not None
    why = "columns x and at both come from value.at.x, as BIGINT and as STRING: a field is read in one way"
    assert stopped.stop[0] == 0 and stopped.stop[1].startswith(f"schema {second} ({SUBJECT} version 2) has ")
    assert stopped.stop[1].endswith(f"{why}. {following.ADVICE}")


def test_a_new_column_whose_part_another_column_reads_as_another_type_stops_at_that_record(
    registry: Registry, tmp_path: Path
) -> None:
    inner = {"type": "record", "name": "inner", "fields": [{"name": "zip", "type": "int"}]}
    texts = [record({"id": "string"}), record({"id": "string", "address": inner})]
    old, new = registered(registry, *texts)
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    ddl = "id STRING, zip DOUBLE"
    spec = RecordSpec(
        format="avro",
        registry=settings,
        on_schema_change=EVOLVE,
        columns=(("zip", "value.address.zip"),),
    )
    reads = decoder(TableSpec(path="/t", name="t", mode="insert", ddl=ddl), table_schema(ddl, True), spec)
    rows = [value(old, texts[0], id="a"), value(new, texts[1], id="b", address={"zip": 7})]
    for _ in range(2):
        stop = reads.decode(batch(rows)).stop
        assert stop is not None and stop[0] == 1
        assert "both come from value.address.zip, as DOUBLE and as INT" in stop[1]
        assert reads.decode(batch(rows[:1])).table.to_pylist() == [{"id": "a", "zip": None}]
