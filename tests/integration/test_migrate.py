"""`lockstep migrate --adopt-offsets`: where another sink really stands, and a run that goes on there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from lockstep.errors import EXIT_FAILED, EXIT_USAGE, EXIT_WELL
from lockstep.stores.hdfs import HdfsServer
from lockstep.stores.local import S3Server
from table.store.location import store_at
from table.store.port import Store
from tests.adopting import S3, adopt, after, connector
from tests.broker_fixture import create_topic
from tests.data_files import data_files
from tests.harness import SCHEMA, Pipeline, await_that
from tests.place import Bucket, OnHdfs

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def joined(pipeline: Pipeline, group: str) -> Consumer:
    """A member of the group that has been given its source partitions."""
    consumer = Consumer({**pipeline.kafka, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([pipeline.topic])

    def assigned() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    await_that("the group has given its source partitions", assigned)
    return consumer


def test_what_is_made_of_a_connector_and_its_worker_runs_and_has_folders_as_theirs(
    pipeline: Pipeline,
) -> None:
    source = connector(
        pipeline,
        {
            **S3,
            "tasks.max": "2",
            "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
            "timestamp.extractor": "Record",
            "timezone": "Europe/Berlin",
            "rotate.interval.ms": "1000",
        },
    )
    worker = pipeline.folder / "worker.properties"
    worker.write_text(
        f"bootstrap.servers={pipeline.broker.bootstrap_servers}\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
        "value.converter.schemas.enable=false\n"
        "consumer.fetch.max.wait.ms=100\n"
    )
    said = {
        "pipeline.id": pipeline.id,
        "control.topic": f"{pipeline.topic}-control",
        "record.schema": SCHEMA.replace(" day STRING,", ""),  # a folder has that name
        "table.path": pipeline.place.address,
        "ui.port": "0",
    }
    sets = [f"--set={name}={value}" for name, value in said.items()]
    out = pipeline.folder / "pipeline.toml"
    arguments = ["--from", str(source), "--worker", str(worker), "--out", str(out), "--output", "json", *sets]
    done = subprocess.run(
        [sys.executable, "-m", "lockstep.cli", "migrate", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    told = json.loads(done.stdout)
    assert done.returncode == EXIT_WELL and told["missing"] == {}, told
    assert [one["settings"] for one in told["problems"]] == [["storage", "table.path"]]
    out.write_text(re.sub(r"\[storage\]\n(?:[^\[].*\n)*", "", out.read_text()))

    pipeline.produce(1_000)
    assert pipeline.run_to_end().process.returncode == 0
    verdict = pipeline.verify()
    assert verdict["rows"] == 1_000 and verdict["exact"], verdict
    hour = datetime.now(ZoneInfo("Europe/Berlin"))
    data = {str(path.parent.relative_to(pipeline.table)) for path in data_files(pipeline.table)}
    either = {f"{one:year=%Y/month=%m/day=%d/hour=%H}" for one in (hour, hour - timedelta(hours=1))}
    assert data and data <= either


def test_a_run_goes_on_where_a_connect_group_stood_and_no_record_is_read_twice_or_left_out(
    pipeline: Pipeline,
) -> None:
    pipeline.produce(2_000)  # 500 in each of four
    source = connector(pipeline, S3)
    group = f"connect-x-{pipeline.topic}"
    consumer = joined(pipeline, group)
    committed = [
        TopicPartition(pipeline.topic, number, offset) for number, offset in ((0, 300), (1, 200), (2, 500))
    ]
    consumer.commit(offsets=committed, asynchronous=False)

    code, told, _ = adopt(pipeline, source, "--yes")
    assert code == EXIT_FAILED and "1 consumers are in connect-x-" in told["refusal"]
    assert not pipeline.table.exists()
    consumer.close()

    code, told, _ = adopt(pipeline, source)
    assert code == EXIT_WELL and not told["executed"] and not pipeline.table.exists()
    assert after(told) == {0: 300, 1: 200, 2: 500, 3: 0}
    assert told["said_by"] == f"consumer group {group}"
    assert any("written objects beyond these offsets is not known" in note for note in told["notes"])

    code, told, error = adopt(pipeline, source, "--yes")
    assert code == EXIT_WELL and told["executed"], error
    rows = json.loads(pipeline.command("offsets", "--output", "json").stdout)
    assert [row["committed"] for row in rows] == [300, 200, 500, 0]

    code, told, error = adopt(pipeline, source, "--yes")
    assert code == EXIT_USAGE and "has offsets of pipeline" in error and not told

    assert pipeline.run_to_end().process.returncode == 0
    verdict = pipeline.verify()
    assert verdict["rows"] == 2_000 - 300 - 200 - 500 and verdict["exact"]


def test_a_run_goes_on_in_a_table_of_hoodie_streamers_behind_its_checkpoint(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    """As HoodieStreamer leaves it: its checkpoint in commits' metadata; then a commit of who has none."""
    pipeline.produce(1_000)  # 250 in each of four
    checkpoint = f"{pipeline.topic},0:250,1:100,2:0,3:7"
    options = {
        "hoodie.table.name": "events",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.recordkey.field": "event_id",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.metadata.enable": "false",
    }
    kept = {
        "hoodie.datasource.write.commitmeta.key.prefix": "deltastreamer.",
        "deltastreamer.checkpoint.key": checkpoint,
    }
    columns = SCHEMA.replace(" NOT NULL", "")
    for number, more in enumerate(
        ({**kept, "deltastreamer.checkpoint.key": f"{pipeline.topic},0:1"}, kept, {})
    ):
        frame = spark.createDataFrame([(f"theirs-{number}", 1, 1.0, "2026-01-01", "")], columns)
        frame.write.format("hudi").options(**options, **more).mode("append").save(pipeline.place.address)
    source = pipeline.folder / "kafka-source.properties"
    source.write_text(f"hoodie.streamer.source.kafka.topic={pipeline.topic}\n")
    theirs = (
        "--",
        "--target-base-path",
        pipeline.place.address,
        "--target-table",
        "events",
        "--op",
        "INSERT",
    )
    ours = ("--set", "table.kafka_columns=false")

    code, told, error = adopt(pipeline, source, *ours, *theirs)
    assert code == EXIT_WELL and after(told) == {0: 250, 1: 100, 2: 0, 3: 7}, error
    assert told["said_by"].endswith(pipeline.place.address)
    code, told, error = adopt(pipeline, source, *ours, "--yes", *theirs)
    assert code == EXIT_WELL and told["executed"], error

    assert pipeline.run_to_end(*ours).process.returncode == 0
    spark.catalog.clearCache()
    read = spark.read.format("hudi").load(pipeline.place.address)
    assert read.count() == 3 + 150 + 250 + 243
    assert read.select("event_id").distinct().count() == 3 + 150 + 250 + 243


def files_of_hdfs_sink(pipeline: Pipeline, store: Store, url: str) -> None:
    """What it leaves below `topics`, and what is taken of that. The files are empty: their names say it."""
    pipeline.produce(1_000)
    topic = pipeline.topic

    def leave(folder: str, name: str) -> None:
        store.make_folder(folder)
        store.put(f"{folder}/{topic}+{name}.avro", b"")

    for name in ("0+0000000000+0000000099", "0+0000000100+0000000199", "1+0000000000+0000000009"):
        leave(f"{topic}/partition={name[0]}", name)
    leave(f"+tmp/{topic}", "0+0000000200+0000000249")
    hdfs = "io.confluent.connect.hdfs3.Hdfs3SinkConnector"
    source = connector(pipeline, {"connector.class": hdfs, "store.url": url})
    code, told, error = adopt(pipeline, source)
    assert code == EXIT_WELL and after(told) == {0: 200, 1: 10, 2: 0, 3: 0}, error
    assert "No two files of theirs overlap: no record is in two of them." in told["notes"]

    leave(f"{topic}/partition=0", "0+0000000150+0000000220")
    _, told, _ = adopt(pipeline, source)
    assert after(told)[0] == 221 and any(
        f"more than one of them: {topic}:0" in note for note in told["notes"]
    )


def test_offsets_of_confluents_hdfs_sink_are_those_behind_its_files(pipeline: Pipeline) -> None:
    root = f"file://{pipeline.folder}"
    (pipeline.folder / "topics").mkdir()
    files_of_hdfs_sink(pipeline, store_at(f"{root}/topics"), root)


@pytest.mark.xdist_group("hdfs")
def test_its_files_are_found_on_hdfs(pipeline: Pipeline, hdfs: HdfsServer) -> None:
    place = OnHdfs(hdfs)
    pipeline.put_at(place)
    url = place.address.removesuffix("/events")
    files_of_hdfs_sink(pipeline, store_at(f"{url}/topics", settings=place.settings), url)


@pytest.mark.xdist_group("s3")
def test_objects_of_confluents_s3_sink_beyond_its_offsets_are_named(pipeline: Pipeline, s3: S3Server) -> None:
    place = Bucket(s3)
    pipeline.put_at(place)
    pipeline.produce(1_000)
    topic, bucket = pipeline.topic, place.address.split("/")[2]
    store = store_at(f"s3a://{bucket}/topics", settings=place.settings)
    group = f"connect-x-{topic}"
    consumer = Consumer({**pipeline.kafka, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, 200)], asynchronous=False)
    consumer.close()
    for start in (0, 100):
        store.put(f"{topic}/partition=0/{topic}+0+{start:010d}.avro", b"")
    source = connector(pipeline, {**S3, "s3.bucket.name": bucket})
    code, told, error = adopt(pipeline, source)
    assert code == EXIT_WELL and after(told) == {0: 200, 1: 0, 2: 0, 3: 0}, error
    assert any("none is doubled" in note for note in told["notes"])

    for name in ("0+0000000200", "1+0000000000"):
        store.put(f"{topic}/partition={name[0]}/{topic}+{name}.avro", b"")
    _, told, _ = adopt(pipeline, source)
    named = f"read as well: {topic}+0+0000000200.avro, {topic}+1+0000000000.avro. Delete them"
    assert any(named in note for note in told["notes"])


def test_of_icebergs_sink_the_control_topic_is_looked_at_too(pipeline: Pipeline) -> None:
    pipeline.produce(400)
    control = f"{pipeline.topic}-control-iceberg"
    create_topic(pipeline.broker.bootstrap_servers, control, partitions=1)
    producer = Producer(pipeline.kafka)
    for number in range(5):
        producer.produce(control, str(number).encode())
    assert producer.flush(30) == 0
    group = f"connect-x-{pipeline.topic}"
    for name, place in ((group, (pipeline.topic, 0, 60)), (f"{group}-coord", (control, 0, 3))):
        consumer = Consumer({**pipeline.kafka, "group.id": name, "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition(*place)], asynchronous=False)
        consumer.close()
    source = connector(
        pipeline,
        {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "iceberg.tables": "lake.events",
            "iceberg.control.topic": control,
        },
    )
    code, told, error = adopt(pipeline, source)
    assert code == EXIT_WELL and after(told) == {0: 60, 1: 0, 2: 0, 3: 0}, error
    assert any(
        f"{control} has 2 offsets behind what {group}-coord has committed" in note for note in told["notes"]
    )


def test_offsets_of_hudis_own_sink_are_those_of_its_newest_commit(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    pipeline.produce(400)
    theirs = f"file://{pipeline.folder}/theirs"
    options = {
        "hoodie.table.name": "theirs",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.metadata.enable": "false",
        "hoodie.datasource.write.commitmeta.key.prefix": "kafka.",
        "kafka.commit.offsets": "0=10,3=99",
    }
    frame = spark.createDataFrame([("a",)], "id STRING")
    frame.write.format("hudi").options(**options).mode("append").save(theirs)
    source = connector(
        pipeline,
        {"connector.class": "org.apache.hudi.connect.HoodieSinkConnector", "hoodie.base.path": theirs},
    )
    code, told, error = adopt(pipeline, source)
    assert code == EXIT_WELL and after(told) == {0: 10, 1: 0, 2: 0, 3: 99}, error


def test_a_group_that_never_was_is_refused(pipeline: Pipeline) -> None:
    pipeline.produce(10)
    code, told, _ = adopt(pipeline, connector(pipeline, S3, name="nobody"), "--yes")
    assert code == EXIT_FAILED and "consumer group connect-nobody has no offset" in told["refusal"]
    assert not pipeline.table.exists()
