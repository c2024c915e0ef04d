"""Tables whose archived timeline is lost: a copy without it, a lifecycle rule, a restore of an older one.

Readers see every row, since the active timeline does not name old files. So must a sweep, and a pipeline
whose commits are lost must not start again by itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lockstep.errors import EXIT_HALTED, EXIT_USAGE, EXIT_WELL
from tests.conformance.table_kind import Driver, Site
from tests.data_files import data_files
from tests.harness import Pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

QUICK_ARCHIVE = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.commits.archival.batch": "1",
    "hoodie.metadata.compact.max.delta.commits": "1",
}
METADATA = {"with a metadata table": "true", "without": "false"}
HISTORY = Path(".hoodie", "timeline", "history")


def lose_folder(history: Path, _older: Path) -> None:
    shutil.rmtree(history)


def empty_folder(history: Path, _older: Path) -> None:
    shutil.rmtree(history)
    history.mkdir()


def restore_older(history: Path, older: Path) -> None:
    shutil.rmtree(history)
    shutil.copytree(older, history)


def lose_manifests(history: Path, _older: Path) -> None:
    (history / "_version_").unlink()
    for manifest in history.glob("manifest_*"):
        manifest.unlink()


LOSSES = (lose_folder, empty_folder, restore_older, lose_manifests)


@pytest.fixture(params=METADATA.values(), ids=METADATA)
def site(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as opened:
        properties = {**QUICK_ARCHIVE, "hoodie.metadata.enable": request.param}
        yield Site(
            kind_name="hudi",
            path=f"file://{tmp_path / 'table'}",
            spark=spark,
            opened=opened,
            properties=properties,
        )


def run_twelve(driver: Driver, older: Path) -> Path:
    """Commit twelve times; return the table's folder, whose archive was copied to `older` half way."""
    driver.genesis()
    table = Path(driver.site.reader().place)
    for number in range(12):
        driver.run(f"t{number}", 2, first=2 * number)
        driver.table.sweep(grace_ms=0)
        if number == 7:
            assert any((table / HISTORY).glob("*.parquet")), "nothing was archived yet"
            shutil.copytree(table / HISTORY, older)
    return table


@pytest.mark.parametrize("lose", LOSSES)
def test_a_sweep_keeps_committed_files_whose_archived_commits_are_lost(
    site: Site, tmp_path: Path, lose: Callable[[Path, Path], None]
) -> None:
    table = run_twelve(site.driver(), tmp_path / "older")
    files, rows = data_files(table), site.in_table()
    whole = tmp_path / "whole"
    shutil.copytree(table / HISTORY, whole)
    lose(table / HISTORY, tmp_path / "older")
    driver = site.driver()
    instant = driver.begin("late")
    late = driver.write(instant, 2, first=100)
    contents = {table / file.path: (table / file.path).read_bytes() for file in late}
    assert driver.table.roll_back(instant)
    for path, content in contents.items():
        path.write_bytes(content)
    report = driver.table.sweep(grace_ms=0)
    assert report.removed == len(late), "what a rollback proves is removed as before"
    assert data_files(table) == files and site.in_table() == rows
    assert report.unknown and "A part of the timeline may be missing" in report.alarm
    shutil.copytree(whole, table / HISTORY, dirs_exist_ok=True)
    report = driver.table.sweep(grace_ms=0)
    assert (report.removed, report.alarm) == (0, ""), "the archive is back"


@pytest.mark.parametrize("lose", LOSSES)
def test_a_pipeline_whose_commits_the_archive_has_lost_is_told_from_a_new_one(
    site: Site, tmp_path: Path, lose: Callable[[Path, Path], None]
) -> None:
    first = site.driver("first")
    first.genesis()
    first.run("t", 2)
    other = site.driver("other")
    assert other.table.lost_commits(other.table.newest()) == "", "a new one in a table that is whole"
    table = run_twelve(other, tmp_path / "older")
    again = site.driver("first")
    newest = again.table.newest()
    assert newest is not None and newest.transaction == "t"
    assert again.table.lost_commits(newest) == "", "its newest commit is archived, and nothing is lost"
    lose(table / HISTORY, tmp_path / "older")
    again = site.driver("first")
    newest = again.table.newest()
    assert (newest is None) == (lose is not restore_older)
    assert "instants that the timeline does not know" in again.table.lost_commits(newest)


def test_without_its_version_file_the_archive_is_read_as_hudi_reads_it(site: Site, tmp_path: Path) -> None:
    first = site.driver("first")
    first.genesis()
    first.run("t", 2)
    table = run_twelve(site.driver("other"), tmp_path / "older")
    (table / HISTORY / "_version_").unlink()
    newest = site.driver("first").table.newest()
    assert newest is not None and newest.transaction == "t"
    assert site.reader().newest("first") == newest


def test_a_pipeline_that_has_committed_before_starts_again_only_on_purpose(pipeline: Pipeline) -> None:
    pipeline.produce(400)
    pipeline.run_to_end()
    pipeline.assert_exact(400)
    shutil.rmtree(pipeline.table)
    for _ in range(2):
        run = pipeline.start("--until", "latest")
        assert run.wait(300) == EXIT_HALTED, run.text()
        assert f"has no commit of pipeline {pipeline.id}, which has committed before" in run.text()
        assert f"consumer group {pipeline.id} has committed offsets" in run.text()
        assert "Traceback" not in run.text()
    one = f"{pipeline.topic}:0=earliest"
    few = pipeline.command("offsets", "--set", one, "--execute", "--reason", "a new table")
    assert few.returncode == EXIT_USAGE and "set all source partitions" in few.stderr
    dry = pipeline.command("offsets", "--set", f"{pipeline.topic}:*=earliest", "--output", "json")
    assert dry.returncode == EXIT_WELL, dry.stderr
    assert {one["after"] for one in json.loads(dry.stdout)["changes"]} == {0}
    pipeline.change_offsets("--set", f"{pipeline.topic}:*=earliest", reason="a new table")
    pipeline.run_to_end()
    pipeline.assert_exact(400)
