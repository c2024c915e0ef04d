"""When a clustering is due, and for how long it rests. What it does: tests/integration/test_services.py."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from control_topic.messages import DataFile
from table.hudi.upkeep.clustering import Clustering
from table.port import INSERT, TableSpec

NOTHING: Mapping[str, str] = {}


def clustering(share: float = 0.25, properties: Mapping[str, str] = NOTHING) -> Clustering:
    spec = TableSpec(
        path="/nowhere",
        name="t",
        mode=INSERT,
        ddl="a INT",
        clustering_files=3,
        clustering_share=share,
        properties=properties,
    )
    return Clustering(spec, "p")


def files(partition: str, count: int) -> list[DataFile]:
    return [
        DataFile(path=f"{n}", body=f"{partition}-{n}", table_partition=partition, rows=1, size_bytes=1)
        for n in range(count)
    ]


def test_it_is_due_by_the_files_of_commits_and_by_their_age() -> None:
    work = clustering()
    work.committed(files("a", 2), 10)
    assert work.due_in_s(10) is None
    work.committed([*files("b", 1), *files("a", 3)], 20)
    assert work.due_in_s(20) == 0


@pytest.mark.parametrize(("share", "rest_s"), [(1, 0), (0.5, 8), (0.25, 24), (0.01, 792)])
def test_it_rests_until_its_work_was_its_share_of_the_time(share: float, rest_s: float) -> None:
    assert clustering(share).rest_s(8) == pytest.approx(rest_s)


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.clustering.plan.strategy.partition.regex.pattern",
        "hoodie.clustering.plan.strategy.class",
        "hoodie.clustering.plan.partition.filter.mode",
        "hoodie.clustering.plan.strategy.daybased.lookback.partitions",
    ],
)
def test_where_the_configuration_says_which_table_partitions_it_is_due_by_commits_alone(name: str) -> None:
    work = clustering(properties={name: "x"})
    work.committed(files("a", 100), 0)
    assert work.due_in_s(1e9) is None


def test_a_table_partition_that_hudi_cannot_be_told_is_left_to_the_clustering_of_the_whole() -> None:
    """Hudi is given them in one text, with commas between."""
    work = clustering()
    work.committed(files("a,b", 100), 0)
    assert work.due_in_s(1e9) is None
