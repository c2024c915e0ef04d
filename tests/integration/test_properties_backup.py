"""A table whose hoodie.properties somebody was killed while writing: anew, where Hudi takes its backup,
and for the first time, where an operator is told what to do.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from table.errors import Refused, Unavailable
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


def test_a_table_whose_maker_was_killed_over_its_properties_says_what_to_do_and_that_helps(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    written = path / ".hoodie" / "hoodie.properties"
    with ExitStack() as opened:
        site = Site(kind_name="hudi", path=f"file://{path}", spark=spark, opened=opened)
        site.driver().table.close()
        whole = written.read_bytes()
        for half in (whole[: whole.index(b"hoodie.table.checksum")], b""):
            written.write_bytes(half)
            with pytest.raises(Unavailable, match="somebody may be making the table just now"):
                site.driver()
            os.utime(written, (0, 0))
            with pytest.raises(Refused, match=r"Nothing was ever committed to it: remove .*\.hoodie, and"):
                site.driver()
        with pytest.raises(Unavailable, match="is empty, as whoever made the table"):
            site.reader().newest("events")
        shutil.rmtree(path / ".hoodie")
        again = site.driver()
        again.genesis()
        again.run("t1", 4)
        again.table.close()
        assert len(site.in_table()) == 4
        written.write_bytes(b"")
        os.utime(written, (0, 0))
        with pytest.raises(Refused, match="the table has commits: put it back from a copy"):
            site.driver()
