"""Upserts and a compaction of a table in S3: real Spark, real Hudi, a real server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from control_topic.messages import DataFile
from lockstep.stores.local import S3Server
from table.hudi.layout import META_FOLDER
from table.hudi.table import HudiTable
from table.port import TableSpec
from tests.harness import await_that
from tests.integration.test_s3_table import Place
from tests.integration.test_upserts import DDL, Record, Upserts, history, record
from tests.merge_model import Model
from tests.s3_proxy import S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

TRANSACTIONS = 4


class S3Upserts(Upserts):
    """Its workers' files are made in a folder, and put where they belong: what writers do, others test."""

    def __init__(self, spark: SparkSession, place: Place, folder: Path) -> None:
        self._place, self._folder = place, folder
        self.spark, self.path = spark, place.path  # type: ignore[assignment]
        self.spec = TableSpec(
            path=place.path,
            name="changes",
            mode="upsert",
            ddl=DDL,
            key_fields=("id",),
            partition_field="region",
            ordering_field="ts",
            bucket_count=2,
            compaction="async",
            compaction_every=2,
            storage=place.settings,
        )
        self.table = HudiTable(spark, self.spec, "changes", services=True)
        self.layout = self.table.open()
        self._transactions = 0

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
def table(s3: S3Server, spark: SparkSession, tmp_path: Path) -> Iterator[S3Upserts]:
    with S3Proxy(s3.port) as proxy, ExitStack() as closing:
        made = S3Upserts(spark, Place(s3, proxy), tmp_path)
        closing.callback(made.table.close)
        yield made


def test_upserts_in_s3_are_merged_and_compacted_beside_the_transactions(table: S3Upserts) -> None:
    model = Model(by_event_time=True)
    for number in range(TRANSACTIONS):
        changes = history(number, length=40, tombstones=True, late=False)
        table.run([record(one) for one in changes[:20]], [record(one) for one in changes[20:]])
        for one in changes:
            model.apply(one)
    await_that("compaction", lambda: table.table.services()[0].done > 0, deadline_s=180)
    assert table.rows() == model.rows()
