"""The bench puts rivals' tables on S3: what they are told, who runs when, and what makes a store far."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bench.commits import evidence_name
from bench.lakes import Lake, Place, SlowProxy, file_lake
from bench.latency import of_way
from bench.rivals import iceberg_tables, lockstep_run
from bench.rivals.base import Settings
from bench.rivals.registry import order, parse
from bench.rivals.structured_streaming import hadoop, write_task
from bench.workloads import WORKLOADS
from lockstep.config import Config, load
from lockstep.errors import ConfigError, Failed
from table.store.objects.settings import FixedKeys, ObjectSettings

SETTINGS = ObjectSettings(
    endpoint="http://127.0.0.1:1",
    region="us-east-1",
    path_style=True,
    credentials=FixedKeys("key", "secret"),
)
ON_S3 = Lake(
    root="s3a://lake/bench",
    section="""[storage]
endpoint = "http://127.0.0.1:1"
path_style = true
""",
    storage=SETTINGS,
    beside=SETTINGS,
)


# --- who runs -----------------------------------------------------------------------------------------


def test_a_label_says_where_the_table_is() -> None:
    assert parse("lockstep").place is Place.FILE
    assert parse("lockstep-append-s3").rival.name == "lockstep-append"
    far = parse("streaming-s3-far@500000")
    assert (far.rival.name, far.place, far.batch_records) == ("streaming", Place.FAR, 500_000)
    assert far.title == "Spark Structured Streaming → Hudi, on S3, far, 500000"
    assert parse("lockstep-hdfs").place is Place.HDFS


@pytest.mark.parametrize("label", ["plain-s3", "nobody-s3", "lockstep-far", "-s3", "iceberg-warm-hdfs"])
def test_a_rival_that_cannot_be_on_s3_is_refused(label: str) -> None:
    with pytest.raises(ConfigError):
        parse(label)


def test_every_other_round_begins_with_the_last_place() -> None:
    entries = [parse(f"lockstep{place}") for place in ("", "-s3", "-s3-far")]
    assert order(entries, 1) == list(reversed(order(entries, 0)))


def test_the_evidence_of_commits_is_named_by_workload_and_place() -> None:
    names = [evidence_name(WORKLOADS["short"], place) for place in Place]
    assert names == ["bench-commits", "bench-commits-s3", "bench-commits-s3-far", "bench-commits-hdfs"]
    assert evidence_name(WORKLOADS["files"], Place.S3) == "bench-commits-files-s3"


# --- what they are told -------------------------------------------------------------------------------


def _config(folder: Path, lake: Lake | None) -> Config:
    path = lockstep_run.write_config(
        folder,
        pipeline="p",
        bootstrap_servers="127.0.0.1:9092",
        topic="events",
        workload=WORKLOADS["narrow"],
        interval_s=5.0,
        settings=Settings(),
        lake=lake,
    )
    return load(path)


def test_lockstep_is_told_the_table_s_address_and_how_it_is_reached(tmp_path: Path) -> None:
    config = _config(tmp_path, ON_S3)
    assert (config.table.path, config.storage.endpoint) == ("s3a://lake/bench/table", SETTINGS.endpoint)
    assert _config(tmp_path, None).table.path == f"file://{tmp_path}/table"


def test_spark_reaches_the_store_by_lockstep_s_own_settings(tmp_path: Path) -> None:
    told = hadoop(ON_S3)
    own = "fs.s3a.bucket.lake."
    assert (told[f"{own}endpoint"], told[f"{own}secret.key"]) == (SETTINGS.endpoint, "secret")
    assert told[f"{own}directory.marker.retention"] == "keep"
    assert hadoop(file_lake(tmp_path)) == {}
    workload = WORKLOADS["narrow"]
    path = write_task(
        tmp_path,
        bootstrap_servers="127.0.0.1:9092",
        topic="events",
        workload=workload,
        batch_records=0,
        timeout_s=1.0,
        lake=ON_S3,
    )
    task = json.loads(path.read_text(encoding="utf-8"))
    assert (task["table"], task["hadoop"]) == ("s3a://lake/bench/table", told)
    assert task["checkpoint"] == str(tmp_path / "checkpoint")


def test_iceberg_s_catalog_is_in_the_folder_or_beside_the_store(tmp_path: Path) -> None:
    in_folder = iceberg_tables.warehouse_in(file_lake(tmp_path), "one", tmp_path / "one")
    assert in_folder.catalog == {"type": "hadoop", "warehouse": (tmp_path / "one").as_uri()}
    on_s3 = iceberg_tables.warehouse_in(ON_S3, "two", tmp_path / "two")
    assert on_s3.catalog["warehouse"] == "s3://lake/bench/two"
    assert on_s3.catalog["s3.endpoint"] == SETTINGS.endpoint
    assert (in_folder.newest(), on_s3.newest()) == (None, None)
    with closing(sqlite3.connect(tmp_path / "two" / "catalog.db")) as catalog:
        names = catalog.execute("SELECT namespace FROM iceberg_namespace_properties").fetchall()
    assert names == [("db",)]


def test_iceberg_s_table_is_the_metadata_that_its_catalog_names(tmp_path: Path) -> None:
    lake = Lake(root=f"file://{tmp_path}/lake", storage=SETTINGS, beside=SETTINGS)
    warehouse = iceberg_tables.warehouse_in(lake, "one", tmp_path / "one")
    assert warehouse.catalog["jdbc.init-catalog-tables"] == "false"
    for number in (1, 2):
        path = tmp_path / "lake" / "one" / "db" / "events" / "metadata" / f"{number}.metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"last-sequence-number": number}))
        with closing(sqlite3.connect(tmp_path / "one" / "catalog.db")) as catalog:
            row = (iceberg_tables.NAME, "db", "events", f"s3://{path}", None)
            catalog.execute("INSERT OR REPLACE INTO iceberg_tables VALUES (?, ?, ?, ?, ?)", row)
            catalog.commit()
        assert warehouse.newest() == {"last-sequence-number": number}
    path.write_text("{")
    assert warehouse.newest() == {"last-sequence-number": 2}, "what was read is read no more"
    with closing(sqlite3.connect(tmp_path / "one" / "catalog.db")) as catalog:
        catalog.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"s3://{path}.gone",))
        catalog.commit()
    with pytest.raises(Failed, match=r"2\.metadata\.json\.gone"):
        warehouse.newest()


# --- what makes a store far ---------------------------------------------------------------------------


@contextmanager
def _echo() -> Iterator[int]:
    """A server that sends back what it gets; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=back, args=(one,), daemon=True).start()

        def back(one: socket.socket) -> None:
            with one:
                while data := one.recv(1 << 20):
                    one.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def _exchanged(connection: socket.socket, data: bytes) -> bytes:
    """Send all and end; what came back until the end."""
    sending = threading.Thread(
        target=lambda: (connection.sendall(data), connection.shutdown(socket.SHUT_WR)), daemon=True
    )
    sending.start()
    found = bytearray()
    while more := connection.recv(1 << 20):
        found += more
    sending.join(10)
    return bytes(found)


def test_bytes_arrive_whole_and_in_order_and_never_before_the_latency(tmp_path: Path) -> None:
    data = bytes(range(256)) * 100_000
    with (
        _echo() as port,
        SlowProxy(tmp_path, to_port=port, latency_ms=80) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as connection,
    ):
        began = time.monotonic()
        connection.sendall(b"ask")
        assert connection.recv(10) == b"ask"
        assert time.monotonic() - began >= 0.08
        assert _exchanged(connection, data) == data


def test_a_connection_ends_where_there_is_no_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        SlowProxy(tmp_path, to_port=port, latency_ms=1) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as connection,
    ):
        assert connection.recv(10) == b""


def test_large_objects_count_by_their_rate_and_small_ones_by_their_time() -> None:
    figures = of_way({"put_large": [0.1, 0.2], "read_small": [0.02, 0.03]})
    assert figures["put_large_mb_per_s"] == {"min": 500.0, "median": 750.0, "max": 1_000.0}
    assert (figures["read_small_p50_ms"], figures["read_small_p99_ms"]) == (20.0, 30.0)
