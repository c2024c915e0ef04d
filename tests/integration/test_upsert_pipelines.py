"""Whole pipelines of changes on the real parts, with workers killed: the table equals the model."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from table.errors import TableError
from table.hudi.driver.reach import reach
from table.kinds import HUDI, table_kind
from table.store.location import Location
from table.store.settings import StoreSettings
from tests.debezium_events import binlog_change
from tests.harness import DEADLINE_S, SCHEMA, Pipeline, Run, await_that
from tests.merge_model import Change, Model

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

ROUNDS, CHANGES, KEYS = 4, 600, 150
COMPACTED_ROUNDS, COMPACTIONS = 8, 2


def settings(**more: str) -> dict[str, str]:
    return {
        "record.schema": "id STRING NOT NULL, region STRING, amount BIGINT, ts BIGINT, deleted BOOLEAN",
        "table.kind": "upsert",
        "table.key": '["id"]',
        "table.partition_by": "region",
        "table.buckets": "3",
        **more,
    }


def some_changes(chance: random.Random, number: int) -> list[Change]:
    """Late versions, deletes and re-inserts; a row stays in its table partition."""
    changes = []
    for place in range(number * CHANGES, (number + 1) * CHANGES):
        key = chance.randrange(KEYS)
        changes.append(
            Change(
                key=("ab"[key % 2], f"k-{key}"),
                amount=place,
                ts=place + chance.choice((0, 0, 0, -300, 50)),
                deleted=chance.random() < 0.1,
            )
        )
    return changes


def held(spark: SparkSession, table: Path | str) -> dict[tuple[str, str], tuple[int, int]]:
    spark.catalog.clearCache()
    read = spark.read.format("hudi").load(str(table)).select("region", "id", "amount", "ts")
    found = [((one[0], one[1]), (one[2], one[3])) for one in read.collect()]
    assert len(dict(found)) == len(found), "a key is there twice"
    return dict(found)


def play(pipeline: Pipeline, rounds: list[list[tuple[bytes, bytes | None]]]) -> None:
    """Bring the records round by round, and kill a worker in most of them."""
    run: Run = pipeline.start()
    done = 0
    for number, records in enumerate(rounds):
        pipeline.produce_keyed(records)
        done += len(records)
        if number in (1, 2):
            run.kill_worker(coordinator=number == 1)
        await_that(f"offset {done} committed", lambda upto=done: pipeline.committed() == upto)
    assert run.stop() == 0, run.text()


def test_changes_with_flags_and_late_versions_equal_the_model(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    pipeline.settings |= settings(**{"table.ordering": "ts", "table.delete_field": "deleted"})
    chance, model = random.Random(5), Model(by_event_time=True)
    rounds = []
    for number in range(ROUNDS):
        changes = some_changes(chance, number)
        for one in changes:
            model.apply(one)
        rounds.append([flagged(one) for one in changes])
    play(pipeline, rounds)
    assert held(spark, pipeline.table) == model.rows()
    sets = [word for name, value in pipeline.settings.items() for word in ("--set", f"{name}={value}")]
    said = " ".join(pipeline.command("validate", *sets).stdout.split())
    assert "key id, partitioned by region, 3 buckets, of two versions the larger ts counts" in said, said
    assert "file system agree to 10 s" in said, said
    assert "hoodie.write.concurrency.mode = non_blocking_concurrency_control" in said
    verdict = pipeline.verify()
    assert verdict["exact"] is None and not verdict["ranges_broken"]
    assert "upserts" in verdict["not_checkable"][0]


@pytest.mark.smoke("upserts")
def test_upserts_with_compactions_equal_the_model(pipeline: Pipeline, spark: SparkSession) -> None:
    compact(pipeline, spark, str(pipeline.table), None)


def flagged(change: Change) -> tuple[bytes, bytes]:
    region, key = change.key
    value = {"id": key, "region": region, "amount": change.amount, "ts": change.ts}
    return key.encode(), json.dumps({**value, "deleted": change.deleted}).encode()


def test_tombstones_delete_the_rows_that_their_keys_name(pipeline: Pipeline, spark: SparkSession) -> None:
    pipeline.settings |= settings(**{"table.partition_by": ""})
    chance, model = random.Random(6), Model(by_event_time=False)
    rounds = []
    for number in range(ROUNDS):
        changes = some_changes(chance, number)
        for one in changes:
            model.apply(one)
        rounds.append([(one.key[1].encode(), None if one.deleted else flagged(one)[1]) for one in changes])
    play(pipeline, rounds)
    assert held(spark, pipeline.table) == model.rows()


def test_debezium_s_changes_equal_the_source_s_rows(pipeline: Pipeline, spark: SparkSession) -> None:
    """As a connector sends them: deletes with a tombstone behind, and a stretch that is sent once more."""
    compacting = {"services.compaction_every": "2"}
    pipeline.settings |= settings(**{"record.envelope": "debezium", "table.partition_by": "", **compacting})
    chance, rows = random.Random(7), dict[str, tuple[int, int]]()
    rounds, sent = [], list[tuple[bytes, bytes | None]]()
    for number in range(ROUNDS):
        records: list[tuple[bytes, bytes | None]] = []
        for place in range(number * CHANGES, (number + 1) * CHANGES):
            name = f"k-{chance.randrange(KEYS)}"
            row = {"id": name, "region": "a", "amount": place, "ts": place, "deleted": None}
            key = json.dumps({"id": name}).encode()
            if name in rows and chance.random() < 0.2:
                records += [(key, change_event("d", place, before={"id": name})), (key, None)]
                del rows[name]
            else:
                records.append((key, change_event("u" if name in rows else "c", place, after=row)))
                rows[name] = (place, place)
        # after a restart a connector may send a stretch again; tombstones in it are of rows that are gone
        again = [one for one in sent[-50:] if one[1] is not None]
        rounds.append(again + records)
        sent = records
    play(pipeline, rounds)
    assert held(spark, pipeline.table) == {("a", name): row for name, row in rows.items()}


def test_a_failover_to_a_server_with_a_binlog_of_its_own_halts_until_an_operator_has_begun_anew(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    """As docs/upserts.md tells an operator to: a halt at each start, then the way on in the same table."""
    text = pipeline.config.read_text(encoding="utf-8")  # the file, since `offsets` reads nothing else
    text = text.replace("[record]", '[record]\nenvelope = "debezium"\non_error = "dead_letter"')
    text = text.replace('partition_by = "day"', 'kind = "upsert"\nbuckets = 3')
    text = text.replace('"event_id"', '"id"').replace(SCHEMA, settings()["record.schema"])
    pipeline.config.write_text(text, encoding="utf-8")
    before = [binlog_change("c", "k", 12_000, 1, 1), binlog_change("c", "g", 12_001, 2, 1)]
    pipeline.produce_keyed(
        [*before, binlog_change("u", "k", 12_002, 3, 2), *before], partition=0
    )  # and a stretch sent again
    assert pipeline.run_to_end().wait(1) == 0
    failed_over = [
        binlog_change("u", "k", 300, 5, 3),
        binlog_change("d", "g", 301, 6, 1),
        binlog_change("c", "n", 302, 7, 1),
    ]
    pipeline.produce_keyed([binlog_change("u", "k", 12_003, 4, 9), *failed_over], partition=0)
    for _ in range(2):
        halted = pipeline.run_to_end()
        assert halted.wait(1) == 3
        said = " ".join(halted.text().split())
        assert f"{pipeline.topic}:0 at offset 6: this change was made later than all before it" in said, said
        assert "When the source's log begins anew" in said
    assert held(spark, pipeline.table) == {("a", "k"): (9, 4), ("a", "g"): (1, 2)}

    spark.sql(f"create table anew using hudi location '{pipeline.table}'")
    try:
        spark.sql("delete from anew")
    finally:
        spark.sql("drop table anew")
    spark.sql(
        f"call run_compaction(op => 'scheduleandexecute', path => '{pipeline.table}',"
        " options => 'hoodie.compact.inline.max.delta.commits=1')"
    ).collect()
    pipeline.change_offsets("--set", f"{pipeline.topic}:0=7", reason="failover")
    snapshot = [binlog_change("r", "k", 0, 8, 3), binlog_change("r", "n", 0, 8, 1)]
    pipeline.produce_keyed(
        [*snapshot, binlog_change("u", "n", 400, 9, 5), binlog_change("c", "z", 401, 10, 7)], partition=0
    )
    run = pipeline.run_to_end()
    assert run.wait(1) == 0, run.text()
    assert held(spark, pipeline.table) == {("a", "k"): (3, 8), ("a", "n"): (5, 9), ("a", "z"): (7, 10)}


def test_changes_of_a_transaction_beyond_four_gigabytes_count_as_later_also_for_the_next_run(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    """Within a binlog file, `pos` begins again at zero there."""
    pipeline.settings |= settings(**{"record.envelope": "debezium", "table.partition_by": ""})

    def change(op: str, name: str, pos: int, amount: int) -> tuple[bytes, bytes]:
        key, value = binlog_change(op, name, 200, 1, amount)
        said = json.loads(value)
        said["source"]["pos"] = pos
        return key, json.dumps(said).encode()

    before = [change("c", "k", 4_294_000_000, 1), change("c", "g", 4_294_960_000, 2)]
    play(
        pipeline, [[*before, change("u", "k", 698, 3)], [change("u", "k", 900, 4), change("d", "g", 950, 2)]]
    )
    assert held(spark, pipeline.table) == {("a", "k"): (4, 1)}


def test_a_driver_killed_while_it_compacts_leaves_nothing_that_its_successor_does_not_mend(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    pipeline.settings |= settings(**{"table.partition_by": "", "services.compaction_every": "1"})
    chance, model = random.Random(8), Model(by_event_time=False)
    number = 0

    def bring() -> None:
        nonlocal number
        changes = some_changes(chance, number)
        number += 1
        pipeline.produce_keyed(flagged(one) for one in changes)
        for one in changes:
            model.apply(Change(key=one.key, amount=one.amount, ts=one.ts))

    left: set[str] = set()
    while not left and number < 10:  # a compaction that was too quick for the kill is no use
        before = compacted(pipeline.table)
        run = pipeline.start()
        bring()
        await_that(
            "compaction",
            lambda was=before: compacting(pipeline.table) or compacted(pipeline.table) - was,
        )
        run.kill()
        left = compacting(pipeline.table)
    assert left
    bring()
    run = pipeline.start()
    await_that("end of what was left", lambda: not left & compacting(pipeline.table))
    await_that("last change", lambda: pipeline.committed() == number * CHANGES)
    assert run.stop() == 0, run.text()
    assert held(spark, pipeline.table) == model.rows()
    assert all(f"compaction {instant} was begun and not completed" in run.text() for instant in left)


def compact(
    pipeline: Pipeline, spark: SparkSession, path: str, storage: StoreSettings | None, *arguments: str
) -> None:
    """Upsert until two compactions are complete, however late they begin; compare all rows with the model."""
    every = {"services.compaction_every": "3", "table.ordering": "ts", "table.delete_field": "deleted"}
    pipeline.settings |= settings(**every)
    chance, model = random.Random(9), Model(by_event_time=True)
    run = pipeline.start(*arguments)

    def compacted() -> bool:
        try:
            completed = table_kind(HUDI).reader(path, storage).completed()
            return sum(one.action == "commit" for one in completed) >= COMPACTIONS
        except TableError:
            return False  # it is asked again

    done = number = 0
    until = time.monotonic() + 2 * DEADLINE_S
    while number < COMPACTED_ROUNDS or not compacted():  # a late one merges the work of the next
        assert time.monotonic() < until, f"no two compactions within {number} rounds"
        changes = some_changes(chance, number)
        for one in changes:
            model.apply(one)
        pipeline.produce_keyed(flagged(one) for one in changes)
        done += len(changes)

        def committed(upto: int = done) -> bool:
            assert run.process.poll() is None, run.text()[-4_000:]
            return pipeline.committed() == upto

        await_that(f"offset {done} committed", committed, deadline_s=DEADLINE_S)
        number += 1
    assert run.stop() == 0, run.text()
    if storage is not None:
        reach(spark, Location.parse(path), storage)
    assert held(spark, path) == model.rows()


def compacting(table: Path) -> set[str]:
    """Compactions that have been begun and are not complete."""
    names = [path.name for path in (table / ".hoodie" / "timeline").glob("*.*")]
    begun = {name.split(".")[0] for name in names if name.endswith(".compaction.inflight")}
    return begun - compacted(table)


def compacted(table: Path) -> set[str]:
    """Compactions that are complete."""
    return {path.name.split("_")[0] for path in (table / ".hoodie" / "timeline").glob("*.commit")}


def change_event(op: str, position: int, **sides: object) -> bytes:
    source = {"connector": "postgresql", "lsn": 1_000 + position, "snapshot": "false"}
    event = {"before": None, "after": None, **sides, "source": source, "op": op, "ts_ms": 1}
    return json.dumps({"schema": None, "payload": event} if position % 2 else event).encode()
