"""A source whose log begins anew is told from a connector that sends again what it has sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from control_topic.messages import SourcePartition
from participant.records.envelopes.debezium.decoder import Changes, DebeziumDecoder
from participant.records.envelopes.debezium.order import NAMES_MAX
from participant.records.port import RecordSpec
from participant.worker.memory import MemoryBudget
from participant.worker.stages import stages
from table.schema import POSITION_COLUMN, parse_ddl
from tests.debezium_events import BINLOG, ORACLE, POSTGRESQL, SQLSERVER, batch_of, event
from tests.unit.table.hudi.files.test_upserts import LAYOUT

DDL = "id INT"


def source(connector: str, place: int, ts_ms: int | None, name: str = "db") -> dict[str, Any]:
    """A change that left its log at `place`, whose own position may be anywhere."""
    said: dict[str, dict[str, Any]] = {
        "mysql": BINLOG | {"file": f"mysql-bin.{place // 100:06}", "pos": place % 100},
        "mariadb": BINLOG | {"connector": "mariadb", "file": f"bin.{place // 100:06}", "pos": place % 100},
        "sqlserver": SQLSERVER | {"commit_lsn": f"00000027:{place:08x}:0005"},
        "oracle": ORACLE | {"commit_scn": str(place), "scn": str(10_000 - place)},
        "postgresql": POSTGRESQL | {"sequence": f'["{place}","{place + 7}"]', "lsn": 10_000 - place},
    }
    return said[connector] | {"ts_ms": ts_ms, "name": name}


def change(connector: str, place: int, ts_ms: int | None, op: str = "u", name: str = "db") -> bytes:
    return event(op, after={"id": place}, source=source(connector, place, ts_ms, name))


CONNECTORS = ["mysql", "mariadb", "sqlserver", "oracle", "postgresql"]


def decoder() -> DebeziumDecoder:
    return DebeziumDecoder(parse_ddl(DDL))


def read(by: DebeziumDecoder, *values: bytes | None) -> Changes:
    return by.decode(batch_of(values))


@pytest.mark.parametrize("connector", CONNECTORS)
def test_a_change_that_is_later_but_lies_before_what_was_read_stops_the_source_partition(
    connector: str,
) -> None:
    by = decoder()
    assert read(by, change(connector, 900, 1_000), change(connector, 901, 2_000)).stop is None
    for _ in range(2):  # a stop that is met again is one still
        found = read(
            by, None, change(connector, 902, 3_000), change(connector, 5, 4_000), change(connector, 6, 5_000)
        )
        assert found.stop is not None
        index, why = found.stop
        assert index == 2 and "failover" in why and "docs/upserts.md" in why


@pytest.mark.parametrize("connector", CONNECTORS)
def test_in_one_batch_too(connector: str) -> None:
    found = read(decoder(), change(connector, 900, 1_000), change(connector, 5, 1_001))
    assert found.stop is not None and found.stop[0] == 1


@pytest.mark.parametrize("connector", CONNECTORS)
def test_what_a_connector_sends_again_is_no_new_log(connector: str) -> None:
    sent = [change(connector, 100 + n, 1_000 + n) for n in range(10)]
    by = decoder()
    for values in (sent, sent[3:], [*sent[5:], *sent[2:], change(connector, 110, 2_000)], sent):
        assert read(by, *values).stop is None


@pytest.mark.parametrize("connector", CONNECTORS)
def test_a_transaction_that_took_long_and_is_sent_again_is_no_new_log(connector: str) -> None:
    """Its changes left the log last, and bear the times at which they were made."""
    sent = [change(connector, 100, 5_000), change(connector, 101, 6_000), change(connector, 102, 1_000)]
    by = decoder()
    for values in (sent, sent, sent[1:], sent[2:], [change(connector, 103, 7_000)]):
        assert read(by, *values).stop is None


def test_changes_that_were_written_long_before_their_commit_are_no_new_log() -> None:
    """PostgreSQL and Oracle: the position itself falls, and the place at which the log was left does not."""
    for connector in ("oracle", "postgresql"):
        found = read(decoder(), change(connector, 100, 1_000), change(connector, 200, 2_000))
        numbers = found.rows.column(POSITION_COLUMN).to_pylist()
        assert numbers[0] > numbers[1] and found.stop is None


def test_a_snapshot_s_rows_and_changes_without_a_place_or_a_time_say_nothing_of_the_log() -> None:
    by = decoder()
    without = event("u", after={"id": 1}, source=source("postgresql", 5, 9_000) | {"sequence": '[null,"7"]'})
    values = [change("mysql", 900, 1_000), change("mysql", 5, 9_000, "r"), change("mysql", 5, None), without]
    assert read(by, *values).stop is None
    assert read(by, change("mysql", 5, 1_001)).stop is not None


def test_connectors_that_share_a_topic_have_a_log_each() -> None:
    by = decoder()
    shards = [change("mysql", 900 - 300 * n, 1_000 + n, name=f"shard-{n}") for n in range(3)]
    assert read(by, *shards).stop is None
    assert read(by, change("mysql", 301, 2_000, name="shard-2")).stop is None
    found = read(by, change("mysql", 302, 3_000, name="shard-2"), change("mysql", 302, 3_000, name="shard-1"))
    assert found.stop is not None and found.stop[0] == 1


def test_each_database_of_a_sql_server_has_a_log_of_its_own() -> None:
    by = decoder()

    def changed(database: str, place: int, ts_ms: int) -> bytes:
        return event("u", after={"id": 1}, source=source("sqlserver", place, ts_ms) | {"db": database})

    assert read(by, changed("orders", 900, 1_000), changed("stock", 300, 2_000)).stop is None
    assert read(by, changed("orders", 901, 3_000), changed("stock", 301, 4_000)).stop is None
    found = read(by, changed("orders", 902, 5_000), changed("stock", 200, 6_000))
    assert found.stop is not None and found.stop[0] == 1


def test_source_partitions_are_not_compared() -> None:
    by = decoder()
    read(by, change("mysql", 900, 1_000))
    other = batch_of([change("mysql", 5, 2_000)])
    assert by.decode(replace(other, partition=SourcePartition("other", 0))).stop is None


def test_no_more_connectors_are_remembered_than_a_bound() -> None:
    by = decoder()
    read(by, *(change("mysql", 900, 1_000, name=f"n{n}") for n in range(NAMES_MAX + 5)))
    found = read(by, *(change("mysql", 5, 2_000, name=f"n{n}") for n in (0, NAMES_MAX + 4)))
    assert found.stop is not None and found.stop[0] == 1


def test_a_new_log_that_was_committed_counts_from_where_it_began() -> None:
    """An operator has passed it over: what stood before is looked at, and is no reason to stop."""
    before = [change("mysql", 900, 1_000), change("mysql", 5, 2_000), change("mysql", 6, 3_000)]
    asked: list[int] = []

    def look_back(_partition: Any, offset: int) -> Any:
        asked.append(offset)
        return [batch_of(before)]

    made = stages(
        layout=replace(LAYOUT, ddl="id INT NOT NULL", ordering_field=POSITION_COLUMN, source_position=True),
        slot=0,
        incarnation="w",
        memory=MemoryBudget(1_000_000),
        record=RecordSpec(envelope="debezium"),
        look_back=look_back,
    )
    after = batch_of([change("mysql", 7, 4_000), change("mysql", 2, 5_000)], first=9_000)
    found = made.decoder.decode(after)
    assert found.stop is not None and found.stop[0] == 1
    assert made.decoder.decode(after).stop == found.stop and asked == [9_000]
