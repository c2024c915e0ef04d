"""The bench reads rivals' tables: Iceberg's metadata files, and rows of a Hudi table by their instants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from bench.figures import Commit
from bench.freshness import ages_ms
from bench.rivals.iceberg_metadata import commits, is_partitioned, newest_metadata, snapshots
from bench.rivals.maven_jars import CONNECT, PINNED, SINK, pom
from lockstep.errors import Failed


def _metadata(*totals: int, fields: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "format-version": 2,
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [{"name": name} for name in fields]}],
        "snapshots": [
            {"snapshot-id": n, "timestamp-ms": 1_000 * n, "summary": {"total-records": str(total)}}
            for n, total in enumerate(totals, 1)
        ],
    }


def _keep(table: Path, version: int, metadata: Any) -> None:
    folder = table / "metadata"
    folder.mkdir(exist_ok=True)
    (folder / f"v{version}.metadata.json").write_text(json.dumps(metadata))


def test_the_highest_version_is_the_table(tmp_path: Path) -> None:
    assert newest_metadata(tmp_path) is None
    for version in (2, 10, 9):
        _keep(tmp_path, version, _metadata(*range(version)))
    (tmp_path / "metadata" / "5e0c.metadata.json").write_text("{}")  # being written, not yet the table's
    (tmp_path / "metadata" / "version-hint.text").write_text("9")
    found = newest_metadata(tmp_path)
    assert found is not None
    assert len(snapshots(found)) == 10


def test_snapshots_that_brought_nothing_are_no_commits() -> None:
    assert commits(_metadata(100, 100, 250)) == [Commit(at_ms=1_000, rows=100), Commit(at_ms=3_000, rows=150)]
    assert commits(_metadata()) == []


def test_a_snapshot_without_a_summary_is_empty() -> None:
    assert commits({"snapshots": [{"timestamp-ms": 5}]}) == []


def test_a_table_is_partitioned_where_its_current_spec_has_a_field() -> None:
    assert is_partitioned(_metadata(fields=("day",)))
    assert not is_partitioned(_metadata())


def test_damaged_metadata_is_named(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{")
    with pytest.raises(Failed, match=r"v1\.metadata\.json"):
        newest_metadata(tmp_path)


def test_a_records_age_is_its_instants_completion_less_its_own_time() -> None:
    produced = np.array([100, 150, 900], dtype=np.int64)
    requested = np.array(["a", "b", "a"])
    assert ages_ms(produced, requested, {"a": 1_000, "b": 2_000}).tolist() == [900, 1_850, 100]


def test_rows_of_an_instant_that_is_not_complete_are_refused() -> None:
    with pytest.raises(Failed, match="instant b"):
        ages_ms(np.array([1], dtype=np.int64), np.array(["b"]), {"a": 1})


@pytest.mark.parametrize("artifacts", [SINK, CONNECT])
def test_the_project_for_maven_names_every_artifact(artifacts: Any) -> None:
    spaces = {"m": "http://maven.apache.org/POM/4.0.0"}
    project = ElementTree.fromstring(pom(artifacts, PINNED))
    direct = [one.text for one in project.findall("m:dependencies/m:dependency/m:artifactId", spaces)]
    assert direct == [name for _, name, _ in artifacts]
