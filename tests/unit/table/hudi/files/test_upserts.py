"""Changes of an upsert table: rows, deletes of three kinds, and what is neither."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_topic.messages import SourcePartition
from participant.records.port import Decoded, RecordSpec
from participant.records.raw import RawBatch, Values
from participant.records.rejects import Rejects
from participant.worker.memory import MemoryBudget
from participant.worker.stages import decoder, stages
from table.hudi.files.upserts import Upserts, UpsertShaper
from table.hudi.layout import HudiLayout
from table.schema import POSITION_COLUMN, SchemaError, table_schema
from tests.debezium_events import POSTGRESQL, event
from tests.fuzz.strategies import jsons

DDL = "id BIGINT NOT NULL, region STRING, amount DOUBLE NOT NULL, ts BIGINT, gone BOOLEAN"
LAYOUT = HudiLayout(
    path="file:///lake/t",
    key_fields=("id",),
    key_format="plain",
    partition_fields=(),
    hive_style=False,
    url_encode=False,
    kafka_columns=True,
    target_file_bytes=1_000_000,
    ddl=DDL,
    mode="upsert",
    ordering_field="ts",
    bucket_count=4,
)
Record = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, kw_only=True)
class Made(Upserts):
    """With all that is no change, whoever said so."""

    rejects: Rejects

    @classmethod
    def of(cls, batch: RawBatch, decoded: Decoded, shaped: Upserts) -> Made:
        refused = Rejects.of(shaped.refused, batch.offsets)
        parts = {one.name: getattr(shaped, one.name) for one in fields(shaped)}
        return cls(**parts, rejects=Rejects.joined([decoded.rejects, refused]))


def derive(*records: Record, delete_field: str = "gone", **changes: Any) -> Made:
    """(key, value) pairs of offsets from 100 on."""
    layout = replace(LAYOUT, **changes)
    schema = table_schema(layout.ddl, layout.kafka_columns)
    offsets = np.arange(100, 100 + len(records), dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition("changes", 3),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of([value for _, value in records]),
        keys={i: key for i, (key, value) in enumerate(records) if value is None},
    )
    decoded = decoder(layout, schema, RecordSpec(delete_field=delete_field)).decode(batch)
    made = Made.of(batch, decoded, UpsertShaper(layout, schema).shape(decoded.rows(batch)))
    assert made.count + len(made.rejects) == len(records)
    assert made.rows.schema == schema
    return made


def row(number: int, ts: int | None = 1, gone: str = "false", region: str = "eu") -> bytes:
    stamp = "null" if ts is None else ts
    return b'{"id":%d,"region":"%s","amount":1.5,"ts":%s,"gone":%s}' % (
        number,
        region.encode(),
        str(stamp).encode(),
        gone.encode(),
    )


def deletes_of(made: Upserts) -> list[tuple[str, str, int | None, int]]:
    """(key, table partition, ordering value, place)."""
    columns = (
        made.deletes.record_key.to_pylist(),
        made.deletes.table_partition.to_pylist(),
        made.deletes.ordering.to_pylist(),
        made.deletes.places.tolist(),
    )
    return sorted(zip(*columns, strict=True), key=lambda one: one[3])


def test_rows_and_deletes_keep_their_places_and_their_offsets() -> None:
    made = derive((None, row(1)), (b"2", None), (None, row(3, 9, "true")), (None, row(4)), (None, row(1, 7)))
    assert made.record_key.to_pylist() == ["1", "4", "1"]
    assert made.places.tolist() == [0, 3, 4]
    assert made.rows.column("_kafka_offset").to_pylist() == [100, 103, 104]
    assert made.rows.column("ts").to_pylist() == [1, 1, 7]
    assert deletes_of(made) == [("2", "", None, 1), ("3", "", 9, 2)]
    assert made.length == 5 and not made.rejects


def test_a_null_delete_field_deletes_nothing_and_without_one_no_row_does() -> None:
    assert derive((None, row(1, 1, "null"))).rows.num_rows == 1
    assert derive((None, row(1, 1, "true")), delete_field="").rows.num_rows == 1


def test_what_cannot_be_ordered_or_keyed_is_rejected_with_its_offset() -> None:
    made = derive((None, row(1)), (None, row(2, None)), (b"3", None), (None, None), (b"x", None))
    assert [(one.offset, one.index) for one in made.rejects] == [(101, 1), (103, 3), (104, 4)]
    reasons = [one.reason for one in made.rejects]
    assert reasons[0] == "the ordering field ts is null"
    assert reasons[1] == "a record without a value and without a key deletes no row"
    assert reasons[2].startswith("the Kafka key of a record without a value: ")
    assert made.record_key.to_pylist() == ["1"] and deletes_of(made) == [("3", "", None, 2)]


def test_a_batch_of_tombstones_alone_has_no_rows() -> None:
    made = derive((b"1", None), (b"2", None))
    assert made.rows.num_rows == 0
    assert [key for key, *_ in deletes_of(made)] == ["1", "2"]


@pytest.mark.parametrize(
    "key",
    [
        b"7",
        b'{"id":7}',
        b'{"id":7,"more":1}',
        b'{"schema":{"type":"struct"},"payload":{"id":7}}',
        b'{"payload":{"id":7,"more":{"a":[1]}},"schema":null}',
        b'{"schema":{"type":"int64"},"payload":7}',
    ],
)
def test_a_key_of_one_field_is_spelled_in_any_of_these_ways(key: bytes) -> None:
    assert [key for key, *_ in deletes_of(derive((key, None)))] == ["7"]


@pytest.mark.parametrize(
    ("key", "text"),
    [(b"7", "7"), (b'"a b"', "a b"), (b"a b", "a b"), ('{"id":"\u00e9"}'.encode(), "\u00e9"), (b"{", "{")],
)
def test_a_key_that_is_a_text_may_be_json_or_plain(key: bytes, text: str) -> None:
    made = derive((key, None), ddl=DDL.replace("id BIGINT", "id STRING"))
    assert [key for key, *_ in deletes_of(made)] == [text]


@pytest.mark.parametrize("key", [b'{"other":7}', b'{"id":"x"}', b'{"id":null}', b"[7]", b"\xff", b"7.5", b""])
def test_a_key_that_names_no_row_is_a_reject(key: bytes) -> None:
    made = derive((key, None))
    assert len(made.rejects) == 1 and not len(made.deletes)


@pytest.mark.parametrize(
    "key",
    [
        b'{"id":5,"id":6}',
        b'{"schema":{},"payload":{"id":5,"id":6}}',
        b'{"schema":{},"payload":{"id":5},"payload":{"id":6}}',
        b'{"schema":{},"payload":{"id":5},"id":6}',
        b'{"id":5}{"id":6}',
        b'5,"id":6',
        b"5 6",
        b"\xef\xbb\xbf5",
        "5".encode("utf-16-le"),
        b'{"schema":{},"payload":{"id":' + 980 * b"[" + 980 * b"]" + b"}}",
        990 * b"[" + 990 * b"]",
    ],
)
def test_a_key_that_could_be_read_in_two_ways_is_a_reject_however_it_is_wrapped(key: bytes) -> None:
    made = derive((key, None), (b"7", None))
    assert [one.index for one in made.rejects] == [0]
    assert [key for key, *_ in deletes_of(made)] == ["7"]


def test_a_field_of_the_key_may_be_named_as_a_part_of_kafka_connect_s_wrapping() -> None:
    for name in ("schema", "payload"):
        ddl = DDL.replace("id BIGINT", f"{name} STRING")
        key = b'{"schema":"x","payload":"y"}'
        made = derive((key, None), ddl=ddl, key_fields=(name,))
        assert [key for key, *_ in deletes_of(made)] == [{"schema": "x", "payload": "y"}[name]]
    ddl = DDL.replace("id BIGINT", "schema STRING")
    made = derive((b'{"schema":{},"payload":{"schema":"x"}}', None), ddl=ddl, key_fields=("schema",))
    assert [key for key, *_ in deletes_of(made)] == ["x"]


DIGITS = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**17), max_value=10**17)
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
KEYS: dict[str, st.SearchStrategy[str]] = {
    "STRING": TEXT.map(json.dumps) | TEXT.map(lambda text: json.dumps(text, ensure_ascii=False)),
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "INT": st.integers(-(2**31), 2**31 - 1).map(str),
    "BIGINT": st.integers(-(2**63), 2**63 - 1).map(str),
    "DECIMAL(20,2)": DIGITS.map(str) | DIGITS.map(lambda number: f'"{number:.2f}"'),
    "DECIMAL(38,0)": st.integers(1 - 10**38, 10**38 - 1).map(str),
    "DECIMAL(38,20)": st.integers(0, 9 * 10**37).map(lambda digits: f"{digits}e-20"),
    "DATE": st.dates().map(lambda day: f'"{day}"'),
    "TIMESTAMP": st.datetimes().map(lambda moment: f'"{moment.isoformat()}Z"'),
}
"""What a row's own JSON may hold as a value of each type that a key can have."""


@pytest.mark.parametrize("kind", KEYS)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_a_tombstone_s_key_is_the_row_s_however_it_is_spelled_and_wrapped(
    kind: str, data: st.DataObject
) -> None:
    ddl = DDL.replace("id BIGINT", f"id {kind}")
    value = data.draw(KEYS[kind])
    made = derive((None, b'{"id":%s,"amount":1.5,"ts":1}' % value.encode()), ddl=ddl)
    wanted = made.record_key.to_pylist()
    assert len(wanted) == 1
    spellings = [
        value,
        f'{{"id":{value}}}',
        f'{{"more":{{"id":0}},"id" : {value} }}',
        f'{{"schema":{{"a":[1]}},"payload":{{"id":{value}}}}}',
        f'{{"payload":{value},"schema":null}}',
    ]
    text = json.loads(value)
    # A bare text may begin neither with a mark of its byte order nor as one that names a schema does.
    if isinstance(text, str) and (kind != "STRING" or not is_json(text)) and text[0] not in "\ufeff\0":
        spellings.append(text)
    for key in spellings:
        made = derive((key.encode(), None), ddl=ddl)
        assert [one for one, *_ in deletes_of(made)] == wanted, key


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "key",
    [
        b"12345678901234567.89",
        b'{"id":12345678901234567.89}',
        b'{"schema":{},"payload":{"id":12345678901234567.89}}',
    ],
)
def test_a_decimal_key_of_more_digits_than_a_double_holds_deletes_its_own_row(key: bytes) -> None:
    made = derive((key, None), ddl=DDL.replace("id BIGINT", "id DECIMAL(20,2)"))
    assert [one for one, *_ in deletes_of(made)] == ["12345678901234567.89"]


@given(
    key=st.binary(max_size=40) | st.text(max_size=20).map(str.encode) | jsons.map(json.dumps).map(str.encode)
)
@settings(max_examples=100, deadline=None)
def test_no_key_whatever_it_holds_breaks_the_batch(key: bytes) -> None:
    for ddl in (DDL, DDL.replace("id BIGINT", "id STRING")):
        made = derive((key, None), (b"7", None), ddl=ddl)
        assert [place for *_, place in deletes_of(made)][-1] == 1


def test_in_a_partitioned_table_a_tombstone_names_the_table_partition_too() -> None:
    made = derive(
        (b'{"id":1,"region":"eu"}', None),
        (b'{"id":2}', None),
        (b"3", None),
        (None, row(4, 1, "true", "us")),
        partition_fields=("region",),
        hive_style=True,
    )
    assert deletes_of(made) == [("1", "region=eu", None, 0), ("4", "region=us", 1, 3)]
    assert [one.index for one in made.rejects] == [1, 2]
    assert "region" in made.rejects[0].reason and "with id, region" in made.rejects[1].reason


def test_a_key_of_several_fields_is_spelled_as_hudi_spells_it() -> None:
    made = derive(
        (b'{"region":"eu","id":5}', None),
        (None, row(6)),
        key_fields=("region", "id"),
        key_format="complex",
    )
    assert [key for key, *_ in deletes_of(made)] == ["region:eu,id:5"]
    assert made.record_key.to_pylist() == ["region:eu,id:6"]


def test_without_an_ordering_field_every_delete_counts_as_the_later_one() -> None:
    made = derive((None, row(1, None, "true")), (b"2", None), ordering_field="")
    assert [(key, by) for key, _, by, _ in deletes_of(made)] == [("1", None), ("2", None)]


def test_an_ordering_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(SchemaError, match="column seen is to order versions"):
        UpsertShaper(replace(LAYOUT, ordering_field="seen"), table_schema(DDL, False))


def changes(*events: Record) -> Made:
    """What change events of PostgreSQL's make of a table, offsets from 100 on."""
    layout = replace(LAYOUT, ddl="id BIGINT NOT NULL", ordering_field=POSITION_COLUMN, source_position=True)
    offsets = np.arange(100, 100 + len(events), dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition("changes", 3),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of([value for _, value in events]),
        keys={i: key for i, (key, value) in enumerate(events) if value is None},
    )
    made = stages(
        layout=layout,
        slot=0,
        incarnation="w",
        memory=MemoryBudget(1_000_000),
        record=RecordSpec(envelope="debezium"),
    )
    decoded = made.decoder.decode(batch)
    shaped = made.files.shape(decoded.rows(batch))
    assert isinstance(shaped, Upserts)
    return Made.of(batch, decoded, shaped)


def gone(number: int, lsn: int) -> bytes:
    return event("d", before={"id": number}, source={**POSTGRESQL, "lsn": lsn})


def test_a_tombstone_right_behind_its_event_of_change_data_says_nothing_more() -> None:
    made = changes((None, gone(1, 7)), (b'{"id":1}', None), (None, gone(2, 8)), (b'{"id":2}', None))
    assert deletes_of(made) == [("1", "", 7, 0), ("2", "", 8, 2)]
    assert not made.rejects


def test_a_tombstone_whose_event_is_elsewhere_deletes_as_any_other() -> None:
    """The topic's own compaction leaves the tombstone and takes the event; a read may end between the two."""
    assert deletes_of(changes((b'{"id":1}', None), (None, gone(1, 7)))) == [
        ("1", "", None, 0),
        ("1", "", 7, 1),
    ]
    made = changes((None, gone(1, 7)), (b'{"id":2}', None), (b'{"id":1}', None))
    assert deletes_of(made) == [("1", "", 7, 0), ("2", "", None, 1), ("1", "", None, 2)]


def test_a_tombstone_behind_a_row_that_says_it_is_deleted_deletes_as_any_other() -> None:
    made = derive((None, row(1, 7, "true")), (b"1", None))
    assert deletes_of(made) == [("1", "", 7, 0), ("1", "", None, 1)]


def test_memory_counts_rows_and_deletes() -> None:
    rows = derive(*[(None, row(n)) for n in range(500)])
    both = derive(*[(None, row(n)) for n in range(500)], *[(b"%d" % n, None) for n in range(500)])
    assert rows.nbytes > rows.rows.nbytes
    assert both.nbytes - rows.nbytes > 500 * 8


def test_rows_and_deletes_whose_key_may_be_another_rows_are_rejects() -> None:
    ddl = "a STRING, b STRING, ts BIGINT, gone BOOLEAN"
    made = derive(
        (None, b'{"a":"1,b:2","b":"3","ts":1}'),
        (None, b'{"a":"1","b":"2,b:3","ts":1}'),
        (None, b'{"a":"__empty__","b":"x","ts":1,"gone":true}'),
        (b'{"a":"1,b:2","b":"3"}', None),
        ddl=ddl,
        key_fields=("a", "b"),
        key_format="complex",
    )
    assert made.record_key.to_pylist() == ["a:1,b:2,b:3"]
    assert sorted(made.rejects.by_place()) == [0, 2, 3]
    assert "Hudi spells another row's key alike" in made.rejects.by_place()[3]
