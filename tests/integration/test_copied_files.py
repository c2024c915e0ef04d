"""Small files that are put together by copying their row groups: what readers and other writers meet then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from table.hudi.upkeep import clustering
from table.hudi.upkeep.clustering import Clustering
from table.hudi.upkeep.due import Done
from tests.data_files import data_files
from tests.integration.test_foreign_writers import INSERT, TOLD, Foreign
from tests.integration.test_hudi_table import PLAIN
from tests.integration.test_upserts import Upserts, record
from tests.merge_model import Change

pytestmark = pytest.mark.integration

BLOOM = "org.apache.hudi.bloomfilter"


@pytest.fixture
def make(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Upserts]]:
    """Tables whose files are copied, however small."""
    monkeypatch.setattr(clustering, "COPIED_FROM_BYTES", 0)
    made: list[Upserts] = []

    def make(**changes: Any) -> Upserts:
        made.append(Upserts(spark, tmp_path / "t", **{**INSERT, "properties": PLAIN, **changes}))
        return made[-1]

    yield make
    for one in made:
        one.table.close()


class Copying:
    """A run's clustering."""

    def __init__(self, table: Upserts) -> None:
        self.work = Clustering(table.spec, "changes")
        self.session = self.work.open(table.table._session_beside)
        self.work.tidy(self.session)
        self.now_s = time.monotonic() + 1_000

    def is_due(self) -> bool:
        return self.work.due_in_s(self.now_s) == 0

    def run(self) -> Done | None:
        return self.work.run_early(self.session, lambda _doing: None, self.now_s)


def content(table: Upserts) -> list[str]:
    """All rows as Spark reads them, but for the names of their files."""
    table.spark.catalog.clearCache()
    read = table.spark.read.format("hudi").load(str(table.path))
    return sorted(map(repr, read.drop("_hoodie_file_name").collect()))


def made_files(table: Upserts, done: Done) -> list[Path]:
    return data_files(table.path, f"*_{done.instant}.parquet")


def test_what_is_rewritten_has_a_bloom_filter_that_is_as_large_as_its_keys_are_many(
    make: Callable[..., Upserts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reader reads the footer: 431 kB of it by Hudi's own settings, beside a few rows."""
    monkeypatch.setattr(clustering, "COPIED_FROM_BYTES", 1 << 40)
    table = make()
    for begin in range(0, 3_000, 1_000):
        table.run([record(Change(key=("a", f"k{n}"), amount=n, ts=n)) for n in range(begin, begin + 1_000)])
    copying = Copying(table)
    done = copying.run()
    assert done is not None
    (footer,) = (pq.read_metadata(path) for path in made_files(table, done))
    filter_bytes = len(footer.metadata[BLOOM.encode()])
    assert footer.num_rows == 3_000 and 3_000 * 6 < filter_bytes < 3_000 * 12, filter_bytes


def test_what_a_foreign_writer_has_rewritten_is_not_copied_with_the_files_beside_it(
    make: Callable[..., Upserts], tmp_path: Path
) -> None:
    """Its file has a bloom filter of its own keys: that of a copy would lack those of all others."""
    table = make()
    for begin in (0, 10, 20):
        table.run([record(Change(key=("a", f"k{n}"), amount=n, ts=n)) for n in range(begin, begin + 10)])
    copying = Copying(table)
    foreign = Foreign(table.spark, tmp_path / "t", tmp_path, TOLD)
    try:
        foreign.run("update {t} set ts = 77 where id = 'k3'")
    finally:
        foreign.close()
    before = content(table)
    assert copying.is_due() and copying.run() is None
    assert not list(table.path.glob(".hoodie/timeline/*.clustering.requested"))
    assert copying.is_due()
    done = copying.run()
    assert done is not None and not copying.is_due()
    assert content(table) == before
    filters = [pq.read_metadata(path).metadata[BLOOM.encode()] for path in made_files(table, done)]
    made = table.spark._jvm.org.apache.hudi.common.bloom.BloomFilterFactory  # type: ignore[union-attr]
    (whole,) = (made.fromString(one.decode(), "DYNAMIC_V0") for one in filters)
    assert all(whole.mightContain(f"k{n}") for n in range(30)) and not whole.mightContain("of nobody")
