"""Consumed records as columns, and the keys of those whose value is null."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from control_topic.messages import SourcePartition
from participant.records.raw import RawBatch, Values
from participant.source import native
from participant.source.fetcher import _sorted_out

PLACE = SourcePartition("events", 3)
SMALL = st.one_of(st.none(), st.just(b""), st.binary(max_size=3))
RECORDS = st.lists(st.tuples(SMALL, SMALL), max_size=20)
"""Keys and values."""


def batch_of(records: list[tuple[bytes | None, bytes | None]]) -> RawBatch:
    offsets = np.arange(len(records), dtype=np.int64) * 3 + 7
    return RawBatch(
        partition=PLACE,
        offsets=offsets,
        timestamps_ms=offsets + 1,
        values=Values.of([value for _, value in records]),
        keys=tombstones(records),
    )


def tombstones(records: list[tuple[bytes | None, bytes | None]]) -> dict[int, bytes | None]:
    return {index: key for index, (key, value) in enumerate(records) if value is None}


@given(RECORDS, st.data())
def test_the_head_of_a_batch_is_the_batch_of_its_first_records(
    records: list[tuple[bytes | None, bytes | None]], data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, len(records)))
    head, wanted = batch_of(records).head(count), batch_of(records[:count])
    assert len(head) == count
    assert head.partition == PLACE
    assert head.offsets.tolist() == wanted.offsets.tolist()
    assert head.timestamps_ms.tolist() == wanted.timestamps_ms.tolist()
    assert list(head.values) == list(wanted.values)
    assert head.keys == wanted.keys


def test_a_batch_has_no_keys_where_nothing_is_said_of_them() -> None:
    none = np.array([], dtype=np.int64)
    batch = RawBatch(partition=PLACE, offsets=none, timestamps_ms=none, values=Values.of([]))
    assert batch.keys == batch.head(0).keys == {}


@given(st.lists(st.tuples(st.integers(0, 2), SMALL, SMALL), max_size=20), st.booleans())
def test_the_plain_reader_keeps_the_keys_of_null_values_by_their_index_in_their_own_batch(
    sent: list[tuple[int, bytes | None, bytes | None]], asked: bool
) -> None:
    messages = [
        Message(topic="events", partition=number, offset=at, key=key, value=value, timestamp=(1, at))
        for at, (number, key, value) in enumerate(sent)
    ]
    taken = _sorted_out(messages, single_topic=True, tombstone_keys=asked)
    assert {batch.partition.number for batch in taken.batches} == {number for number, _, _ in sent}
    for batch in taken.batches:
        records = [(key, value) for number, key, value in sent if number == batch.partition.number]
        assert list(batch.values) == [value for _, value in records]
        assert batch.keys == (tombstones(records) if asked else {})


def test_a_native_reader_that_was_compiled_for_another_version_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    try:
        importlib.import_module("participant.source._fetcher")
    except ImportError:
        pytest.skip("participant.source._fetcher is not compiled here")
    monkeypatch.setattr(native, "INTERFACE", native.INTERFACE + 1)
    native.native_module.cache_clear()
    try:
        assert "compiled for another version: install Lockstep again" in native.missing({})
    finally:
        native.native_module.cache_clear()
