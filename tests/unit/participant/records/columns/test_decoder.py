"""Rows whose columns come from anywhere in a record."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest

from participant.records.headers import UNREADABLE, pack
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch
from participant.worker.stages import reads_by
from table.port import INSERT, TableSpec
from table.schema import SchemaError, parse_ddl, record_schema, table_schema
from tests.json_decoders import NATIVE, PLAIN, skip_unless_there
from tests.unit.participant.records.columns.made import FIRST, FIRST_MS, PLACE, batch, made, reasons, rows

BOTH = pytest.mark.parametrize("decoder", [PLAIN, NATIVE])


# --- values ----------------------------------------------------------------------------------------------


@BOTH
def test_fields_are_had_from_any_depth_by_any_name(decoder: str) -> None:
    skip_unless_there(decoder)
    reads = made(
        "city STRING, address STRUCT<street: STRING>, user_id BIGINT, plain DOUBLE",
        {"city": "value.address.city", "user_id": "value.user-id"},
        decoder=decoder,
    )
    decoded = reads.decode(
        batch(
            [
                b'{"address": {"city": "Bern", "street": "a", "zip": 1}, "user-id": 7, "plain": 0.5}',
                b'{"address": null, "plain": 1}',
                b'{"address": {"street": "b"}, "city": "not this one"}',
                b'{"address": 7}',
            ]
        )
    )
    assert rows(decoded) == [
        {"city": "Bern", "address": {"street": "a"}, "user_id": 7, "plain": 0.5},
        {"city": None, "address": None, "user_id": None, "plain": 1.0},
        {"city": None, "address": {"street": "b"}, "user_id": None, "plain": None},
    ]
    assert reasons(decoded) == {3: "field address: not a STRUCT but a number"}
    assert decoded.kept is not None and decoded.kept.tolist() == [0, 1, 2]
    assert decoded.rejects[0].offset == FIRST + 6


@BOTH
def test_a_required_column_is_required_wherever_it_comes_from(decoder: str) -> None:
    skip_unless_there(decoder)
    reads = made(
        "a STRING NOT NULL, b STRING NOT NULL, k STRING NOT NULL",
        {"a": "value.x.y", "b": "value.z", "k": "key"},
        decoder=decoder,
    )
    keys = [b"k", b"k", None, b"k"]
    values = [
        b'{"x":{"y":"1"},"z":"2"}',
        b'{"x":null,"z":"2"}',
        b'{"x":{"y":"1"},"z":"2"}',
        b'{"x":{"y":"1"}}',
    ]
    decoded = reads.decode(batch(values, keys))
    assert rows(decoded) == [{"a": "1", "b": "2", "k": "k"}]
    assert reasons(decoded) == {
        1: "required column a, from value.x.y, is missing or null",
        2: "required column k, from key, is missing or null",
        3: "required field z is missing or null",
    }
    assert decoded.table.schema == parse_ddl("a STRING NOT NULL, b STRING NOT NULL, k STRING NOT NULL")


def test_a_text_is_a_number_where_it_is_said_to_be_one_and_nothing_is_guessed() -> None:
    reads = made("n BIGINT, at TIMESTAMP", {"n": "value.n as STRING", "at": "value.at as MILLIS"})
    decoded = reads.decode(
        batch(
            [
                b'{"n": "12", "at": 1700000000123}',
                b'{"n": "012", "at": 0}',
                b'{"n": 12}',
                b'{"at": 999999999999999}',
            ]
        )
    )
    assert rows(decoded) == [{"n": 12, "at": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)}]
    assert reasons(decoded) == {
        1: "column n, from value.n: a STRING that is no BIGINT",
        2: "field n: not a STRING but a number",
        3: "column at, from value.at: a BIGINT that is no TIMESTAMP",
    }


def test_the_value_is_had_whole_beside_its_fields() -> None:
    reads = made("id INT, raw STRING, bytes BINARY", {"raw": "value", "bytes": "value"})
    values = [b' {"id": 1} ', '{"é": 2}'.encode(), b"{}"]
    assert rows(reads.decode(batch(values))) == [
        {"id": 1, "raw": ' {"id": 1} ', "bytes": values[0]},
        {"id": None, "raw": '{"é": 2}', "bytes": values[1]},
        {"id": None, "raw": "{}", "bytes": b"{}"},
    ]


def test_where_no_column_comes_from_a_field_any_value_is_a_row() -> None:
    ddl, sources = "raw BINARY, text STRING", {"raw": "value", "text": "value"}
    decoded = made(ddl, sources).decode(batch([b"no json", b"", None, b"\xff"]))
    assert rows(decoded) == [
        {"raw": b"no json", "text": "no json"},
        {"raw": b"", "text": ""},
        {"raw": None, "text": None},
    ]
    assert reasons(decoded) == {3: "column text, from value: a BINARY that is no STRING"}
    spec = TableSpec(path="/t", name="t", mode=INSERT, ddl=ddl)
    said = reads_by(spec, RecordSpec(columns=tuple(sources.items())))
    assert said == "nobody: no column comes from a field of the value"


@BOTH
def test_what_no_column_names_is_kept_as_it_was_spelled(decoder: str) -> None:
    skip_unless_there(decoder)
    ddl, sources = "extra STRING, id INT, city STRING, k STRING", {"city": "value.address.city", "k": "key"}
    reads = made(ddl, sources, rest="extra", decoder=decoder)
    values = [
        b'{"id":1,"n":1.50,"address":{"city":"Bern","zip":"3000"},"extra":"theirs"}',
        b'{"id":2}',
        b'{"id":"no","n":1}',
        b'{"city":"a field, but no column\\u0027s"}',
    ]
    decoded = reads.decode(batch(values, [b"k"] * 4))
    assert rows(decoded) == [
        {"extra": '{"n":1.50,"address":{"zip":"3000"},"extra":"theirs"}', "id": 1, "city": "Bern", "k": "k"},
        {"extra": None, "id": 2, "city": None, "k": "k"},
        {"extra": '{"city":"a field, but no column\\u0027s"}', "id": None, "city": None, "k": "k"},
    ]
    assert sorted(reasons(decoded)) == [2]


@BOTH
def test_the_rest_is_had_without_any_other_column_from_elsewhere_and_of_upserts(decoder: str) -> None:
    skip_unless_there(decoder)
    reads = made("id INT, rest STRING", {}, rest="rest", key=["id"], decoder=decoder)
    decoded = reads.decode(batch([b'{"id":1,"a":[1]}', None, b'{"id":2}'], [b"1", b"1", b"2"]))
    assert rows(decoded) == [{"id": 1, "rest": '{"a":[1]}'}, {"id": 2, "rest": None}]
    assert decoded.tombstones is not None and decoded.tombstones.columns.to_pylist() == [{"id": 1}]


# --- beside the value --------------------------------------------------------------------------------------


def test_a_record_says_where_and_when_it_was_sent() -> None:
    ddl = "t STRING, p INT, o BIGINT, ts TIMESTAMP, ms BIGINT, d DATE, ds STRING, wide BIGINT, id INT"
    sources = {"t": "topic", "p": "partition", "o": "offset", "ts": "timestamp", "ms": "timestamp"}
    sources |= {"d": "timestamp as DATE", "ds": "timestamp as date", "wide": "partition"}
    decoded = made(ddl, sources).decode(batch([b'{"id":1}', b'{"id":null}'], timestamps_ms=[FIRST_MS, -1]))
    assert rows(decoded)[0] == {
        "t": "events",
        "p": 3,
        "o": FIRST,
        "ts": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        "ms": FIRST_MS,
        "d": date(2023, 11, 14),
        "ds": "2023-11-14",
        "wide": 3,
        "id": 1,
    }
    assert [rows(decoded)[1][name] for name in ("o", "ts", "ms", "d")] == [FIRST + 2, None, None, None]


def test_headers_are_had_one_by_one_the_last_of_a_name_or_all() -> None:
    ddl = "a STRING, n BIGINT, b BINARY, m MAP<STRING, STRING>, l ARRAY<STRUCT<key: STRING, value: BINARY>>"
    sources = {"a": "header.a", "n": "header.n", "b": "header.b.c", "m": "headers", "l": "headers"}
    sent = [
        [("a", "1"), ("n", b"-7"), ("a", "2"), ("b.c", b"\x00")],
        [],
        [("A", "x"), ("a", None)],
        [("", "empty name"), ("n", b"")],
    ]
    decoded = made(ddl, sources).decode(batch([b"{}"] * 4, headers=sent))
    first, second, third = rows(decoded)
    assert (first["a"], first["n"], first["b"]) == ("2", -7, b"\x00")
    assert first["m"] == [("n", "-7"), ("a", "2"), ("b.c", "\x00")]
    assert [(one["key"], one["value"]) for one in first["l"]] == [
        ("a", b"1"),
        ("n", b"-7"),
        ("a", b"2"),
        ("b.c", b"\x00"),
    ]
    assert second == {"a": None, "n": None, "b": None, "m": [], "l": []}
    assert (third["a"], third["m"]) == (None, [("A", "x"), ("a", None)])
    assert reasons(decoded) == {3: "column n, from header.n: a BINARY that is no BIGINT"}


def test_headers_that_are_no_texts_or_could_not_be_read_make_a_reject_where_they_are_wanted() -> None:
    packed = [pack([("a", b"\xff")]), pack([("\udcff", b"1")]), UNREADABLE, pack([("a", b"1")])]
    given = batch([b"{}"] * 4, packed=packed)
    listed = made("m MAP<STRING, STRING>", {"m": "headers"}).decode(given)
    why = "column m, from headers: some are no UTF-8, or could not be read"
    assert rows(listed) == [{"m": [("a", "1")]}]
    assert reasons(listed) == {0: why, 1: why, 2: why}
    raw = made("m MAP<STRING, BINARY>", {"m": "headers"}).decode(given)
    assert sorted(reasons(raw)) == [1, 2]
    one = made("a BINARY", {"a": "header.a"}).decode(given)
    assert rows(one) == [{"a": b"\xff"}, {"a": None}, {"a": b"1"}]
    assert sorted(reasons(one)) == [2]


@BOTH
def test_keys_are_had_whole_and_by_field_and_a_record_without_one_has_null(decoder: str) -> None:
    skip_unless_there(decoder)
    ddl = "k STRING, id BIGINT, at STRING, v INT"
    reads = made(ddl, {"k": "key", "id": "key.id", "at": "key.place.at"}, decoder=decoder)
    keys = [b'{"id":1,"place":{"at":"x"}}', None, b'{"id":"1"}', b"plain", b'{"other":0}']
    decoded = reads.decode(batch([b'{"v":0}', b'{"v":1}', b'{"v":2}', b'{"v":3}', b'{"v":4}'], keys))
    assert rows(decoded) == [
        {"k": '{"id":1,"place":{"at":"x"}}', "id": 1, "at": "x", "v": 0},
        {"k": None, "id": None, "at": None, "v": 1},
        {"k": '{"other":0}', "id": None, "at": None, "v": 4},
    ]
    assert reasons(decoded) == {
        2: "the Kafka key: field id: not a BIGINT but a string",
        3: "the Kafka key: not a JSON object",
    }


def test_a_batch_without_keys_and_headers_is_not_taken_where_columns_come_from_them() -> None:
    given = batch([b'{"a":null}'])
    bare = RawBatch(
        partition=PLACE, offsets=given.offsets, timestamps_ms=given.timestamps_ms, values=given.values
    )
    with pytest.raises(ValueError, match="without keys and headers"):
        made("k STRING", {"k": "key"}).decode(bare)
    assert rows(made("o BIGINT, a INT", {"o": "offset"}).decode(bare)) == [{"o": FIRST, "a": None}]


def test_no_records_are_no_rows() -> None:
    ddl = "a STRING, m MAP<STRING, STRING>, k BIGINT, id INT, raw BINARY, d DATE, h INT"
    sources = {"a": "value.a.b", "m": "headers", "k": "key", "id": "key.id", "raw": "value"}
    sources |= {"d": "timestamp as DATE", "h": "header.h"}
    decoded = made(ddl, sources).decode(batch([]))
    assert decoded.table.schema == parse_ddl(ddl) and not len(decoded.rejects)
    assert not rows(decoded)


# --- rows that change -----------------------------------------------------------------------------------


def test_a_record_without_a_value_deletes_by_what_its_key_and_headers_say() -> None:
    ddl = "id BIGINT, tenant STRING, region STRING, n INT"
    sources = {"id": "key.id", "tenant": "header.tenant", "region": "value.at.region"}
    reads = made(ddl, sources, key=["id", "tenant"], partition_by=("region",))
    sent = [[("tenant", "t")]] * 4 + [[]]
    values = [b'{"n":1,"at":{"region":"r"}}', None, None, None, None]
    keys = [b'{"id":1}', b'{"id":1,"region":"r"}', b'{"id":1}', None, b'{"id":2,"region":"r"}']
    decoded = reads.decode(batch(values, keys, sent))
    assert rows(decoded) == [{"id": 1, "tenant": "t", "region": "r", "n": 1}]
    assert decoded.kept is not None and decoded.kept.tolist() == [0]
    assert decoded.tombstones is not None
    assert decoded.tombstones.columns.to_pylist() == [{"id": 1, "tenant": "t", "region": "r"}]
    assert decoded.tombstones.places.tolist() == [1]
    assert decoded.tombstones.offsets.tolist() == [FIRST + 2]
    assert sorted(reasons(decoded)) == [2, 3, 4]
    assert reasons(decoded)[4] == (
        "a record without a value: required column tenant, from header.tenant, is missing or null"
    )


def test_a_whole_key_says_which_row_is_deleted_as_it_says_which_is_written() -> None:
    reads = made("k BIGINT, n INT", {"k": "key"}, key=["k"])
    decoded = reads.decode(batch([b'{"n":1}', None, None, None], [b"7", b"7", b"seven", None]))
    assert rows(decoded) == [{"k": 7, "n": 1}]
    assert decoded.tombstones is not None
    assert decoded.tombstones.columns.to_pylist() == [{"k": 7}]
    assert reasons(decoded) == {
        2: "a record without a value: column k, from key: a BINARY that is no BIGINT",
        3: "a record without a value: required column k, from key, is missing or null",
    }


def test_a_delete_field_may_come_from_anywhere() -> None:
    reads = made("id INT, gone BOOLEAN", {"gone": "header.gone"}, key=["id"], delete_field="gone")
    sent = [[("gone", "true")], [("gone", "false")], [], [("gone", "x")]]
    decoded = reads.decode(batch([b'{"id":1}', b'{"id":2}', b'{"id":3}', b'{"id":4}'], headers=sent))
    assert decoded.deleted is not None and decoded.deleted.tolist() == [True, False, False]
    assert [row["id"] for row in rows(decoded)] == [1, 2, 3]
    assert sorted(reasons(decoded)) == [3]


def test_what_a_record_without_a_value_lacks_keys_no_row() -> None:
    with pytest.raises(SchemaError, match="column raw, from value, says which row a record deletes"):
        made("raw STRING", {"raw": "value"}, key=["raw"])


def test_change_events_have_their_columns_from_anywhere() -> None:
    ddl = "id BIGINT NOT NULL, city STRING NOT NULL, o BIGINT, k STRING"
    sources = {"city": "value.address.city", "o": "offset", "k": "key"}
    reads = made(ddl, sources, key=["id"], envelope="debezium")
    source = {"connector": "postgresql", "lsn": 1, "db": "d", "schema": "s", "table": "t"}

    def event(op: str, lsn: int, **of: object) -> bytes:
        return json.dumps({"op": op, "source": {**source, "lsn": lsn}, **of}).encode()

    one = {"id": 1, "address": {"city": "Bern"}}
    decoded = reads.decode(
        batch(
            [
                event("c", 1, before=None, after=one),
                event("d", 2, before={"id": 1}, after=None),
                event("c", 3, before=None, after={"id": 2, "address": {}}),
                None,
            ],
            [b'{"id":1}', b'{"id":1}', b'{"id":2}', b'{"id":1}'],
        )
    )
    first, second = rows(decoded)
    assert (first["id"], first["city"], first["o"], first["k"]) == (1, "Bern", FIRST, '{"id":1}')
    assert (second["id"], second["city"], second["o"]) == (1, None, FIRST + 2)
    assert decoded.deleted is not None and decoded.deleted.tolist() == [False, True]
    assert first["_source_position"] < second["_source_position"]
    assert reasons(decoded) == {2: "required column city, from value.address.city, is missing or null"}
    assert decoded.tombstones is not None and decoded.tombstones.columns.to_pylist() == [{"id": 1}]


# --- many ------------------------------------------------------------------------------------------------


def test_what_becomes_of_a_record_does_not_depend_on_its_neighbours() -> None:
    ddl = "a BIGINT, k BIGINT, h STRING, raw STRING"
    reads = made(ddl, {"a": "value.a as STRING", "k": "key", "h": "header.h", "raw": "value"})
    values = [b'{"a":"%d"}' % n if n % 3 else b'{"a":"x%d"}' % n for n in range(300)]
    keys = [None if n % 7 == 0 else b"%d" % n if n % 5 else b"-" for n in range(300)]
    sent = [[("h", b"\xff" if n % 11 == 0 else b"%d" % n)] for n in range(300)]
    whole = reads.decode(batch(values, keys, sent))
    kept = whole.kept.tolist() if whole.kept is not None else []
    assert kept == [n for n in range(300) if n % 3 and (n % 5 or n % 7 == 0) and n % 11]
    for place in (0, 1, 5, 11, 7):
        alone = reads.decode(batch([values[place]], [keys[place]], [sent[place]]))
        assert (alone.table.num_rows == 1) == (place in kept)
        assert [*reasons(alone).values()] == [why for at, why in reasons(whole).items() if at == place]
    assert rows(whole)[0] == {"a": 1, "k": 1, "h": "1", "raw": '{"a":"1"}'}


def test_a_record_with_thousands_of_headers_is_read() -> None:
    many = [(f"h{n}", b"%d" % n) for n in range(3_000)]
    decoded = made("a STRING, m MAP<STRING, BINARY>", {"a": "header.h2999", "m": "headers"}).decode(
        batch([b"{}", b"{}"], headers=[many, []])
    )
    first, second = rows(decoded)
    assert (first["a"], len(first["m"]), second["m"]) == ("2999", 3_000, [])


def test_without_columns_from_elsewhere_the_decoder_is_the_one_there_was() -> None:
    schema = table_schema("a INT", kafka_columns=True)
    assert record_schema(schema) == parse_ddl("a INT")
    assert type(made("a INT", {})).__module__.startswith("participant.records.json")


def test_a_time_beyond_the_years_that_there_are_is_a_reject_and_no_other_time() -> None:
    times = [FIRST_MS, 2**62, 253_402_300_799_999, 253_402_300_800_000]
    reads = made("ts TIMESTAMP, d DATE, a INT", {"ts": "timestamp", "d": "timestamp as DATE"})
    decoded = reads.decode(batch([b'{"a":null}'] * 4, timestamps_ms=times))
    assert [row["d"].year for row in rows(decoded)] == [2023, 9999]
    assert sorted(reasons(decoded)) == [1, 3]
    numbers = made("ms BIGINT, a INT", {"ms": "timestamp"}).decode(
        batch([b'{"a":null}'] * 4, timestamps_ms=times)
    )
    assert [row["ms"] for row in rows(numbers)] == times


def test_rows_may_be_keyed_and_changed_by_records_of_which_no_field_is_read() -> None:
    reads = made("k STRING, raw BINARY", {"k": "key", "raw": "value"}, key=["k"])
    decoded = reads.decode(batch([b"\x00", None, b"no json"], [b"a", b"a", b"b"]))
    assert rows(decoded) == [{"k": "a", "raw": b"\x00"}, {"k": "b", "raw": b"no json"}]
    assert decoded.kept is not None and decoded.kept.tolist() == [0, 2]
    assert decoded.tombstones is not None and decoded.tombstones.columns.to_pylist() == [{"k": "a"}]
    whole = reads.decode(batch([b"1"], [b"c"]))
    assert rows(whole) == [{"k": "c", "raw": b"1"}] and whole.tombstones is None
