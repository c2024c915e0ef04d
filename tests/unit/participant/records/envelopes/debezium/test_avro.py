"""Change events in Avro, shaped as Debezium's connectors write them, by confluent-kafka's own serializer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.serialization import MessageField

from participant.records.avro.format import AvroFormat
from participant.records.envelopes.debezium.decoder import WHY_TRUNCATE
from participant.records.envelopes.debezium.envelope import ChangeEventDecoder, ChangeEvents
from participant.records.json.format import JsonFormat
from participant.records.port import Asked, Decoded, RecordSpec
from participant.records.raw import RawBatch
from participant.records.registry.settings import RegistrySettings
from table.schema import POSITION_COLUMN, parse_ddl
from tests.debezium_avro import DDL, ENVELOPE, VALUE, event, key, serialized
from tests.debezium_events import batch_of
from tests.registry_server import Registry, Schemas


@pytest.fixture
def spec(registry: Registry, tmp_path: Path) -> RecordSpec:
    settings = RegistrySettings(url=registry.url, timeout_ms=1_000, cache_folder=str(tmp_path / "schemas"))
    return RecordSpec(format="avro", key_format="avro", envelope="debezium", registry=settings)


def row(number: int, **changed: Any) -> dict[str, Any]:
    return {"id": number, "paid": Decimal("12.34"), **changed}


def decoder(spec: RecordSpec, ddl: str = DDL) -> ChangeEventDecoder:
    schema = parse_ddl(ddl)
    asked = Asked(schema=schema, upserts=True, key_columns=[schema.field("id")])
    return ChangeEvents().decoder(asked, AvroFormat(spec), AvroFormat(spec))


def decoded(spec: RecordSpec, *values: bytes | None, keys: Mapping[int, bytes] | None = None) -> Decoded:
    return decoder(spec).decode(with_keys(values, keys))


def with_keys(values: Sequence[bytes | None], keys: Mapping[int, bytes] | None) -> RawBatch:
    whole = batch_of(values)
    return RawBatch(
        partition=whole.partition,
        offsets=whole.offsets,
        timestamps_ms=whole.timestamps_ms,
        values=whole.values,
        keys=keys or {},
    )


def test_a_change_is_a_row_with_debeziums_own_types_in_the_columns_that_they_mean(
    registry: Registry, spec: RecordSpec
) -> None:
    made = datetime(2026, 11, 26, 15, 4, 5, 678_901)
    after = row(
        5,
        due=20_783,
        made=1_795_705_445_678_901,
        seen="2026-11-26T15:04:05.678901Z",
        free={"scale": 3, "value": (-1234).to_bytes(2, "big", signed=True)},
        note="ä",
    )
    found = decoded(spec, event(registry, "c", after=after))
    assert not found.rejects, found.rejects[0].reason
    found.table.validate(full=True)
    assert found.table.to_pylist() == [
        {
            "id": 5,
            "paid": Decimal("12.34"),
            "due": date(2026, 11, 26),
            "made": made,
            "seen": made.replace(tzinfo=UTC),
            "free": Decimal("-1.2340"),
            "note": "ä",
            POSITION_COLUMN: 7,
        }
    ]


def test_rows_deletes_tombstones_and_what_is_no_change_are_what_they_are_in_json(
    registry: Registry, spec: RecordSpec
) -> None:
    values = [
        event(registry, "c", 1, after=row(1)),
        event(registry, "u", 2, before=row(1), after=row(1, note="x")),
        event(registry, "d", 3, before=row(1)),
        None,
        event(registry, "t", 4),
        event(registry, "c", None, after=row(2)),
        event(registry, "u", 5),
        b"\0\0\0\0\1\7",
        event(registry, "r", 6, after=row(3)),
    ]
    found = decoded(spec, *values, keys={3: key(registry, 1)})
    assert found.kept is not None and found.kept.tolist() == [0, 1, 2, 8]
    assert found.table.column("id").to_pylist() == [1, 1, 1, 3]
    assert found.table.column(POSITION_COLUMN).to_pylist() == [1, 2, 3, 0]
    assert found.deleted is not None and found.deleted.tolist() == [False, False, True, False]
    assert found.tombstones is not None and found.tombstones.columns.to_pylist() == [{"id": 1}]
    reasons = found.rejects.by_place()
    assert reasons.pop(7)
    assert reasons == {
        4: WHY_TRUNCATE,
        5: "field source.lsn is missing or null: a change without its position",
        6: "op u, and field after is missing or null",
    }


def test_a_record_that_is_no_change_event_is_a_reject(registry: Registry, spec: RecordSpec) -> None:
    flat = serialized(registry, {**VALUE, "name": "Flat"}, row(1), MessageField.VALUE)
    (reject,) = decoded(spec, flat).rejects
    assert reject.reason == "field op is missing or null: not a change event"


def test_a_column_that_its_type_does_not_go_into_is_named_with_the_side_that_it_is_on(
    registry: Registry, spec: RecordSpec
) -> None:
    whole = decoder(spec, "id BIGINT NOT NULL, paid DOUBLE").decode(
        batch_of([event(registry, "c", after=row(1))])
    )
    assert whole.rejects[0].reason == (
        "schema 1 cannot be read by: field before.paid: a decimal(10,2) is not read as DOUBLE; it is as "
        "DECIMAL(10,2)"
    )


def test_a_new_log_of_the_source_is_found_out_of_what_was_committed_before(
    registry: Registry, spec: RecordSpec
) -> None:
    schema = parse_ddl(DDL)
    before = batch_of([event(registry, "c", 900, 10, after=row(1))], first=10)
    asked = Asked(
        schema=schema,
        upserts=True,
        key_columns=[schema.field("id")],
        look_back=lambda _partition, _offset: [before],
    )
    reads = ChangeEvents().decoder(asked, AvroFormat(spec), AvroFormat(spec))
    found = reads.decode(batch_of([event(registry, "u", 3, 20, after=row(1))]))
    assert found.stop is not None and found.stop[0] == 0 and "has a new log" in found.stop[1]


def test_a_registry_that_was_set_up_anew_stops_at_the_record_whose_schema_nobody_can_tell(
    registry: Registry, spec: RecordSpec
) -> None:
    good = event(registry, "c", after=row(1))
    assert not decoded(spec, good).rejects
    doubtful = b"\0\0\0\0\2" + good[5:]
    registry.known.register("else", {"schema": json.dumps({**ENVELOPE, "name": "Else"})})
    assert not decoded(spec, doubtful).rejects
    anew = Schemas()
    anew.register("x", {"schema": registry.known.texts[0]["schema"]})
    anew.register("y", {"schema": '"string"'})
    registry.known = anew
    found = decoded(spec, good, None, doubtful, good, keys={1: key_of(good)})
    assert found.stop is not None and found.stop[0] == 2 and "has another schema 2" in found.stop[1]


def key_of(value: bytes) -> bytes:
    """Some key, which is not looked at."""
    return value[:1]


def test_keys_are_avro_and_values_json_where_a_connector_has_two_converters(
    registry: Registry, spec: RecordSpec
) -> None:
    schema = parse_ddl("id BIGINT NOT NULL")
    asked = Asked(schema=schema, upserts=True, key_columns=[schema.field("id")])
    reads = ChangeEvents().decoder(asked, JsonFormat(), AvroFormat(spec))
    found = reads.decode(with_keys([None], {0: key(registry, 9)}))
    assert found.tombstones is not None and found.tombstones.columns.to_pylist() == [{"id": 9}]
