"""Values in JSON in which no column's field is found are rejects, by either decoder; all others are rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from participant.records.json.found_fields import why_none
from participant.records.port import NULL_ROW, Decoder, RecordSpec
from participant.worker.stages import unchecked_decoder
from table.port import INSERT, UPSERT, TableSpec
from table.schema import table_schema
from tests.decoding import batch
from tests.json_decoders import NATIVE, PLAIN, skip_unless_there

DDL = "id BIGINT, name STRING, at STRUCT<city: STRING, zip: STRING>"
SCHEMA = {"type": "struct", "fields": [{"type": "int64", "field": "id"}]}


def decoder(kind: str, ddl: str = DDL, **record: Any) -> Decoder:
    skip_unless_there(kind)
    spec = TableSpec(path="", name="t", mode=INSERT, ddl=ddl)
    return unchecked_decoder(spec, table_schema(ddl, kafka_columns=False), RecordSpec(decoder=kind, **record))


def values(*documents: object) -> list[bytes]:
    return [one if isinstance(one, bytes) else json.dumps(one).encode() for one in documents]


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_a_value_without_a_field_of_any_column_is_a_reject_that_names_its_fields(kind: str) -> None:
    given = values(
        {"id": 1},
        {},
        {"ID": 1, "NAME": "a"},
        {"schema": SCHEMA, "payload": {"id": 1}},
        {"name": None},
        {"at": {}},
        {f"f{n}": n for n in range(9)},
        {"x" * 100: 1},
        b"broken",
        {"at": None, "other": 1},
    )
    found = decoder(kind).decode(batch(given))
    assert found.kept is not None and found.kept.tolist() == [0, 4, 5, 9]
    reasons = found.rejects.by_place()
    assert reasons[1] == "none of the columns' fields is in the value: it has no fields"
    assert "it has ID, NAME. Names are told apart by case" in reasons[2]
    assert (
        'it has schema, payload. It is in Kafka Connect\'s envelope: record.envelope = "connect"'
        in reasons[3]
    )
    assert reasons[6].endswith("it has f0, f1, f2, f3, f4 and 4 more")
    assert reasons[7].endswith(f"it has {'x' * 40}…")
    assert len(reasons) == 6 and "none of" not in reasons[8]


EVENT = {"before": None, "after": {"id": 1}, "source": {}, "op": "c"}


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
@pytest.mark.parametrize(
    ("envelope", "value", "hint"),
    [
        ("none", {"schema": SCHEMA, "payload": {"id": 1}}, 'record.envelope = "connect" reads its payload'),
        ("none", EVENT, 'record.envelope = "debezium" reads it'),
        ("none", {"schema": SCHEMA, "payload": EVENT}, 'record.envelope = "debezium" reads it'),
        ("connect", {"schema": SCHEMA, "payload": EVENT}, 'record.envelope = "debezium" reads it'),
        ("connect", {"id": 1}, 'record.envelope = "none" reads it'),
        ("connect", {"other": 1}, "it has other"),
    ],
)
def test_a_reason_names_the_envelope(kind: str, envelope: str, value: object, hint: str) -> None:
    found = decoder(kind, envelope=envelope).decode(batch(values(value)))
    assert found.rejects.by_place()[0].endswith(hint)


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_a_setting_has_rows_of_nothing_but_null(kind: str) -> None:
    found = decoder(kind, on_no_field=NULL_ROW).decode(batch(values({}, {"ID": 1}, {"id": 2})))
    assert found.kept is None and found.table.column("id").to_pylist() == [None, None, 2]


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_where_columns_come_from_their_fields_are_looked_for(kind: str) -> None:
    """A column of the topic or a header is no field of the value; what `record.rest` keeps is kept."""
    columns = (("id", "value.a.b"), ("name", "topic"), ("at", "value.at"))
    found = decoder(kind, columns=columns).decode(batch(values({"a": {"b": 1}}, {"a": {}}, {"at": None})))
    assert found.kept is not None and found.kept.tolist() == [0, 2]
    elsewhere = decoder(kind, "t STRING, n BIGINT", columns=(("t", "topic"), ("n", "offset")))
    assert elsewhere.decode(batch(values({}, {"x": 1}))).kept is None
    rest = decoder(kind, "id BIGINT, rest STRING", rest="rest")
    assert rest.decode(batch(values({"x": 1}, {}))).kept is None


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_connects_envelope_is_unwrapped_for_columns_from_anywhere(kind: str) -> None:
    columns = (("city", "value.at.city"), ("topic", "topic"), ("n", "value.n as STRING"))
    made = decoder(
        kind, "id BIGINT, city STRING, topic STRING, n BIGINT", envelope="connect", columns=columns
    )
    found = made.decode(
        batch(
            values(
                {"schema": SCHEMA, "payload": {"id": 1, "at": {"city": "x"}, "n": "7"}},
                {"schema": SCHEMA, "payload": {"id": 2}},
                {"id": 3},
                {"schema": SCHEMA, "payload": None},
                {"schema": None, "payload": {"other": 1}},
            )
        )
    )
    assert found.table.to_pylist() == [
        {"id": 1, "city": "x", "topic": "events", "n": 7},
        {"id": 2, "city": None, "topic": "events", "n": None},
    ]
    assert [found.rejects.by_place()[place].partition(":")[0] for place in (2, 3, 4)] == [
        "none of the columns' fields is in the value"
    ] * 3


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
def test_a_delete_in_connects_envelope_deletes(kind: str) -> None:
    skip_unless_there(kind)
    ddl = "id BIGINT NOT NULL, gone BOOLEAN"
    spec = TableSpec(path="", name="t", mode=UPSERT, ddl=ddl, key_fields=("id",))
    record = RecordSpec(decoder=kind, envelope="connect", delete_field="gone")
    made = unchecked_decoder(spec, table_schema(ddl, kafka_columns=False), record)
    found = made.decode(
        batch(values(*({"schema": None, "payload": {"id": 1, "gone": g}} for g in (False, True))))
    )
    assert found.deleted is not None and found.deleted.tolist() == [False, True]


FIELDS = st.sampled_from(["id", "name", "ID", "other", "at"])
DOCUMENTS = st.dictionaries(FIELDS, st.none(), max_size=3)


@pytest.mark.parametrize("kind", [NATIVE, PLAIN])
@given(documents=st.lists(DOCUMENTS, min_size=1, max_size=8))
def test_a_row_of_nulls_stays_one_where_a_field_says_so(kind: str, documents: list[dict[str, None]]) -> None:
    found = decoder(kind).decode(batch(values(*documents)))
    expected = [n for n, one in enumerate(documents) if {"id", "name", "at"} & one.keys()]
    kept = list(range(len(documents))) if found.kept is None else found.kept.tolist()
    assert kept == expected


def test_json_behind_the_id_of_a_schema_is_judged_alike() -> None:
    framed = [b"\0\0\0\0{" + one for one in values({"other": 1}, {"id": 2})]
    assert why_none(framed[0], [("id",)]).endswith("it has other")
    assert not why_none(framed[1], [("id",)])
