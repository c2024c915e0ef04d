"""A sweep that storage refuses a folder to, for a moment or for good."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession

from tests.conformance.table_kind import Driver, Site

pytestmark = pytest.mark.integration

NOBODY = 65_534
QUICK_ARCHIVE = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
}


@contextmanager
def as_nobody() -> Iterator[None]:
    """This process may do what files say that others may; the JVM, which is another process, is as before."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[tuple[Driver, Path]]:
    """In a folder that others may enter, as pytest's own are not."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="lockstep-denied-")))
        folder.chmod(0o755)
        path = folder / "table"
        site = Site(
            kind_name="hudi", path=f"file://{path}", spark=spark, opened=opened, properties=QUICK_ARCHIVE
        )
        driver = site.driver()
        driver.genesis()
        driver.run("t1", 4)
        yield driver, path


def orphans(driver: Driver) -> list[str]:
    """A worker that was paused closes its files after its instant was rolled back."""
    instant = driver.begin("late")
    files = driver.write(instant, 4, first=100)
    contents = {file.path: (Path(driver.site.reader().place) / file.path).read_bytes() for file in files}
    assert driver.table.roll_back(instant)
    for path, content in contents.items():
        (Path(driver.site.reader().place) / path).write_bytes(content)
    return list(contents)


def test_an_orphan_in_a_folder_that_could_not_be_read_once_is_removed_by_the_next_sweep(
    driver: tuple[Driver, Path], spark: SparkSession
) -> None:
    one, path = driver
    late = orphans(one)
    (path / "a").chmod(0o700)
    (path / "b").chmod(0o700)
    with as_nobody():
        assert one.table.sweep(grace_ms=0).removed == 0
    (path / "a").chmod(0o755)
    (path / "b").chmod(0o755)
    for number in range(2, 7):  # the orphan's instant leaves the active timeline
        one.run(f"t{number}", 2, first=10 * number)
    one.table.sweep(grace_ms=0)
    left = [name for name in late if (path / name).exists()]
    rows = spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(f"file://{path}").count()
    assert (left, rows) == ([], 4 + 10)


def test_an_orphan_that_may_not_be_removed_keeps_no_other_from_being_removed_and_is_named(
    driver: tuple[Driver, Path],
) -> None:
    one, path = driver
    late = orphans(one)
    assert len(late) == 2
    (path / "b").chmod(0o777)
    with as_nobody():
        removed = one.table.sweep(grace_ms=0).removed  # not an OSError, which the supervisor does not expect
    assert removed == 1
