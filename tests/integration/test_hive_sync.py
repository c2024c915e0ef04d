"""A real Hive metastore is kept up to date by real runs, and Spark SQL finds the table there by its name."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from control_topic.messages import SourcePartition
from lockstep.launch.local_server import free_port
from lockstep.launch.submit import find_jars
from lockstep.stores.hive import MetastoreServer
from lockstep.stores.local import ACCESS_KEY, SECRET_KEY, S3Server
from table.catalog import CatalogSpec
from table.errors import Unavailable
from table.hudi.driver.hive_sync import HiveSync
from table.kinds import HUDI, table_kind
from table.port import INSERT, Commit, TableSpec
from table.state import TableState
from table.store.connectors import store_needs
from tests.harness import SCHEMA, Pipeline
from tests.hook_receiver import Receiver
from tests.place import Bucket

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SQL_S = 240
TYPES = (
    ("STRING", "string"),
    ("BOOLEAN", "boolean"),
    ("INT", "int"),
    ("BIGINT", "bigint"),
    ("FLOAT", "float"),
    ("DOUBLE", "double"),
    ("DECIMAL(9,2)", "decimal(9,2)"),
    ("DECIMAL(38,10)", "decimal(38,10)"),
    ("DATE", "date"),
    ("TIMESTAMP", "timestamp"),
    ("TIMESTAMP_NTZ", "timestamp"),
    ("BINARY", "binary"),
    ("ARRAY<STRING>", "array<string>"),
    ("STRUCT<x: INT, y: ARRAY<DATE>>", "struct<x:int,y:array<date>>"),
    ("MAP<STRING,DOUBLE>", "map<string,double>"),
)
"""(in DDL, in Hive)."""


def by_name(server: MetastoreServer, query: str) -> list[list[Any]]:
    """Rows, by a Spark of its own."""
    command = [sys.executable, "-m", "tests.integration.sql_by_name", server.uri, query]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SQL_S, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    rows: list[list[Any]] = json.loads(done.stdout.strip().splitlines()[-1])
    return rows


class Asked:
    """The metastore, as Hive's own client sees it."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        jvm: Any = spark._jvm
        conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
        conf.set("hive.metastore.uris", uri)
        self._client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)

    def columns(self, database: str, table: str) -> list[str]:
        fields = self._client.getSchema(database, table)
        return [str(fields.get(at).getName()) for at in range(fields.size())]

    def types(self, database: str, table: str) -> dict[str, str]:
        fields = self._client.getSchema(database, table)
        return {str(fields.get(at).getName()): str(fields.get(at).getType()) for at in range(fields.size())}

    def partitions(self, database: str, table: str) -> list[str]:
        names = self._client.listPartitionNames(database, table, 100)
        return sorted(str(names.get(at)) for at in range(names.size()))

    def has(self, database: str, table: str) -> bool:
        return bool(self._client.tableExists(database, table))


def hive(pipeline: Pipeline, server: MetastoreServer, database: str) -> None:
    pipeline.settings["hooks.hive"] = server.uri
    pipeline.settings["hooks.hive_database"] = database


@pytest.fixture
def database() -> str:
    return f"lake_{uuid.uuid4().hex[:8]}"


def test_a_new_table_and_a_new_column_are_in_the_metastore_and_sql_finds_the_table_by_name(
    pipeline: Pipeline, metastore: MetastoreServer, spark: SparkSession, database: str
) -> None:
    hive(pipeline, metastore, database)
    pipeline.produce(300)
    pipeline.run_until_told()
    asked = Asked(spark, metastore.uri)
    before = asked.columns(database, "events")
    assert {"event_id", "user_id", "amount", "day", "note", "_kafka_offset"} <= set(before)
    assert asked.partitions(database, "events") == [f"day=2026-01-0{number}" for number in (1, 2, 3)]

    pipeline.settings["record.schema"] = f"{SCHEMA}, colour STRING"
    value = {"event_id": "new", "user_id": 7, "amount": 1.5, "day": "2026-02-01", "colour": "green"}
    pipeline.produce_raw([json.dumps(value).encode()], partition=0)
    pipeline.run_until_told()
    after = asked.columns(database, "events")
    assert set(after) - set(before) == {"colour"}
    assert "day=2026-02-01" in asked.partitions(database, "events")

    query = f"SELECT count(*), count(colour), max(colour), count(DISTINCT day) FROM {database}.events"
    assert by_name(metastore, query) == [[301, 1, "green", 4]]


@pytest.mark.parametrize("hive_style", ["false", "true"])
def test_table_partitions_of_several_fields_are_there_and_are_found_by_name(
    pipeline: Pipeline, metastore: MetastoreServer, spark: SparkSession, database: str, hive_style: str
) -> None:
    hive(pipeline, metastore, database)
    pipeline.settings["table.hudi.hoodie.datasource.write.hive_style_partitioning"] = hive_style
    pipeline.settings["table.partition_by"] = '["day", "bucket(2, user_id) as b", "truncate(3, day)"]'
    pipeline.produce(300)
    pipeline.run_until_told()
    wanted = [f"day=2026-01-0{day}/b={b}/day_truncate=202" for day in (1, 2, 3) for b in (0, 1)]
    assert Asked(spark, metastore.uri).partitions(database, "events") == wanted
    query = f"SELECT count(*), count(DISTINCT b) FROM {database}.events WHERE day = '2026-01-02' AND b >= 0"
    assert by_name(metastore, query) == [[100, 2]]


def test_upserts_have_their_table_there_as_well(
    pipeline: Pipeline, metastore: MetastoreServer, spark: SparkSession, database: str
) -> None:
    hive(pipeline, metastore, database)
    pipeline.settings["hooks.hive_table"] = "people"
    text = pipeline.config.read_text().replace('name = "events"', 'name = "events"\nkind = "upsert"')
    pipeline.config.write_text(text.replace('partition_by = "day"\n', ""))
    pipeline.produce(100)
    pipeline.run_until_told()
    asked = Asked(spark, metastore.uri)
    assert all(asked.has(database, name) for name in ("people", "people_ro", "people_rt"))
    assert asked.partitions(database, "people") == []


def test_a_metastore_that_hangs_holds_up_no_run_and_has_all_once_it_is_back(
    pipeline: Pipeline, metastore: MetastoreServer, spark: SparkSession, database: str
) -> None:
    hive(pipeline, metastore, database)
    pipeline.settings["hooks.hive_period"] = "1s"
    pipeline.settings["table.hudi.hoodie.datasource.write.hive_style_partitioning"] = "true"
    metastore.pause()
    try:
        run = pipeline.start()
        for count in range(1, 6):
            pipeline.produce(100)
            run.await_commits(count)
        assert run.stop() == 0
        assert "hook hive" in run.text() and "has not taken the newest commit" in run.text()
    finally:
        metastore.resume()
    pipeline.run_until_told()
    days = [f"day=2026-01-0{number}" for number in (1, 2, 3)]
    assert Asked(spark, metastore.uri).partitions(database, "events") == days
    pipeline.assert_exact(500)


@pytest.fixture
def metastore_on_s3(spark: SparkSession, s3: S3Server, tmp_path: Path) -> Iterator[MetastoreServer]:
    """One that reaches the bucket itself, as it must, by the jars that Spark has fetched."""
    jars = find_jars(store_needs("s3a://lake/events").packages, {})
    hadoop = {
        "fs.s3a.endpoint": s3.endpoint,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": ACCESS_KEY,
        "fs.s3a.secret.key": SECRET_KEY,
    }
    with MetastoreServer(tmp_path / "metastore", jars=jars, hadoop=hadoop) as running:
        yield running


def test_a_table_in_a_bucket_is_told_and_named_as_well(
    pipeline: Pipeline, metastore_on_s3: MetastoreServer, spark: SparkSession, s3: S3Server, database: str
) -> None:
    bucket = Bucket(s3)
    pipeline.put_at(bucket)
    hive(pipeline, metastore_on_s3, database)
    pipeline.produce(100)
    with Receiver() as receiver:
        pipeline.settings["hooks.webhook"] = receiver.url
        pipeline.run_until_told()
        completed = [one.requested for one in bucket.timeline().completed() if one.state is not None]
        assert list(dict.fromkeys(receiver.instants)) == completed[::-1], "each once at least, in order"
        assert receiver.taken[0].document["table"]["path"] == bucket.address
    asked = Asked(spark, metastore_on_s3.uri)
    assert "event_id" in asked.columns(database, "events")
    assert asked.partitions(database, "events") == [f"day=2026-01-0{number}" for number in (1, 2, 3)]


def test_columns_of_every_type_are_there(
    metastore: MetastoreServer, spark: SparkSession, tmp_path: Path, database: str
) -> None:
    ddl = ", ".join(f"c{number} {kind}" for number, (kind, _) in enumerate(TYPES))
    spec = TableSpec(path=f"file://{tmp_path}/types", name="types", mode=INSERT, ddl=ddl)
    table = table_kind(HUDI).committer(spark, spec, "types")
    try:
        table.open()
        instant = table.begin(run="run", transaction="t1")
        state = TableState(
            pipeline="types", run="run", epoch=1, transaction="t1", offsets={SourcePartition("events", 0): 1}
        )
        commit = Commit(instant=instant, expected={}, state=state, files=())
        table.commit(commit, fence=lambda _newest: "")
    finally:
        table.close()
    of = CatalogSpec(uris=metastore.uri, database=database, table="types", path=spec.path)
    sync = HiveSync(spark, of)
    for _ in range(2):
        sync.sync()
    assert "is there" in sync.look()
    types = Asked(spark, metastore.uri).types(database, "types")
    assert {f"c{number}": types[f"c{number}"] for number in range(len(TYPES))} == {
        f"c{number}": hive for number, (_, hive) in enumerate(TYPES)
    }


def test_a_metastore_that_is_away_is_said_in_a_sentence(
    spark: SparkSession, metastore: MetastoreServer, tmp_path: Path, database: str
) -> None:
    away = f"thrift://127.0.0.1:{free_port()}"
    sync = HiveSync(
        spark, CatalogSpec(uris=away, database=database, table="events", path=f"file://{tmp_path}")
    )
    with pytest.raises(Unavailable, match=f"the metastore at {away} could not be asked"):
        sync.look()
    there = CatalogSpec(uris=metastore.uri, database=database, table="events", path=f"file://{tmp_path}")
    assert "is not there yet" in HiveSync(spark, there).look()
    with pytest.raises(Unavailable, match="could not be brought up to date"):
        HiveSync(spark, there).sync()  # there is no table at that path


def test_validate_asks_the_metastore(pipeline: Pipeline, metastore: MetastoreServer) -> None:
    text = pipeline.config.read_text()
    pipeline.config.write_text(f'{text}\n[hooks]\nhive = "{metastore.uri}"\n')
    done = pipeline.command("validate", "--output", "json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0 and "is not there yet" in checks["hook hive"]["detail"]
