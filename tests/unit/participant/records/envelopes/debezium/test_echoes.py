"""A tombstone right behind its delete says nothing more, whatever its key looks like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from participant.records.port import Decoder, RecordSpec
from participant.records.raw import RawBatch, Values
from participant.worker.stages import decoder
from table.port import UPSERT, TableSpec
from table.schema import POSITION_COLUMN, table_schema
from tests.debezium_events import PLACE, event

DDL = "id BIGINT NOT NULL, name STRING"
STRANGE = b"Struct{id=1}"


def batch(
    *values: bytes | None,
    keys: Mapping[int, bytes | None],
    first: int = 100,
    whole: bool = False,
    gap: int = 1,
) -> RawBatch:
    offsets = np.arange(len(values), dtype=np.int64) * gap + first
    return RawBatch(
        partition=PLACE,
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
        keys={place: keys.get(place) for place, value in enumerate(values) if value is None},
        record_keys=Values.of([keys.get(place) for place in range(len(values))]) if whole else None,
    )


def reads(*past: RawBatch, **record: Any) -> Decoder:
    spec = TableSpec(
        path="/t",
        name="t",
        mode=UPSERT,
        ddl=DDL,
        key_fields=("id",),
        ordering_field=POSITION_COLUMN,
        source_position=True,
    )

    def look_back(_partition: SourcePartition, offset: int) -> Iterable[RawBatch]:
        return [one for one in past if one.offsets[-1] < offset]

    said = RecordSpec(envelope="debezium", **record)
    return decoder(spec, table_schema(DDL, kafka_columns=False), said, look_back)


def gone(number: int) -> bytes:
    return event("d", before={"id": number, "name": "x"})


def said(made: Decoder, of: RawBatch) -> tuple[list[tuple[int, int]], list[int]]:
    """Tombstones by place and key, and the places of rejects."""
    found = made.decode(of)
    assert found.tombstones is not None
    ids = found.tombstones.columns.column("id").to_pylist()
    assert found.tombstones.offsets.tolist() == of.offsets[found.tombstones.places].tolist()
    return list(zip(found.tombstones.places.tolist(), ids, strict=True)), sorted(found.rejects.by_place())


@pytest.mark.parametrize("whole", [False, True])
def test_a_tombstone_with_a_strange_key_has_the_key_of_the_delete_before_it(whole: bool) -> None:
    keys = {0: STRANGE, 1: STRANGE, 3: b'{"id":9}', 4: STRANGE}
    of = batch(gone(1), None, event("c", after={"id": 2}), None, None, keys=keys, whole=whole)
    assert said(reads(), of) == ([(1, 1), (3, 9)], [4])


def test_a_tombstone_of_another_key_than_the_delete_before_it_is_refused() -> None:
    of = batch(gone(1), None, keys={0: b"Struct{id=2}", 1: STRANGE}, whole=True)
    assert said(reads(), of) == ([], [1])


def test_a_tombstone_without_a_key_has_the_key_of_the_delete_before_it_and_alone_is_refused() -> None:
    assert said(reads(), batch(gone(1), None, None, keys={})) == ([(1, 1)], [2])
    other = batch(gone(1), None, keys={0: STRANGE}, whole=True)
    assert said(reads(), other) == ([], [1]), "the delete has a key"


def test_a_tombstone_behind_a_delete_without_a_key_is_refused() -> None:
    of = batch(event("d", before={"name": "x"}), None, keys={1: STRANGE})
    assert said(reads(), of) == ([], [1])


def test_the_delete_may_be_the_last_record_of_the_batch_before() -> None:
    made = reads()
    assert said(made, batch(gone(1), gone(2), keys={})) == ([], [])
    assert said(made, batch(None, None, keys={0: STRANGE, 1: STRANGE}, first=102)) == ([(0, 2)], [1])
    assert said(made, batch(None, keys={0: STRANGE}, first=104)) == ([], [0])


def test_a_delete_that_is_not_right_before_is_none_of_the_tombstones() -> None:
    made = reads()
    assert said(made, batch(gone(1), keys={})) == ([], [])
    assert said(made, batch(None, keys={0: STRANGE}, first=102)) == ([], [0])


def test_a_run_that_begins_between_the_two_looks_at_the_record_before() -> None:
    made = reads(batch(event("c", after={"id": 5}), gone(6), keys={}, first=98))
    assert said(made, batch(None, keys={0: STRANGE})) == ([(0, 6)], [])
    other = reads(batch(gone(6), event("c", after={"id": 5}), keys={}, first=98))
    assert said(other, batch(None, keys={0: STRANGE})) == ([], [0])


def test_a_null_payload_in_connects_envelope_is_a_tombstone() -> None:
    null = b'{"schema":null,"payload":null}'
    assert said(reads(), batch(gone(1), null, null, keys={})) == ([(1, 1)], [2])
    keys = {0: b'{"id":1}', 1: b'{"id":1}', 2: b'{"id":7}'}
    assert said(reads(), batch(gone(1), null, null, keys=keys, whole=True)) == ([(1, 1), (2, 7)], [])


def with_headers(of: RawBatch) -> RawBatch:
    return replace(of, headers=Values.of([b""] * len(of)))


def test_the_key_of_a_delete_is_what_the_columns_are_read_from() -> None:
    delete = event("d", before={"uid": 7, "id": 1, "name": "x"})
    of = with_headers(batch(delete, None, keys={}, whole=True))
    assert said(reads(columns=(("id", "value.uid"),)), of) == ([(1, 7)], [])
    made = reads(columns=(("id", "value.uid as INT"),))
    assert said(made, of) == ([], [1]), "what is made of a field is not known here"


def test_a_batch_that_is_read_again_has_the_delete_before_it() -> None:
    made = reads(batch(gone(6), keys={}))
    assert said(made, batch(gone(6), None, gone(7), None, keys={})) == ([(1, 6), (3, 7)], [])
    assert said(made, batch(None, gone(7), keys={}, first=101)) == ([(0, 6)], [])
    assert said(made, batch(None, keys={}, first=103)) == ([(0, 7)], [])
    assert said(made, batch(None, keys={}, first=109)) == ([], [0])
    made = reads(batch(gone(5), first=300, keys={}))
    made.decode(batch(gone(6), keys={}, first=200))
    assert said(made, batch(None, keys={}, first=301)) == ([(0, 5)], []), "the topic has it"
    made = reads()
    assert said(made, batch(gone(1), keys={})) == ([], [])
    again = batch(None, gone(2), event("c", after={"id": 9}), keys={}, first=101)
    for _ in range(2):
        assert said(made, again) == ([(0, 1)], [])
