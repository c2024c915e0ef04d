"""Columns that grow with the rows in change events of Avro: by confluent-kafka's own serializer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.serialization import MessageField

from participant.records.avro.events import row_of
from participant.records.avro.schema import parse
from participant.records.changes import EVOLVE, HALT, IGNORE
from participant.records.headers import pack
from participant.records.port import Decoded, Decoder, LookBack, RecordSpec, nothing
from participant.records.raw import RawBatch, Values
from participant.records.registry.settings import RegistrySettings
from participant.worker.stages import decoder
from table.port import UPSERT, TableSpec
from table.schema import POSITION_COLUMN, SchemaError, table_schema
from table.widening import ddl_of
from tests.avro_types import record
from tests.debezium_avro import ENVELOPE, TOPIC, envelope, event, optional, serialized
from tests.debezium_events import batch_of
from tests.registry_server import Registry

FIELDS = {"id": "int", "n": "int"}
OLD = envelope(FIELDS)
NEW = envelope({**FIELDS, "x": optional("double")})
RETYPED = envelope({**FIELDS, "n": "long"})
CONTRARY = envelope({**FIELDS, "n": "string"})
SUBJECT = f"{TOPIC}-value"
METADATA = {
    "type": "record",
    "name": "TransactionMetadataValue",
    "fields": [{"name": "status", "type": "string"}, {"name": "id", "type": "string"}],
}


class Reading:
    """A worker's decoder, and what connectors send to it."""

    def __init__(self, registry: Registry, folder: Path) -> None:
        self._registry, self._folder = registry, folder
        self._sent = 0

    def decoder(
        self,
        *,
        ddl: str = "id INT, n INT",
        changes: str = EVOLVE,
        look_back: LookBack = nothing,
        columns: Sequence[tuple[str, str]] = (),
        **table: Any,
    ) -> Decoder:
        settings = RegistrySettings(
            url=self._registry.url, timeout_ms=1_000, cache_folder=str(self._folder / "schemas")
        )
        spec = TableSpec(
            **{"path": "/t", "name": "t", "mode": UPSERT, "key_fields": ("id",), **table},
            ddl=ddl,
            ordering_field=POSITION_COLUMN,
            source_position=True,
        )
        record = RecordSpec(
            format="avro",
            key_format="avro",
            envelope="debezium",
            registry=settings,
            on_schema_change=changes,
            columns=tuple(columns),
        )
        return decoder(spec, table_schema(ddl, True, source_position=True), record, look_back)

    def sent(self, schema: Mapping[str, Any], op: str, lsn: int | None = None, **sides: Any) -> bytes:
        self._sent += 1
        place = self._sent if lsn is None else lsn
        return event(self._registry, op, place, self._sent, schema=schema, **sides)


@pytest.fixture
def reading(registry: Registry, tmp_path: Path) -> Reading:
    return Reading(registry, tmp_path)


def plain(decoded: Decoded) -> str:
    return ddl_of(decoded.table.schema).replace("`", "").removesuffix(f", {POSITION_COLUMN} BIGINT")


def rows(decoded: Decoded) -> list[dict[str, Any]]:
    assert decoded.stop is None and not decoded.rejects, (decoded.stop, decoded.rejects)
    table: pa.Table = decoded.table
    return list(table.drop_columns([POSITION_COLUMN]).to_pylist())


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "n": number, **more}


def test_the_columns_are_those_of_the_row_in_the_event() -> None:
    assert row_of(parse([json.dumps(NEW)]))[0] == "after"
    assert [name for name, _ in row_of(parse([json.dumps(NEW)]))[1].fields] == ["id", "n", "x"]
    before, _, *others = NEW["fields"]
    place, kind = row_of(parse([json.dumps({**NEW, "fields": [before, *others]})]))
    assert (place, [name for name, _ in kind.fields]) == ("before", ["id", "n", "x"])


@pytest.mark.parametrize("missing", ["op", "source", "both sides"])
def test_what_lacks_a_part_of_a_change_event_says_of_no_column(missing: str) -> None:
    gone = {"before", "after"} if missing == "both sides" else {missing}
    fields = [one for one in OLD["fields"] if one["name"] not in gone]
    with pytest.raises(SchemaError, match="no change event's"):
        row_of(parse([json.dumps({**OLD, "fields": fields})]))


def test_from_the_first_row_of_a_newer_schema_on_rows_have_its_columns(reading: Reading) -> None:
    reads = reading.decoder()
    first = reads.decode(batch_of([reading.sent(OLD, "c", after=row(1))]))
    assert plain(first) == "id INT, n INT"
    both = reads.decode(
        batch_of(
            [
                reading.sent(OLD, "u", before=row(1), after=row(1)),
                reading.sent(NEW, "u", before=row(1, x=None), after=row(1, x=0.5)),
                reading.sent(OLD, "c", after=row(2)),
                reading.sent(NEW, "d", before=row(2, x=1.5)),
            ]
        )
    )
    assert plain(both) == "id INT, n INT, x DOUBLE"
    assert rows(both) == [row(1, x=None), row(1, x=0.5), row(2, x=None), row(2, x=1.5)]
    assert both.deleted is not None and both.deleted.tolist() == [False, False, False, True]
    assert getattr(reads, "news", "") == f"schema 2 ({SUBJECT} version 2)"
    assert plain(reads.decode(batch_of([reading.sent(OLD, "c", after=row(3))]))) == "id INT, n INT, x DOUBLE"


@pytest.mark.parametrize("changes", [EVOLVE, HALT])
@pytest.mark.parametrize("newer", [NEW, envelope({**FIELDS, "u": ["int", "string"]})])
def test_what_brings_no_row_brings_no_column_and_stops_nothing_until_a_row_does(
    registry: Registry, reading: Reading, changes: str, newer: Mapping[str, Any]
) -> None:
    """Deletes, truncates, events that are none, transactions' beginnings and ends, tombstones."""
    reads = reading.decoder(changes=changes)
    more = {"x": 0.5} if newer is NEW else {"u": 1}
    metadata = serialized(registry, METADATA, {"status": "BEGIN", "id": "7"}, MessageField.VALUE)
    delete = reading.sent(newer, "d", before=row(1, **more))
    for _ in range(2):
        found = reads.decode(
            batch_of(
                [
                    delete,
                    reading.sent(newer, "t"),
                    reading.sent(newer, "u", before=row(1, **more)),
                    metadata,
                    delete[:-3],
                    None,
                ]
            )
        )
        assert found.stop is None and plain(found) == "id INT, n INT"
        assert found.deleted is not None and found.deleted.tolist() == [True]
        reasons = found.rejects.by_place()
        assert reasons[3].startswith("field op is missing") and reasons[2].startswith("op u, and field after")
        assert sorted(reasons) == [1, 2, 3, 4, 5]  # the tombstone's key is none
    found = reads.decode(batch_of([delete, reading.sent(newer, "c", after=row(2, **more))]))
    if newer is NEW and changes == EVOLVE:
        assert plain(found) == "id INT, n INT, x DOUBLE"
    else:
        assert found.stop is not None and found.stop[0] == 1


def test_a_delete_that_cannot_be_read_without_a_wider_column_widens_it(reading: Reading) -> None:
    reads = reading.decoder()
    found = reads.decode(batch_of([reading.sent(RETYPED, "d", before=row(1))]))
    assert plain(found) == "id INT, n BIGINT"
    assert rows(found) == [row(1)]


@pytest.mark.parametrize("schema", [RETYPED, CONTRARY])
def test_a_delete_stops_no_run_that_halts_at_changes(reading: Reading, schema: Mapping[str, Any]) -> None:
    """It is a reject as without columns that follow."""
    n: Any = "x" if schema is CONTRARY else 1
    gone = reading.sent(schema, "d", before={"id": 1, "n": n})
    found = reading.decoder(changes=HALT).decode(batch_of([gone]))
    assert found.stop is None and "cannot be read by: field before.n" in found.rejects[0].reason


def test_a_run_that_halts_at_changes_stops_and_names_field_subject_and_version(reading: Reading) -> None:
    values = [reading.sent(OLD, "c", after=row(1)), reading.sent(NEW, "c", after=row(2, x=None))]
    stop = reading.decoder(changes=HALT).decode(batch_of(values)).stop
    assert stop is not None and stop[0] == 1
    assert stop[1].startswith(f"schema 2 ({SUBJECT} version 2) has what the table has not, after.x DOUBLE, ")


IGNORED = 'record.on_schema_change = "ignore"'


@pytest.mark.parametrize(
    ("fields", "why", "advice"),
    [
        ({**FIELDS, "n": "string"}, "field after.n is INT and would be STRING", IGNORED),
        (
            {**FIELDS, "id": "long"},
            "field after.id is INT and would be BIGINT, and rows or files are found",
            "begin a new table",
        ),
        (
            {**FIELDS, "u": ["int", "string"]},
            "field after.u: a union of int, string goes into no column",
            IGNORED,
        ),
        ({**FIELDS, "N": "int"}, "field after.N is there as n", IGNORED),
        ({**FIELDS, POSITION_COLUMN: "int"}, f"column {POSITION_COLUMN}: names that begin with", IGNORED),
    ],
)
def test_what_no_column_holds_stops_at_that_event_and_says_what_to_do(
    reading: Reading, fields: Mapping[str, Any], why: str, advice: str
) -> None:
    given: dict[str, Any] = {name: "x" if kind == "string" else 1 for name, kind in fields.items()}
    stop = reading.decoder().decode(batch_of([reading.sent(envelope(fields), "c", after=given)])).stop
    assert stop is not None and stop[0] == 0
    assert stop[1].startswith(f"schema 1 ({SUBJECT} version 1): {why}")
    assert advice in stop[1]


def test_what_is_ignored_is_read_over(reading: Reading) -> None:
    reads = reading.decoder(changes=IGNORE)
    found = reads.decode(batch_of([reading.sent(NEW, "c", after=row(1, x=0.5))]))
    assert rows(found) == [row(1)]


def test_columns_from_elsewhere_stay_as_they_are_and_paths_begin_at_the_row(reading: Reading) -> None:
    reads = reading.decoder(ddl="id INT, m BIGINT", columns=[("m", "value.n")])
    found = reads.decode(batch_of([reading.sent(RETYPED, "c", after=row(1))]))
    assert rows(found) == [{"id": 1, "m": 1}]
    wider = envelope({**FIELDS, "n": "long", "x": "double"})
    found = reads.decode(batch_of([reading.sent(wider, "c", after=row(2, x=0.5))]))
    assert rows(found) == [{"id": 2, "m": 2, "x": 0.5}]


def test_of_events_whose_schema_a_header_names_it_is_the_same(reading: Reading) -> None:
    def named(*values: bytes) -> RawBatch:
        bare = batch_of([value[5:] for value in values])
        headers = [pack([("__value_schema_id", value[:5])]) for value in values]
        return replace(bare, headers=Values.of(headers))

    reads = reading.decoder()
    delete = reading.sent(NEW, "d", before=row(1, x=0.5))
    assert plain(reads.decode(named(delete))) == "id INT, n INT"
    found = reads.decode(named(delete, reading.sent(NEW, "c", after=row(2, x=0.5))))
    assert rows(found) == [row(1, x=0.5), row(2, x=0.5)]


def test_a_new_log_is_noticed_where_columns_have_grown_in_between(reading: Reading) -> None:
    reads = reading.decoder()
    assert rows(reads.decode(batch_of([reading.sent(OLD, "c", 900, after=row(1))])))
    fallen = batch_of([reading.sent(NEW, "c", 3, after=row(2, x=0.5))], first=1)
    stop = reads.decode(fallen).stop
    assert stop is not None and "has a new log" in stop[1]


def test_a_new_log_is_noticed_where_what_was_before_had_wider_columns(reading: Reading) -> None:
    """As a worker meets it that takes another's place and begins where the run began."""
    before = batch_of([reading.sent(RETYPED, "c", 900, after=row(1))], first=10)
    reads = reading.decoder(look_back=lambda _partition, _offset: [before])
    stop = reads.decode(batch_of([reading.sent(OLD, "c", 3, after=row(2))], first=11)).stop
    assert stop is not None and "has a new log" in stop[1]


def test_events_with_all_that_debezium_writes_have_the_columns_that_it_means(reading: Reading) -> None:
    wide = reading.decoder(ddl="id INT").decode(
        batch_of([reading.sent(ENVELOPE, "c", after={"id": 1, "paid": Decimal("1.00")})])
    )
    assert plain(wide) == (
        "id INT, paid DECIMAL(10,2), due DATE, made TIMESTAMP_NTZ, seen TIMESTAMP, "
        "free STRUCT<scale: INT, value: BINARY>, note STRING, kind STRING"
    )


def test_values_that_are_rows_with_a_field_after_are_no_events() -> None:
    with pytest.raises(SchemaError):
        row_of(parse([record({"id": "int", "after": "string", "op": "string", "source": "string"})]))
