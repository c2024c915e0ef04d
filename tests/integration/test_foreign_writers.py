"""Spark SQL on Lockstep's tables while transactions are open: what each side loses, and what never happens.

The SQL session knows where the table is and nothing else. `told` is what docs/operations.md asks of other
writers of insert tables; an upsert table keeps with it what they must know.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from table.errors import Refused
from table.hudi.driver.java import THROWN
from table.hudi.reader.timeline import Timeline
from table.hudi.table import HudiTable
from table.hudi.upkeep.compaction import plan
from table.port import Commit, TableSpec
from table.state import TableState
from tests.harness import await_that
from tests.integration.test_upserts import DDL, SOURCE, Upserts, record
from tests.merge_model import Change, Key, Model

pytestmark = pytest.mark.integration

TOLD = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.client.num_retries": "1000",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.metadata.index.column.stats.enable": "false",
}
HELD_S = 240.0
# Spark SQL commits every column as one that may be null. Where ours is NOT NULL, and our instant began before
# the statement's and was completed after it, Hudi 1.2 takes the next statement for a change of the schema.
INSERT: dict[str, Any] = {
    "mode": "insert",
    "ddl": DDL.replace(" NOT NULL", ""),
    "ordering_field": "",
    "bucket_count": 0,
}
KINDS: Mapping[str, dict[str, Any]] = {
    "insert, keyed": INSERT,
    "insert, keyless": {**INSERT, "key_fields": ()},
    "upsert by event time": {},
    "upsert by commit time": {"ordering_field": ""},
}
UPSERTS = [name for name in KINDS if name.startswith("upsert")]
INSERTS = [name for name in KINDS if name.startswith("insert")]


class Statement(NamedTuple):
    """`sql` names the table `{t}` and calls `held` on the key `at`; `effect` is what it does to the rows."""

    sql: str
    at: str
    effect: tuple[Change, ...]


def key(name: str) -> Key:
    return "a", name


STATEMENTS = (
    Statement(
        "update {t} set amount = 500, ts = 50 where held(id) = 'k5'",
        "k5",
        (Change(key=key("k5"), amount=500, ts=50),),
    ),
    Statement("delete from {t} where held(id) = 'k6'", "k6", (Change(key=key("k6"), tombstone=True),)),
    Statement(
        "merge into {t} t using (select held('k7') id, 'a' region, 700L amount, 70L ts, false deleted"
        " union all select 'n7', 'a', 701L, 71L, false) s on t.id = s.id and t.region = s.region"
        " when matched then update set id = s.id, amount = s.amount, ts = s.ts"
        " when not matched then insert (id, amount, ts, deleted, region)"
        " values (s.id, s.amount, s.ts, s.deleted, s.region)",
        "k7",
        (Change(key=key("k7"), amount=700, ts=70), Change(key=key("n7"), amount=701, ts=71)),
    ),
    Statement(
        "insert into {t} (id, amount, ts, deleted, region) select held('n8'), 80L, 80L, false, 'a'",
        "n8",
        (Change(key=key("n8"), amount=80, ts=80),),
    ),
)


class Foreign:
    """A SQL session of its own on the table at `path`. `held(id)`, in a statement, waits at one id."""

    def __init__(self, spark: SparkSession, path: Path, folder: Path, told: Mapping[str, str]) -> None:
        self._session = spark.newSession()
        self._session.sparkContext.pythonExec = sys.executable  # for `held`
        self._name = f"foreign_{time.time_ns()}"
        self._at, self._reached, self._go = (folder / name for name in ("at", "reached", "go"))
        for option, value in told.items():
            self._session.conf.set(option, value)
        self._session.sql(f"create table {self._name} using hudi location '{path}'")
        at, reached, go = self._at, self._reached, self._go

        def held(name: str) -> str:
            if at.exists() and at.read_text() == name:
                reached.touch()
                await_that("permission to go on", go.exists, deadline_s=HELD_S)
            return name

        self._session.udf.register("held", held)
        self._thread: threading.Thread | None = None
        self._failed: list[Exception] = []

    def run(self, sql: str) -> None:
        self._session.sql(sql.format(t=self._name))

    def begin(self, statement: Statement) -> None:
        """Run the statement until it reads the row `at`; `end` lets it go on."""
        for path in (self._reached, self._go):
            path.unlink(missing_ok=True)
        self._at.write_text(statement.at)

        def body() -> None:
            try:
                self.run(statement.sql)
            except (*THROWN, PySparkException) as error:
                self._failed.append(error)

        self._thread = threading.Thread(target=body)
        self._thread.start()
        reached = self._reached.exists
        await_that("row that is read", lambda: reached() or not self._alive(), deadline_s=HELD_S)

    def end(self) -> None:
        """Raises what the statement failed with."""
        assert self._thread is not None
        self._go.touch()
        self._thread.join(HELD_S)
        assert not self._alive(), "the statement does not end"
        self._thread = None
        self._at.unlink()
        if self._failed:
            raise self._failed.pop()

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        if self._thread is not None:
            self.end()
        self._session.sql(f"drop table {self._name}")


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., tuple[Upserts, Foreign]]]:
    """A table of a kind with twenty rows, and a foreign session on it."""
    made: list[tuple[Upserts, Foreign]] = []

    def make(kind: str, told: Mapping[str, str] | None = None, **changes: Any) -> tuple[Upserts, Foreign]:
        table = Upserts(spark, tmp_path / "t", kafka_columns=False, **{**KINDS[kind], **changes})
        table.run([record(one) for one in FIRST])
        foreign = Foreign(spark, tmp_path / "t", tmp_path, told or {})
        made.append((table, foreign))
        return made[-1]

    yield make
    for table, foreign in made:
        foreign.close()
        table.table.close()


FIRST = [Change(key=key(f"k{n}"), amount=n, ts=n) for n in range(20)]


def ours(kind: str, number: int) -> list[Change]:
    """A transaction's changes: of upserts some of the rows that the statements are about, else new ones."""
    if kind in INSERTS:
        return [Change(key=key(f"o{number}-{n}"), amount=n, ts=n) for n in range(3)]
    names = ("k4", "k5", "k6", "k7", "n7", "n8")
    return [Change(key=key(name), amount=1_000 * number, ts=60 + number) for name in names]


def model_of(kind: str, changes: list[Change]) -> Model:
    model = Model(by_event_time="event" in kind)
    for one in changes:
        model.apply(one)
    return model


BEFORE, AFTER = "before our commit", "after our commit"


def overlap(
    table: Upserts, foreign: Foreign, changes: list[Change], statement: Statement, foreign_ends: str
) -> None:
    """A transaction and a statement, neither of which begins after the other has ended."""
    records = [record(one) for one in changes]
    if foreign_ends == BEFORE:
        table.run(records, meanwhile=partial(foreign.run, statement.sql))
    else:
        foreign.begin(statement)
        table.run(records)
        foreign.end()


@pytest.mark.parametrize("kind", UPSERTS)
@pytest.mark.parametrize("foreign_ends", [BEFORE, AFTER])
def test_a_session_told_nothing_and_upserts_both_succeed_as_if_one_had_come_after_the_other(
    make: Callable[..., tuple[Upserts, Foreign]], kind: str, foreign_ends: str
) -> None:
    """Which one comes after the other is Hudi's choice where nothing but time orders two changes."""
    table, foreign = make(kind)
    model = model_of(kind, FIRST)
    for number, statement in enumerate(STATEMENTS):
        changes = ours(kind, number)
        overlap(table, foreign, changes, statement, foreign_ends)
        theirs_last, ours_last = deepcopy(model), deepcopy(model)
        for one in (*changes, *statement.effect):
            theirs_last.apply(one)
        for one in (*statement.effect, *changes):
            ours_last.apply(one)
        found = table.rows()
        assert found in (theirs_last.rows(), ours_last.rows()), statement.sql
        model = theirs_last if found == theirs_last.rows() else ours_last


def test_a_session_told_nothing_neither_carries_out_nor_trips_over_a_compaction_of_ours(
    make: Callable[..., tuple[Upserts, Foreign]],
) -> None:
    """Hudi would compact what is pending at the end of a statement, and fail where somebody does already."""
    kind = "upsert by event time"
    table, foreign = make(kind, compaction_every=1)
    model = model_of(kind, FIRST)
    session = table.service_session()
    instant, groups = plan(session, "changes")
    assert groups
    pending = table.path / ".hoodie" / "timeline" / f"{instant}.compaction.requested"
    done = None
    for statement in STATEMENTS:
        foreign.run(statement.sql)
        assert pending.exists() and not list(pending.parent.glob(f"{instant}_*"))
        done = done or session.client.compact(instant)
        for one in statement.effect:
            model.apply(one)
        assert table.rows() == model.rows(), statement.sql
    session.client.commitCompaction(instant, done, session.none())
    assert table.rows() == model.rows()


@pytest.mark.parametrize("kind", INSERTS)
@pytest.mark.parametrize("foreign_ends", [BEFORE, AFTER])
def test_statements_of_a_session_that_follows_the_rules_and_inserts_both_succeed(
    make: Callable[..., tuple[Upserts, Foreign]], kind: str, foreign_ends: str
) -> None:
    table, foreign = make(kind, TOLD)
    model = model_of(kind, FIRST)
    for number, statement in enumerate(STATEMENTS):
        changes = ours(kind, number)
        overlap(table, foreign, changes, statement, foreign_ends)
        for one in (*changes, *statement.effect):
            model.apply(one)
        assert table.rows() == model.rows(), statement.sql


def test_an_insert_that_meets_an_index_made_meanwhile_is_refused_and_succeeds_when_it_is_written_again(
    make: Callable[..., tuple[Upserts, Foreign]],
) -> None:
    """The write client that the transaction began with does not know the index."""
    kind = "insert, keyed"
    told = {name: value for name, value in TOLD.items() if "column.stats" not in name}
    table, foreign = make(kind, told)
    records = [record(one) for one in ours(kind, 1)]
    with pytest.raises(Refused, match="column_stats"):
        table.run(records, meanwhile=partial(foreign.run, STATEMENTS[0].sql))
    (left,) = table.table.unfinished()
    assert table.table.roll_back(left.instant)
    table.run(records)
    assert table.rows() == model_of(kind, [*FIRST, *STATEMENTS[0].effect, *ours(kind, 1)]).rows()


@pytest.mark.parametrize("kind", INSERTS)
def test_an_insert_that_a_session_told_nothing_rolls_back_is_refused_and_succeeds_when_it_is_written_again(
    make: Callable[..., tuple[Upserts, Foreign]], kind: str
) -> None:
    """Hudi's own default takes every open instant for one that failed."""
    table, foreign = make(kind)
    model = model_of(kind, FIRST)
    for number, statement in enumerate(STATEMENTS):
        records = [record(one) for one in ours(kind, number)]
        with pytest.raises(Refused, match="is not there"):  # its files, which were rolled back
            table.run(records, meanwhile=partial(foreign.run, statement.sql))
        table.run(records)
        for one in (*statement.effect, *ours(kind, number)):
            model.apply(one)
        assert table.rows() == model.rows(), statement.sql
    assert table.table.sweep(grace_ms=0).removed == 0


def test_an_insert_that_begins_and_ends_within_a_statement_of_a_session_told_nothing_stays(
    make: Callable[..., tuple[Upserts, Foreign]],
) -> None:
    """Only with a key: without one the held statement keeps all of the one Spark that both have here."""
    kind = "insert, keyed"
    table, foreign = make(kind)
    model = model_of(kind, FIRST)
    for number, statement in enumerate(STATEMENTS):
        overlap(table, foreign, ours(kind, number), statement, AFTER)
        for one in (*statement.effect, *ours(kind, number)):
            model.apply(one)
        assert table.rows() == model.rows(), statement.sql


# --- offsets ------------------------------------------------------------------------------------------

ARCHIVE = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.commits.archival.batch": "1",
    "hoodie.metadata.compact.max.delta.commits": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def found_by_fresh_readers(spark: SparkSession, table: Upserts, spec: TableSpec) -> list[TableState | None]:
    fresh = HudiTable(spark, spec, "changes")
    fresh.open()
    found = [fresh.newest(), Timeline(table.path).newest("changes")]
    fresh.close()
    return found


def is_active(table: Upserts, instant: str) -> bool:
    return any(table.path.glob(f".hoodie/timeline/{instant}_*"))


@pytest.mark.parametrize("kind", [*UPSERTS, *INSERTS])
def test_our_offsets_are_found_behind_many_foreign_commits_and_in_the_archive_that_those_made(
    spark: SparkSession, make: Callable[..., tuple[Upserts, Foreign]], kind: str
) -> None:
    table, foreign = make(kind, {**TOLD, **ARCHIVE} if kind in INSERTS else ARCHIVE)
    instant = table.run([record(one) for one in ours(kind, 1)])
    state = table.table.newest()
    end = len(FIRST) + len(ours(kind, 1))
    assert state is not None and (state.instant, dict(state.offsets)) == (instant, {SOURCE: end})
    model = model_of(kind, [*FIRST, *ours(kind, 1)])
    for number in range(12):
        foreign.run(f"update {{t}} set amount = {number}, ts = {100 + number} where id = 'k9'")
        if kind in UPSERTS and number % 3 == 2:
            foreign.run(f"call run_compaction(op => 'scheduleandexecute', path => '{table.path}')")
        model.apply(Change(key=key("k9"), amount=number, ts=100 + number))
        if not is_active(table, instant):
            break
        assert found_by_fresh_readers(spark, table, table.spec) == [state, state], number
    assert not is_active(table, instant), "the instant is not archived yet"
    assert found_by_fresh_readers(spark, table, table.spec) == [state, state]
    assert table.table.newest() == state
    changes = [Change(key=key("o"), amount=1, ts=1)]
    table.run([record(one) for one in changes])
    model.apply(changes[0])
    assert table.rows() == model.rows()
    assert Timeline(table.path).newest("changes").offsets == {SOURCE: end + 1}  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [*UPSERTS, *INSERTS])
def test_our_offsets_are_found_in_the_archive_that_another_pipeline_of_ours_made(
    spark: SparkSession, make: Callable[..., tuple[Upserts, Foreign]], kind: str
) -> None:
    table, foreign = make(kind, TOLD if kind in INSERTS else {})
    instant = table.run([record(one) for one in ours(kind, 1)])
    state = table.table.newest()
    if kind in UPSERTS:  # Hudi archives no commit of such a table before a compaction has followed it
        options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
        foreign.run(f"call run_compaction(op => 'scheduleandexecute', path => '{table.path}', {options})")
    archive = {name: value for name, value in ARCHIVE.items() if ".compact.inline." not in name}
    archiving = {"cleaning": "inline", "cleaning_every": 1}
    other = HudiTable(spark, replace(table.spec, properties=archive, **archiving), "other", services=True)
    other.open()
    other.tend()
    for number in range(12):
        opened = other.begin(run="run", transaction=f"other-{number}")
        newest = other.newest()
        before = dict(newest.offsets) if newest is not None else {}
        empty = TableState(
            pipeline="other",
            run="run",
            epoch=1,
            transaction=f"other-{number}",
            offsets={SOURCE: 0},
            ranges=(),
        )
        other.commit(Commit(instant=opened, expected=before, state=empty, files=()), fence=lambda _newest: "")
        other.sweep(grace_ms=0)
        other.tend()
        if not is_active(table, instant):
            break
    other.close()
    assert not is_active(table, instant), "the instant is not archived yet"
    assert found_by_fresh_readers(spark, table, table.spec) == [state, state]
    assert table.table.newest() == state
