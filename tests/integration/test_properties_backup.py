"""A table whose hoodie.properties somebody was killed while rewriting: Hudi's own readers go on from the backup."""

from __future__ import annotations

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
        meta = path / ".hoodie"
        before = (meta / "hoodie.properties").read_text()
        (meta / "hoodie.properties").rename(meta / "hoodie.properties.backup")
        if runs:
            assert spark.read.format("hudi").load(f"file://{path}").count() == 4 * runs
            (meta / "hoodie.properties").unlink(missing_ok=True) if (meta / "hoodie.properties.backup").exists() else None
        assert site.reader().newest("events") is not None  # lockstep status, offsets, verify
        print("MISSING NOW", not (meta / "hoodie.properties").exists(), sorted(p.name for p in meta.iterdir()))
        again = site.driver()
        print("LAYOUT created:", again.layout.created, sorted(p.name for p in meta.iterdir()))
        print(set(before.splitlines()) ^ set((meta / "hoodie.properties").read_text().splitlines()))
        again.run("later", 4, first=100)
        assert not again.layout.created
        assert len(site.in_table()) == 4 * runs + 4
        assert again.table.newest().offsets[SOURCE] == 4 * runs + 4
