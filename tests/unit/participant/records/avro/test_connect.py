"""Types that Kafka Connect and Debezium name in Avro: which columns take them, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from participant.records.avro.format import AvroFormat
from participant.records.port import Decoded, RecordSpec
from participant.records.raw import RawBatch, Values
from table.schema import SchemaError, parse_ddl
from tests.avro_types import bare, record, written

ROOT = Path(__file__).resolve().parents[5]
DEBEZIUM, CONNECT = "io.debezium.", "org.apache.kafka.connect.data."
MOMENT = datetime(2026, 11, 26, 15, 4, 5, 678_901)
MICROS = 1_795_705_445_678_901


def named(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """As Confluent's AvroConverter writes a type of Connect's."""
    return {"type": kind, "connect.version": 1, "connect.name": name, **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return named("bytes", f"{CONNECT}Decimal", logicalType="decimal", precision=precision, scale=scale)


def by_parameters(**parameters: str) -> dict[str, Any]:
    """As the converter wrote a decimal before it knew Avro's."""
    return named("bytes", f"{CONNECT}Decimal", **{"connect.parameters": parameters})


def number(value: int, size: int = 17) -> bytes:
    return value.to_bytes(size, "big", signed=True)


VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
    "connect.name": f"{DEBEZIUM}data.VariableScaleDecimal",
}

TAKEN: list[tuple[Any, str, Any, Any]] = [
    (named("int", f"{DEBEZIUM}time.Date"), "DATE", 20_783, date(2026, 11, 26)),
    (named("int", f"{DEBEZIUM}time.Date"), "INT", 20_783, 20_783),
    (
        *(named("long", f"{DEBEZIUM}time.Timestamp"), "TIMESTAMP_NTZ"),
        *(MICROS // 1000, MOMENT.replace(microsecond=678_000)),
    ),
    (named("long", f"{DEBEZIUM}time.Timestamp"), "BIGINT", 5, 5),
    (named("long", f"{DEBEZIUM}time.MicroTimestamp"), "TIMESTAMP_NTZ", MICROS, MOMENT),
    (named("long", f"{DEBEZIUM}time.MicroTimestamp"), "BIGINT", MICROS, MICROS),
    (named("long", f"{DEBEZIUM}time.NanoTimestamp"), "BIGINT", 2**62, 2**62),
    (
        *(named("string", f"{DEBEZIUM}time.ZonedTimestamp"), "TIMESTAMP"),
        *("2026-11-26T17:04:05.678901+02:00", MOMENT.replace(tzinfo=UTC)),
    ),
    (named("string", f"{DEBEZIUM}time.ZonedTimestamp"), "STRING", "whatever", "whatever"),
    (named("string", f"{DEBEZIUM}time.IsoTimestamp"), "TIMESTAMP_NTZ", "2026-11-26T15:04:05.678901Z", MOMENT),
    (named("string", f"{DEBEZIUM}time.IsoTimestamp"), "STRING", "x", "x"),
    (named("string", f"{DEBEZIUM}time.IsoDate"), "DATE", "2026-11-26Z", date(2026, 11, 26)),
    (named("string", f"{DEBEZIUM}time.IsoDate"), "STRING", "x", "x"),
    (named("int", f"{CONNECT}Date", logicalType="date"), "DATE", 20_783, date(2026, 11, 26)),
    (
        *(named("long", f"{CONNECT}Timestamp", logicalType="timestamp-millis"), "TIMESTAMP"),
        *(MICROS // 1000, MOMENT.replace(microsecond=678_000, tzinfo=UTC)),
    ),
    (
        *(named("long", f"{CONNECT}Timestamp", logicalType="timestamp-millis"), "TIMESTAMP_NTZ"),
        *(MICROS // 1000, MOMENT.replace(microsecond=678_000)),
    ),
    (decimal(10, 2), "DECIMAL(12,3)", number(-1234), Decimal("-1.2340") * 10),
    (decimal(64, 2), "DECIMAL(5,3)", number(1234), Decimal("12.340")),
    (decimal(64, 127), "DECIMAL(38,10)", number(-60 * 10**127, 60), Decimal(-60)),
    (decimal(64, -2), "DECIMAL(38,10)", number(5), Decimal(500)),
    (decimal(5, -2), "DECIMAL(7,0)", number(99_999), Decimal(9_999_900)),
    (decimal(3, 5), "DECIMAL(5,5)", number(-123), Decimal("-0.00123")),
    (by_parameters(scale="3"), "DECIMAL(6,3)", number(1234), Decimal("1.234")),
    (by_parameters(scale="-1"), "DECIMAL(6,3)", number(12), Decimal(120)),
    (VARIABLE, "DECIMAL(6,3)", {"scale": 2, "value": number(-1234)}, Decimal("-12.340")),
    (VARIABLE, "DECIMAL(6,1)", {"scale": 3, "value": number(12_300)}, Decimal("12.3")),
    (VARIABLE, "DECIMAL(6,1)", {"scale": -2, "value": number(12)}, Decimal("1200.0")),
    (VARIABLE, "STRUCT<scale: INT>", {"scale": 2, "value": b"\1"}, {"scale": 2}),
]


def decoded(avro: Any, ddl: str, *values: Any) -> Decoded:
    """By the plain decoder, and the native one says the same where it is compiled."""
    spec = RecordSpec(format="avro", framing="none", schema_text=record({"x": avro}))
    rows = [written(record({"x": bare(avro, value)}), {"x": value}) for value in values]
    offsets = np.arange(len(rows), dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition("t", 0), offsets=offsets, timestamps_ms=offsets, values=Values.of(rows)
    )
    plain, native = (
        AvroFormat(replace(spec, decoder=decoder)).values(parse_ddl(f"x {ddl}")).decode(batch)
        for decoder in ("plain", "auto")
    )
    assert native.table.to_pylist() == plain.table.to_pylist()
    assert native.rejects.by_place() == plain.rejects.by_place()
    return plain


def name_of(avro: dict[str, Any]) -> str:
    return str(avro["connect.name"])


@pytest.mark.parametrize(
    ("avro", "ddl", "value", "read"), TAKEN, ids=[f"{name_of(a)}-{d}" for a, d, _, _ in TAKEN]
)
def test_a_type_that_connect_names_is_read_into_the_columns_that_it_means(
    avro: dict[str, Any], ddl: str, value: Any, read: Any
) -> None:
    found = decoded(avro, ddl, value)
    assert not found.rejects, found.rejects[0].reason
    found.table.validate(full=True)
    assert found.table.column("x").to_pylist() == [read]


@pytest.mark.parametrize(
    ("avro", "ddl", "value", "why"),
    [
        (named("int", f"{DEBEZIUM}time.Date"), "DATE", 2_932_897, "a time outside the years 1 to 9999"),
        (named("long", f"{DEBEZIUM}time.MicroTimestamp"), "TIMESTAMP_NTZ", 2**62, "a time outside the years"),
        (
            named("string", f"{DEBEZIUM}time.ZonedTimestamp"),
            "TIMESTAMP",
            "2026-11-26T17:04:05.6789012Z",
            "is no",
        ),
        (named("string", f"{DEBEZIUM}time.IsoDate"), "DATE", "2026-11-26 ", "a string that is no date"),
        (decimal(64, 2), "DECIMAL(5,3)", number(10_000), "more digits than its schema or column has"),
        (decimal(64, 127), "DECIMAL(38,10)", number(6 * 10**116, 60), "of more digits than the column"),
        (decimal(64, 127), "DECIMAL(38,10)", b"", "or of no byte"),
        (decimal(64, 127), "DECIMAL(38,10)", b"\1" * 300, "of more digits"),
        (decimal(64, -2), "DECIMAL(4,0)", number(100), "of more digits"),
        (decimal(64, -2), "DECIMAL(2,0)", number(1), "of more digits than the column"),
        (VARIABLE, "DECIMAL(6,3)", {"scale": 4, "value": number(1)}, "of more digits than the column"),
        (VARIABLE, "DECIMAL(6,3)", {"scale": 0, "value": number(1_000)}, "of more digits than the column"),
        (VARIABLE, "DECIMAL(6,3)", {"scale": 0, "value": b""}, "or of no byte"),
        (VARIABLE, "DECIMAL(6,3)", {"scale": -2_000_000_000, "value": b"\1"}, "of more digits"),
        (VARIABLE, "DECIMAL(6,3)", {"scale": 0, "value": b"\1" * 300}, "of more digits"),
    ],
)
def test_what_does_not_go_into_its_column_whole_is_a_reject(
    avro: dict[str, Any], ddl: str, value: Any, why: str
) -> None:
    (reject,) = decoded(avro, ddl, value).rejects
    assert reject.reason.startswith("field x: ") and why in reject.reason


@pytest.mark.parametrize(
    ("avro", "ddl", "why"),
    [
        (
            *(named("long", f"{DEBEZIUM}time.MicroTimestamp"), "TIMESTAMP"),
            "a long is not read as TIMESTAMP; it is as BIGINT or TIMESTAMP_NTZ",
        ),
        (named("long", f"{DEBEZIUM}time.NanoTimestamp"), "TIMESTAMP_NTZ", "it is as BIGINT"),
        (named("long", f"{DEBEZIUM}time.Date"), "DATE", "it is as BIGINT"),
        (decimal(63, 2), "DECIMAL(38,2)", "does not fit into"),
        (decimal(64, 127), "BINARY", "field x: a decimal(64,127) is not read as BINARY; it is as a DECIMAL"),
        (decimal(64, -2), "BIGINT", "field x: a decimal(64,-2) is not read as BIGINT; it is as a DECIMAL"),
        (decimal(64, 401), "DECIMAL(38,2)", "field x: a decimal of unknown scale is not read as DECIMAL"),
        (by_parameters(), "BINARY", "field x: a decimal of unknown scale is not read as BINARY"),
        ({**VARIABLE, "namespace": "x"}, "DECIMAL(38,2)", "a record is not read as DECIMAL"),
        ({**VARIABLE, "fields": VARIABLE["fields"][:1]}, "DECIMAL(38,2)", "a record is not read as DECIMAL"),
    ],
)
def test_a_name_of_connects_makes_no_other_type_of_what_avro_says(
    avro: dict[str, Any], ddl: str, why: str
) -> None:
    with pytest.raises(SchemaError, match=re.escape(why)):
        decoded(avro, ddl)


def test_each_line_of_the_document_is_read_and_what_is_read_is_in_it() -> None:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    table = text.partition("### What Kafka Connect and Debezium write")[2].partition("###")[0]
    rows = [row.split("|")[1:3] for row in table.splitlines() if row.startswith("| `")]
    documented = {
        (name, column)
        for types, columns in rows
        for name in re.findall(r"`((?:io|org)\.[A-Za-z.]+)", types)
        for column in re.findall(r"`([A-Z_]+)", columns)
    }
    assert {(name_of(avro), re.split("[(<]", ddl)[0]) for avro, ddl, _, _ in TAKEN} == documented
