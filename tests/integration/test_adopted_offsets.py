"""The offsets at which another sink would go on: each has a rule for which of several places counts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from lockstep.errors import EXIT_WELL
from tests.adopting import adopt, after, commit_offsets, connector
from tests.harness import Pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

APACHE = "org.apache.iceberg.connect.IcebergSinkConnector"
TABULAR = "io.tabular.iceberg.connect.IcebergSinkConnector"
HDFS_2, HDFS_3 = (
    "io.confluent.connect.hdfs.HdfsSinkConnector",
    "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
)


@pytest.mark.parametrize(
    ("kind", "groups", "config", "expected", "said_by", "note"),
    [
        (
            TABULAR,
            {"cg-control-NAME": {0: 80, 1: 60}, "connect-NAME": {0: 50, 1: 60}},
            {},
            {0: 80, 1: 60},
            "consumer group cg-control-NAME",
            "0: 80 by cg-control-NAME, 50 by consumer group connect-NAME",
        ),
        (
            TABULAR,
            {"cg-control-NAME": {0: 80, 1: 60}},
            {},
            {0: 80, 1: 60},
            "consumer group cg-control-NAME",
            "",
        ),
        (
            TABULAR,
            {"own-NAME": {0: 80}, "cg-control-NAME": {0: 7, 1: 7}, "connect-NAME": {1: 60}},
            {"iceberg.control.group-id": "own-NAME"},
            {0: 80, 1: 60},
            "consumer group own-NAME, and consumer group connect-NAME where that has none",
            "",
        ),
        (TABULAR, {"connect-NAME": {0: 50}}, {}, {0: 50, 1: 0}, "consumer group connect-NAME", ""),
        (
            APACHE,
            {"cg-control-NAME": {0: 80, 1: 60}, "connect-NAME": {0: 50, 1: 60}},
            {},
            {0: 50, 1: 60},
            "consumer group connect-NAME",
            "",
        ),
    ],
    ids=["control first", "control alone", "its own group", "control group is new", "Apache's"],
)
def test_icebergs_sink_goes_on_at_the_group_that_its_version_starts_from(
    pipeline: Pipeline,
    kind: str,
    groups: Mapping[str, Mapping[int, int]],
    config: Mapping[str, str],
    expected: Mapping[int, int],
    said_by: str,
    note: str,
) -> None:
    pipeline.produce(400)
    name = f"x-{pipeline.topic}"
    for group, offsets in groups.items():
        commit_offsets(pipeline, group.replace("NAME", name), offsets)
    given = {key: value.replace("NAME", name) for key, value in config.items()}
    source = connector(pipeline, {"connector.class": kind, "iceberg.tables": "lake.events", **given})
    code, told, error = adopt(pipeline, source)
    assert code == EXIT_WELL and after(told) == {2: 0, 3: 0, **expected}, error
    assert told["said_by"] == said_by.replace("NAME", name)
    differing = [one for one in told["notes"] if "Two sources differ" in one]
    assert [note.replace("NAME", name) in one for one in differing] == [True] * bool(note), told["notes"]


FILES = ("0+0000000000+0000000099.avro", "0+0000000100+0000000199.avro", "1+0000000000+0000000009.avro")


@pytest.mark.parametrize(
    ("files", "folder", "expected"),
    [
        (FILES, "topics", {0: 200, 1: 10, 2: 250, 3: 0}),
        ((), "topics", {0: 205, 1: 12, 2: 250, 3: 0}),
        (FILES, "landing/${topic}", {0: 200, 1: 10, 2: 250, 3: 0}),
        ((*FILES, "1+0000000010+0000000030.parquet"), "topics", {0: 200, 1: 10, 2: 250, 3: 0}),
    ],
    ids=["moved away", "none is left", "folder of the topic", "an empty Parquet file"],
)
@pytest.mark.parametrize("kind", [HDFS_2, HDFS_3], ids=["hdfs", "hdfs3"])
def test_a_source_partition_whose_files_are_gone_goes_on_at_its_groups_offset(
    pipeline: Pipeline, kind: str, files: tuple[str, ...], folder: str, expected: Mapping[int, int]
) -> None:
    """Source partition 2: all its files were moved away, such as by Hive's LOAD DATA. 3 never had one."""
    pipeline.produce(1_200)
    root = pipeline.folder / "theirs" / folder.replace("${topic}", pipeline.topic) / pipeline.topic
    root.mkdir(parents=True)
    for name in files:
        below = root / f"partition={name[0]}"
        below.mkdir(exist_ok=True)
        (below / f"{pipeline.topic}+{name}").write_bytes(b"")
    commit_offsets(pipeline, f"connect-x-{pipeline.topic}", {0: 205, 1: 12, 2: 250})
    config = {
        "connector.class": kind,
        "store.url": f"file://{pipeline.folder}/theirs",
        "flush.size": "100",
        "topics.dir": folder,
    }
    code, told, error = adopt(pipeline, connector(pipeline, config))
    assert code == EXIT_WELL and after(told) == expected, error
    notes = " ".join(told["notes"])
    assert f"have no file any more, and go on where consumer group connect-x-{pipeline.topic}" in notes
    assert ("Two sources differ, and its files counts" in notes) is bool(files)
    assert ("an older one starts them at offset 0" in notes) is (kind == HDFS_2)


def test_a_checkpoint_that_no_run_has_followed_goes_before_that_of_the_newest_commit(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    pipeline.produce(400)
    theirs, topic = f"file://{pipeline.folder}/theirs", pipeline.topic
    options = {
        "hoodie.table.name": "theirs",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.metadata.enable": "false",
        "hoodie.datasource.write.commitmeta.key.prefix": "deltastreamer.",
        "deltastreamer.checkpoint.key": f"{topic},0:10,1:20,2:30,3:40",
        "deltastreamer.checkpoint.reset_key": f"{topic},0:5,1:5,2:5,3:5",
    }
    frame = spark.createDataFrame([("a",)], "id STRING")
    frame.write.format("hudi").options(**options).mode("append").save(theirs)
    source = pipeline.folder / "streamer.properties"
    source.write_text(f"hoodie.streamer.source.kafka.topic={topic}\n")
    command = ("--", "--op", "INSERT", "--table-type", "COPY_ON_WRITE", "--target-base-path", theirs)
    command += ("--target-table", "theirs")
    for checkpoint, expected in (
        ("", {0: 10, 1: 20, 2: 30, 3: 40}),
        (f"{topic},0:5,1:5,2:5,3:5", {0: 10, 1: 20, 2: 30, 3: 40}),
        (f"{topic},0:6,1:6,2:6,3:6", {0: 6, 1: 6, 2: 6, 3: 6}),
    ):
        more = ("--checkpoint", checkpoint) if checkpoint else ()
        code, told, error = adopt(pipeline, source, *command, *more)
        assert code == EXIT_WELL and after(told) == expected, error
        assert any("Two sources differ" in one for one in told["notes"]) is (expected[0] == 6)
