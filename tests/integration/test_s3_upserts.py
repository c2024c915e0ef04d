"""Upserts and a compaction of a table in S3: real Spark, real Hudi, a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from control_topic.messages import DataFile
from lockstep.stores.local import S3Server
from table.errors import Refused
from table.hudi.layout import META_FOLDER
from table.hudi.table import HudiTable
from table.hudi.upkeep import plans
from table.hudi.upkeep.compaction import ACTION, plan, tidy
from table.port import TableSpec
from tests.harness import await_that
from tests.integration.test_s3_table import Place
from tests.integration.test_upserts import DDL, MEMORY_BYTES, Record, Upserts, history, record
from tests.merge_model import Model
from tests.s3_proxy import S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

TRANSACTIONS = 4


class S3Upserts(Upserts):
    """Its workers' files are made in a folder, and put where they belong: what writers do, others test."""

    def __init__(self, spark: SparkSession, place: Place, folder: Path, *, services: bool = True) -> None:
        self._place, self._folder = place, folder
        self.spark, self.path, self.record = spark, place.path, None  # type: ignore[assignment]
        self.spec = TableSpec(
            path=place.path,
            name="changes",
            mode="upsert",
            ddl=DDL,
            key_fields=("id",),
            partition_fields=("region",),
            ordering_field="ts",
            bucket_count=2,
            compaction="async",
            compaction_every=2,
            storage=place.settings,
        )
        self.table = HudiTable(spark, self.spec, "changes", services=services)
        self.layout = self.table.open()
        self._transactions = 0
        self.memory_bytes = MEMORY_BYTES

    def write(self, instant: str, *workers: Sequence[Record]) -> list[DataFile]:
        (self._folder / META_FOLDER).mkdir(exist_ok=True)  # else it is no table to its writers
        there, self.layout = self.layout, replace(self.layout, path=str(self._folder))
        try:
            files = super().write(instant, *workers)
        finally:
            self.layout = there
        for path in sorted(self._folder.rglob("*")):
            if path.is_file():
                self._place.direct.put(path.relative_to(self._folder).as_posix(), path.read_bytes())
                path.unlink()
        return files


@pytest.fixture
def opened(s3: S3Server, spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[bool], S3Upserts]]:
    """Drivers of one table; told whether they look after it."""
    with S3Proxy(s3.port) as proxy, ExitStack() as closing:
        place = Place(s3, proxy)

        def make(services: bool) -> S3Upserts:
            made = S3Upserts(spark, place, tmp_path, services=services)
            closing.callback(made.table.close)
            return made

        yield make


def test_a_compaction_whose_taking_away_began_first_is_not_completed(
    opened: Callable[[bool], S3Upserts],
) -> None:
    """The driver has passed every look, and stood still; its lock is another's by now."""
    table, successor = opened(False), opened(False)
    for number in range(2):
        table.run([record(one) for one in history(number, length=10, tombstones=False, late=False)])
    before = table.rows()
    session = table.service_session()
    instant, groups = plan(session, "changes")
    assert groups
    plans.begin(session, ACTION, instant)
    done = session.client.compact(instant)
    done.getWriteStatuses().count()
    successor.table._fence.roll_back(instant, noting=False)
    refused = pytest.raises(Refused, match="its rollback was there first")
    with refused, plans.completing(session, ACTION, instant):
        session.client.commitCompaction(instant, done, session.none())
    assert tidy(successor.service_session(), "changes").taken == [instant]
    assert table.rows() == before


def test_upserts_in_s3_are_merged_and_compacted_beside_the_transactions(
    opened: Callable[[bool], S3Upserts],
) -> None:
    table, model = opened(True), Model(by_event_time=True)
    for number in range(TRANSACTIONS):
        changes = history(number, length=40, tombstones=True, late=False)
        table.run([record(one) for one in changes[:20]], [record(one) for one in changes[20:]])
        for one in changes:
            model.apply(one)
    await_that("compaction", lambda: table.table.services()[0].done > 0, deadline_s=180)
    assert table.rows() == model.rows()
