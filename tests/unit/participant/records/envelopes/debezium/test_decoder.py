"""Change events: each row is what its own event says, in the source's order; all else is named a reject."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from participant.records.envelopes.debezium.decoder import Changes, DebeziumDecoder
from participant.records.envelopes.debezium.event_reader import NO_DATE, PROBE_RECORDS
from participant.records.json.values import explain
from participant.records.raw import RawBatch
from table.schema import POSITION_COLUMN, SchemaError, parse_ddl, table_schema
from tests import debezium_events
from tests.debezium_events import (
    BINLOG,
    ORACLE,
    POSTGRESQL,
    SQLSERVER,
    batch_of,
    created,
    decode,
    event,
    ids,
    reason,
    reasons,
)
from tests.debezium_events import (
    decoder as decoder_of,
)
from tests.json_decoders import DECODERS, PLAIN, skip_unless_there


@pytest.fixture(scope="module", params=DECODERS, autouse=True)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test here is played with each decoder of JSON."""
    skip_unless_there(request.param)
    debezium_events.read_by = request.param
    yield str(request.param)
    debezium_events.read_by = PLAIN


# --- what an event says -----------------------------------------------------------------------------


def test_both_spellings_of_an_event_may_be_in_one_batch() -> None:
    changes = decode(
        "id BIGINT NOT NULL, name STRING",
        event("c", after={"id": 1, "name": "x"}),
        event("c", after={"id": 2, "name": "y"}, wrapped=True),
        event("d", before={"id": 3, "name": "z"}, wrapped=True),
        event("d", before={"id": 4}),
    )
    assert changes.rows.drop_columns([POSITION_COLUMN]).to_pylist() == [
        {"id": 1, "name": "x"},
        {"id": 2, "name": "y"},
        {"id": 3, "name": "z"},
        {"id": 4, "name": None},
    ]
    assert changes.deleted.tolist() == [False, False, True, True]
    assert changes.rejects == ()


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(("op", "expected"), [("c", 2), ("u", 2), ("r", 2), ("d", 1)])
def test_a_delete_gives_what_was_before_and_every_other_change_what_is_after(
    op: str, expected: int, wrapped: bool
) -> None:
    changes = decode("id BIGINT", event(op, before={"id": 1}, after={"id": 2}, wrapped=wrapped))
    assert ids(changes) == [expected]
    assert changes.deleted.tolist() == [op == "d"]


def test_a_delete_may_lack_required_columns_and_another_change_may_not() -> None:
    changes = decode(
        "id BIGINT, name STRING NOT NULL",
        event("d", before={"id": 1, "name": None}),
        event("u", after={"id": 2, "name": None}, before={"id": 2, "name": "x"}),
        event("c", after={"id": 3}, wrapped=True),
        event("u", after={"id": 4, "name": "x"}, before={"id": 4}),
    )
    assert ids(changes) == [1, 4]
    assert reasons(changes) == dict.fromkeys([1, 2], "required field name is missing or null")


def test_a_required_field_inside_a_struct_is_required() -> None:
    ddl = "id BIGINT, home STRUCT<city: STRING NOT NULL>"
    changes = decode(
        ddl, event("c", after={"id": 1, "home": {"city": "x"}}), event("c", after={"id": 2, "home": None})
    )
    assert changes.rows.column("home").to_pylist() == [{"city": "x"}, None]
    assert changes.rows.schema.field("home").type == parse_ddl(ddl).field("home").type
    assert reason(ddl, event("c", after={"id": 1, "home": {}})) == "required field after.home.city is missing"


def test_a_row_has_the_columns_of_the_schema_in_its_order_and_then_its_position() -> None:
    ddl = "b BIGINT NOT NULL, a STRING, c DECIMAL(10,2), t TIMESTAMP, l ARRAY<INT>, m MAP<STRING,INT>"
    after = {"a": "x", "b": 1, "c": "1.25", "t": "2026-08-22 13:13:51Z", "l": [1], "m": {"k": 2}, "z": 0}
    changes = decode(ddl, event("c", after=after), event("d", before={"b": 2}), event("c", after={}))
    assert changes.rows.to_pylist()[0] == {
        **{"b": 1, "a": "x", "c": Decimal("1.25"), "l": [1], "m": [("k", 2)]},
        "t": datetime(2026, 8, 22, 13, 13, 51, 0, UTC),
        POSITION_COLUMN: 7,
    }
    assert changes.rows.schema.names == ["b", "a", "c", "t", "l", "m", POSITION_COLUMN]
    assert changes.rows.schema.types == [*parse_ddl(ddl).types, pa.int64()]
    assert changes.rows.column("b").to_pylist() == [1, 2]
    assert reasons(changes) == {2: "required field b is missing or null"}


def test_a_record_without_a_value_is_a_tombstone_and_no_reject() -> None:
    changes = decode(
        "id BIGINT", None, event("d", before={"id": 1}), None, b"", b"null", event("c", after={"id": 2}), None
    )
    assert changes.tombstones.tolist() == [0, 2, 6]
    assert changes.kept.tolist() == [1, 5]
    assert reasons(changes) == {3: "empty value", 4: "not a JSON object"}
    assert [reject.offset for reject in changes.rejects] == [1_021, 1_028]


@pytest.mark.parametrize("values", [[], [None], [b"x"], [None, b"x", None]])
def test_a_batch_without_a_change_is_an_empty_table(values: list[bytes | None]) -> None:
    changes = decode("id BIGINT NOT NULL, day DATE", *values)
    assert changes.rows.num_rows == len(changes.kept) == len(changes.deleted) == 0
    assert changes.rows.schema.names == ["id", "day", POSITION_COLUMN]
    assert len(changes.tombstones) == values.count(None)
    assert len(changes.rejects) == values.count(b"x")


def test_poison_does_not_touch_the_good_events_around_it() -> None:
    poison = [b"x", b'{"op":"c"', b"{}{}", b"\xff", b"{}", created(None), event("c", after={"id": "1"})]
    values: list[bytes | None] = [event("c", after={"id": i}, wrapped=i % 3 == 0) for i in range(500)]
    places = range(3, 500, 71)
    for place, value in zip(places, poison, strict=True):
        values[place] = value
    changes = decode("id BIGINT NOT NULL", *values)
    assert [reject.index for reject in changes.rejects] == list(places)
    assert ids(changes) == changes.kept.tolist() == [i for i in range(500) if i not in places]


def test_good_events_and_tombstones_are_decoded_without_a_closer_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoder = decoder_of("id BIGINT NOT NULL")
    for one in decoder._reader._decoders:
        strict = getattr(one, "_strict", one)
        monkeypatch.setattr(strict, "_salvage", lambda *_: pytest.fail("looked closer"))
    values = [event("c", after={"id": 1}), None, event("d", before={"id": 1}, wrapped=True), None]
    assert decoder.decode(batch_of(values)).kept.tolist() == [0, 2]


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (event("t"), "op t (truncate) cannot be applied exactly once"),
        (event("t"), "set skipped.operations=t in the connector, or empty the table by hand"),
        (event("m"), "op m (a message in the database's log) changes no row"),
        (event("x", after={"id": 1}), "field op is none of c, u, r, d, t, m"),
        (event(None, after={"id": 1}), "field op is missing or null"),
        (b"{}", "field op is missing or null"),
        (b'{"schema":null,"payload":null}', "field op is missing or null"),
        (event("c", before={"id": 1}), "op c, and field after is missing or null"),
        (event("u", before={"id": 1}, wrapped=True), "op u, and field after is missing or null"),
        (event("d", after={"id": 1}), "op d, and field before is missing or null"),
        (event("c", after="x"), "field after: not a STRUCT but a string"),
        (event("c", after=[], wrapped=True), "field payload.after: not a STRUCT but an array"),
        (created(None), "field source is missing or null"),
        (created({}), "field source.connector is missing or null"),
        (created({"connector": "postgresql"}), "field source.lsn is missing or null"),
        (created(POSTGRESQL | {"lsn": -1}), "field source.lsn is not spelled as a position"),
        (created(BINLOG | {"file": ""}), "field source.file is missing or null"),
        (created(BINLOG | {"file": "binlog"}), "field source.file is not spelled as a position"),
        (created(BINLOG | {"connector": "mariadb", "pos": -57}), "Set binlog_legacy_event_pos=ON in MariaDB"),
        (created(BINLOG | {"pos": None}), "field source.pos is missing or null"),
        (created(SQLSERVER | {"commit_lsn": None}), "field source.commit_lsn is missing or null"),
        (created(SQLSERVER | {"commit_lsn": "27:758:5"}), "field source.commit_lsn is not spelled as a posi"),
        (created(ORACLE | {"scn": "1e3"}), "field source.scn is not spelled as a position"),
        (
            created({"connector": "mongodb"}),
            "connector mongodb is not known: its positions cannot be compared",
        ),
        (b'{"op":"c","payload":' + created(POSTGRESQL) + b"}", "holds op twice"),
        (b'{"op":"c",' + created(POSTGRESQL)[1:], "field op is there twice"),
    ],
)
def test_what_is_no_change_is_refused_for_a_reason(value: bytes, why: str) -> None:
    assert why in reason("id BIGINT NOT NULL", value)


def test_a_reason_never_holds_what_a_record_holds() -> None:
    secret = "Jane Roe 1981"
    values = [
        event(secret, after={}),
        event("c", after=secret),
        event("c", after={"day": secret}),
        event("c", after={"id": secret}, wrapped=True),
        created({"connector": secret}),
        *(created(BINLOG | {name: secret}) for name in ("file", "pos")),
        created(SQLSERVER | {"commit_lsn": secret}),
    ]
    changes = decode("id BIGINT, day DATE", *values)
    assert len(changes.rejects) == len(values)
    assert not [why for why in reasons(changes).values() if "Jane" in why]


def test_a_column_of_the_position_s_name_is_refused_and_the_table_s_own_is_not() -> None:
    with pytest.raises(SchemaError, match=POSITION_COLUMN.upper()):
        DebeziumDecoder(pa.schema([pa.field(POSITION_COLUMN.upper(), pa.string())]))
    decoder = DebeziumDecoder(table_schema("id BIGINT", kafka_columns=True, source_position=True))
    assert decoder.decode(batch_of([])).rows.schema.names == ["id", POSITION_COLUMN]


# --- dates ------------------------------------------------------------------------------------------


def test_a_date_is_a_string_or_days_since_1970() -> None:
    spelled = ["2026-08-22", 20687, "2026-08-22Z", None, -719162, "9999-12-31Z"]
    changes = decode("id INT, day DATE", *(event("c", after={"id": 1, "day": day}) for day in spelled))
    day = date(2026, 8, 22)
    assert changes.rows.column("day").to_pylist() == [day, day, day, None, date.min, date.max]
    assert changes.kept.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("day", "why"),
    [
        ("2026-02-30", NO_DATE),
        ("2026-08-22ZZ", NO_DATE),
        ("2026-08-22\n", NO_DATE),
        ("0000-01-01", NO_DATE),
        ("20687", NO_DATE),
        (20687.0, "a number"),
        (-719163, "a number beyond its range"),
        (2932897, "a number beyond its range"),
        (2**31, "a number"),
        (True, "true or false"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_anything_else_is_no_date(day: Any, why: str, wrapped: bool) -> None:
    found = reason("id INT, day DATE", event("c", after={"id": 2, "day": day}, wrapped=wrapped))
    assert found.replace("payload.", "") == f"field after.day: not a DATE but {why}"


def test_a_record_that_spells_dates_in_two_ways_is_refused() -> None:
    value = event("u", before={"id": 1, "day": "2026-08-22"}, after={"id": 1, "day": 20687})
    assert ".day: not a DATE but a " in reason("id INT, day DATE", value)


def test_a_time_without_a_zone_may_have_debezium_s_z() -> None:
    spelled = ["2026-08-22T10:11:12.123456Z", "2026-08-22 10:11:12", "2026-08-22T12:11:12+02:00", None]
    changes = decode(
        "id BIGINT, at TIMESTAMP_NTZ, inside STRUCT<at: TIMESTAMP_NTZ>",
        *(event("c", after={"id": n, "at": at}) for n, at in enumerate(spelled)),
        event("d", before={"id": 4, "at": "0001-01-01T00:00:00Z"}),
        event("c", after={"id": 5, "at": "yesterday"}),
        event("c", after={"id": 6, "inside": {"at": "2026-08-22T10:11:12Z"}}),
    )
    clock = datetime(2026, 8, 22, 10, 11, 12)
    assert changes.rows.schema.field("at").type == pa.timestamp("us")
    assert changes.rows["at"].to_pylist() == [
        clock.replace(microsecond=123456),
        clock,
        clock,
        None,
        datetime(1, 1, 1),
    ]
    assert {place: why.split(":")[0] for place, why in reasons(changes).items()} == {
        5: "field after.at",
        6: "field after.inside.at",
    }


def test_a_reason_is_not_about_a_date_that_was_spelled_well() -> None:
    value = event("c", after={"day": 20687, "id": "x"})
    assert reason("day DATE, id INT", value) == "field after.id: not a INT but a string"


def test_days_are_read_at_once_when_the_first_events_showed_them(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = decoder_of("id INT, day DATE")
    looked: list[bytes] = []

    def look(value: bytes, schema: pa.Schema) -> str:
        looked.append(value)
        return explain(value, schema)

    monkeypatch.setattr("participant.records.json.decoder.explain", look)
    values = [event("c", after={"id": i, "day": i}) for i in range(3 * PROBE_RECORDS)]
    assert ids(decoder.decode(batch_of(values))) == list(range(3 * PROBE_RECORDS))
    assert 0 < len(looked) <= PROBE_RECORDS


# --- against a slow reference -----------------------------------------------------------------------

DDL = "id BIGINT NOT NULL, name STRING, day DATE"
NAMES = ("before", "after", "source", "op")
bad = st.sampled_from([True, 1.5, "x", -1, 2**63, [], {}])


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


days = st.sampled_from([0, 20687, -719163, "2026-08-22", "2026-08-22Z", "2026-13-01", None])
rows = optional(
    id=st.integers(0, 99) | st.integers(0, 99) | st.none() | bad,
    name=st.text(max_size=3) | st.none() | st.just(1),
    day=days,
    more=bad,
)
good_rows = st.builds(
    lambda i, n, d: {"id": i, "name": n, "day": d}, st.integers(), st.text(max_size=3), days
)
sources = optional(
    connector=st.sampled_from(["postgresql", "postgresql", "postgresql", "mongodb", "A B", None]),
    lsn=st.integers(0, 2**63 - 1) | st.integers(0, 9) | st.none() | bad,
    snapshot=st.sampled_from([True, "true", "first", "false", False]),
)
said = optional(
    op=st.sampled_from(["c", "u", "r", "d", "c", "u", "r", "d", "t", "m", "x", "", None, 1]),
    before=st.none() | good_rows | rows | bad,
    after=st.none() | good_rows | rows | bad,
    source=st.just(POSTGRESQL) | sources | bad | st.none(),
    ts_ms=bad,
)
good = st.builds(
    lambda op, row, lsn: {"op": op, "after": row, "before": row, "source": POSTGRESQL | {"lsn": lsn}},
    st.sampled_from("curd"),
    good_rows,
    st.integers(0, 2**63 - 1),
)
one_event = good | said
documents = st.one_of(
    one_event,
    one_event,
    st.builds(lambda e: {"schema": {"op": "c", "payload": 1}, "payload": e}, one_event | st.none()),
    st.builds(lambda e: {"op": "c", "payload": e}, one_event),
)
texts = st.builds(
    lambda d, blank: json.dumps(d, indent=blank).encode(), documents, st.sampled_from([None, 1])
)
values = st.one_of(
    texts, texts, texts, texts, st.none(), st.sampled_from([b"", b"x", b"{}{}", b"null", b"{"])
)


def is_row(row: Any) -> bool:
    if row is None:
        return True
    return (
        isinstance(row, dict)
        and (row.get("id") is None or (type(row["id"]) is int and -(2**63) <= row["id"] < 2**63))
        and isinstance(row.get("name"), str | None)
        and to_day(row.get("day")) is not Ellipsis
    )


def to_day(day: Any) -> Any:
    try:
        return date.fromordinal(719163 + day) if type(day) is int else day and date.fromisoformat(day[:10])
    except ValueError:
        return ...


def is_source(source: Any) -> bool:
    lsn = source.get("lsn") if isinstance(source, dict) else None
    return source is None or (
        isinstance(source, dict) and (lsn is None or (type(lsn) is int and 0 <= lsn < 2**63))
    )


def reference(value: bytes | None) -> dict[str, Any] | None:
    """One value after the other, in plain Python: the row that it must be, None where it must be none."""
    try:
        document = json.loads(value or b"")
    except ValueError:
        return None
    if not isinstance(document, dict) or not isinstance(document.get("op"), str | None):
        return None
    inside = document.get("payload")
    if inside is not None and "op" in document:
        return None
    said = inside if inside is not None else document
    before, after, source, op = (said.get(name) for name in NAMES)
    if not (is_row(before) and is_row(after) and is_source(source) and isinstance(op, str | None)):
        return None
    if len({type(row["day"]) for row in (before, after) if row and row.get("day") is not None}) > 1:
        return None
    row = before if op == "d" else after
    lsn = source.get("lsn") if source else None
    if op not in ("c", "u", "r", "d") or row is None or not source or source.get("connector") != "postgresql":
        return None
    if (op != "d" and row.get("id") is None) or (op != "r" and lsn is None):
        return None
    columns = {"id": row.get("id"), "name": row.get("name"), "day": to_day(row.get("day"))}
    return {**columns, POSITION_COLUMN: 0 if op == "r" else lsn or 0, "deleted": op == "d"}


def rows_by_offset(batch: RawBatch, changes: Changes) -> dict[int, dict[str, Any]]:
    said = zip(changes.kept, changes.deleted, changes.rows.to_pylist(), strict=True)
    return {int(batch.offsets[i]): {**row, "deleted": bool(gone)} for i, gone, row in said}


@settings(max_examples=400, deadline=None)
@given(st.lists(values, max_size=30))
def test_each_row_is_what_the_event_at_its_offset_says(drawn: list[bytes | None]) -> None:
    batch = batch_of(drawn)
    changes = decoder_of(DDL).decode(batch)
    expected = {int(o): reference(v) for o, v in zip(batch.offsets, drawn, strict=True)}
    assert rows_by_offset(batch, changes) == {o: row for o, row in expected.items() if row is not None}
    assert changes.tombstones.tolist() == [i for i, v in enumerate(drawn) if v is None]
    refused = [i for i, v in enumerate(drawn) if v is not None and expected[int(batch.offsets[i])] is None]
    assert [reject.index for reject in changes.rejects] == refused
    assert [reject.offset for reject in changes.rejects] == [int(batch.offsets[i]) for i in refused]
    assert all(reject.reason for reject in changes.rejects)


@settings(max_examples=200, deadline=None)
@given(st.lists(values, max_size=10))
def test_what_becomes_of_an_event_does_not_depend_on_its_neighbours(drawn: list[bytes | None]) -> None:
    decoder = DebeziumDecoder(parse_ddl(DDL))
    batch = batch_of(drawn)
    together = rows_by_offset(batch, decoder.decode(batch))
    alone: dict[int, dict[str, Any]] = {}
    for i, value in enumerate(drawn):
        one = batch_of([value], first=int(batch.offsets[i]))
        alone |= rows_by_offset(one, decoder.decode(one))
    assert together == alone
