"""The position of a change event: a number that is ordered as the source's log is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.schema import POSITION_COLUMN
from tests.debezium_events import BINLOG, ORACLE, POSTGRESQL, SQLSERVER, created, decode, event, ids


def position(source: dict[str, Any], op: str = "c") -> int:
    found = decode("id INT", event(op, after={"id": 1}, source=source)).rows.column(POSITION_COLUMN)
    number: int = found[0].as_py()
    return number


@pytest.mark.parametrize(
    ("source", "number"),
    [
        (POSTGRESQL, 7),
        (POSTGRESQL | {"lsn": 2**63 - 1}, 2**63 - 1),
        (BINLOG, (3 << 33) + 154),
        (BINLOG | {"connector": "mariadb", "row": None}, (3 << 33) + 154),
        (SQLSERVER, (0x27 << 32) + 0x758),
        (SQLSERVER | {"commit_lsn": "0000002A:00000fB0:00aF"}, (0x2A << 32) + 0xFB0),
        (ORACLE, 2122185),
    ],
)
def test_a_position_is_made_of_its_connector_s_fields(source: dict[str, Any], number: int) -> None:
    assert position(source) == number


@pytest.mark.parametrize(
    "source",
    [
        POSTGRESQL,
        POSTGRESQL | {"lsn": None, "snapshot": "incremental"},
        {"connector": "mysql", "file": "", "snapshot": True},
        SQLSERVER,
        {"connector": "oracle", "snapshot": "last"},
    ],
)
def test_what_a_snapshot_reads_is_older_than_any_change(source: dict[str, Any]) -> None:
    assert position(source, "r") == 0


number = st.integers(0, 9) | st.integers(0, 2**31 - 1)
large = number | st.integers(0, 2**63 - 1)


def postgresql(at: Any) -> dict[str, Any]:
    return {"connector": "postgresql", "lsn": at[0]}


def mysql(at: Any) -> dict[str, Any]:
    return {"connector": "mysql", "file": f"host-7-bin.{at[0]:06}", "pos": at[1], "row": 7}


def sqlserver(at: Any) -> dict[str, Any]:
    return SQLSERVER | {"commit_lsn": "{:08x}:{:08x}:0003".format(*at)}


def oracle(at: Any) -> dict[str, Any]:
    return ORACLE | {"scn": str(at[0])}


# A change 2 GiB behind another of its file would begin a new range: test_binlog.py has logs with such ranges.
PLACES = [
    (postgresql, st.tuples(large)),
    (mysql, st.tuples(st.integers(0, 2**30 - 1), st.integers(0, 2**31 - 1))),
    (sqlserver, st.tuples(number, st.integers(0, 2**32 - 1))),
    (oracle, st.tuples(st.integers(0, 10**18 - 1))),
]


@pytest.mark.parametrize(("spell", "places"), PLACES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_positions_are_ordered_as_the_source_s_log_is(
    spell: Callable[[Any], dict[str, Any]], places: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(places, min_size=2, max_size=8))
    changes = decode("id INT", *(created(spell(at)) for at in drawn))
    numbers = changes.rows.column(POSITION_COLUMN).to_pylist()
    for (a, number_a), (b, number_b) in product(zip(drawn, numbers, strict=True), repeat=2):
        assert (a < b) == (number_a < number_b)


def test_connectors_in_one_batch_keep_their_own_positions() -> None:
    sources: list[dict[str, Any]] = [
        POSTGRESQL,
        BINLOG,
        {"connector": "db2"},
        ORACLE,
        SQLSERVER,
        POSTGRESQL | {"lsn": 8},
        BINLOG,
    ]
    changes = decode("id INT", *(event("c", after={"id": i}, source=s) for i, s in enumerate(sources)))
    assert changes.kept.tolist() == [0, 1, 3, 4, 5, 6]
    found = changes.rows.column(POSITION_COLUMN).to_pylist()
    assert found == [position(source) for source in sources if source["connector"] != "db2"]


def test_of_several_connectors_only_a_snapshot_s_row_may_lack_its_position() -> None:
    lacking = POSTGRESQL | {"lsn": None}
    changes = decode(
        "id INT",
        created(BINLOG),
        event("c", after={"id": 2}, source=lacking),
        event("r", after={"id": 3}, source=lacking),
    )
    assert ids(changes) == [1, 3]
