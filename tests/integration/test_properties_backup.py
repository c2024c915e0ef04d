"""A table whose hoodie.properties somebody was killed while writing anew: Hudi goes on from its backup."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.table_kind import SOURCE, Site

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("runs", [0, 1])
def test_a_table_whose_properties_are_only_in_hudis_backup_is_gone_on_with(
    spark: SparkSession, tmp_path: Path, runs: int
) -> None:
    path = tmp_path / "table"
    with ExitStack() as opened:
        site = Site(kind_name="hudi", path=f"file://{path}", spark=spark, opened=opened)
        driver = site.driver()
        driver.genesis()
        for number in range(runs):
            driver.run(f"t{number}", 4, first=4 * number)
        driver.table.close()
        backup = path / ".hoodie" / "hoodie.properties.backup"
        (path / ".hoodie" / "hoodie.properties").rename(backup)
        os.utime(backup, (0, 0))
        if runs:
            assert spark.read.format("hudi").load(f"file://{path}").count() == 4 * runs
        assert site.reader().newest("events") is not None  # what status, offsets and verify look at
        again = site.driver()
        assert not again.layout.created
        again.run("later", 4, first=100)
        assert len(site.in_table()) == 4 * runs + 4
        assert again.table.newest().offsets[SOURCE] == 4 * runs + 4
