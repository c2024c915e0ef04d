"""Tables whose path is odd, and lock folders that are: written, committed, locked and read by all alike."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.table_kind import Site

pytestmark = pytest.mark.integration

PLAIN = {"hoodie.metadata.enable": "false"}
ODD = ["a b%20c%d", "täble-日本#?", "[a]{b,c}+=&;:~'..d"]
LOCKS = [
    "file:{t}//lo cks#/",
    "file://localhost{t}/locks",
    "file://{t}/lo%20cks",
    "{t}/link/locks",
]


@pytest.mark.parametrize("name", ODD)
def test_a_table_at_an_odd_path_is_the_same_to_all_who_read_it(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name / "table"
    with ExitStack() as opened:
        site = Site(kind_name="hudi", path=f"file://{path}", spark=spark, opened=opened, properties=PLAIN)
        driver = site.driver()
        driver.genesis()
        driver.run("t1", 4)
        driver.run("t2", 4, first=4)
        assert len(site.in_table()) == 8
        assert [one.name for one in tmp_path.iterdir()] == [name]
        assert spark.read.format("hudi").load(f"file://{path}").count() == 8


@pytest.mark.parametrize("spelled", LOCKS)
def test_a_lock_folder_is_the_same_to_us_and_to_hudi(
    spark: SparkSession, tmp_path: Path, spelled: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    folder = spelled.format(t=tmp_path)
    properties = {**PLAIN, "hoodie.write.lock.filesystem.path": folder}
    with ExitStack() as opened:
        site = Site(
            kind_name="hudi",
            path=f"file://{tmp_path / 'table'}",
            spark=spark,
            opened=opened,
            properties=properties,
        )
        driver = site.driver()
        driver.genesis()
        session = driver.table._session
        with session.locked():
            found = [str(one) for one in tmp_path.rglob("lock")]
            assert found == [os.path.realpath(session.lock.holder.lock)]
