"""Workers' files on a real S3 server: whole or not there, in few requests, in the memory given for it."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from control_topic.messages import SourcePartition
from lockstep.stores.local import S3Server, secret_of
from participant.records.raw import RawBatch, Values
from participant.worker.memory import MemoryBudget
from participant.worker.stages import Stages, stages
from table.errors import FilesGone, StorageError
from table.hudi.avro import to_avro
from table.hudi.definition import with_meta_columns
from table.hudi.files.log_file import PARQUET_BLOCK, read_blocks
from table.port import FileWriter, TableLayout
from table.schema import table_schema
from table.store.location import store_at
from table.store.objects.requests import Request
from table.store.objects.settings import MIB, FixedKeys, ObjectSettings
from table.store.objects.store import ObjectStore
from tests.harness import await_that
from tests.s3_fixture import new_place
from tests.s3_proxy import Blow, S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]

INSTANT = "20261122051234567"
DDL = "id STRING, day STRING, amount BIGINT"
MEMORY = MemoryBudget(256_000_000, uploads=True)
AT_ONCE_S = 30
MODES = ("insert", "upsert")
ROOT = Path(__file__).parents[2]


class Site:
    """A table's place, and a worker's half for it."""

    def __init__(self, settings: ObjectSettings, path: str = "") -> None:
        self.path = path or new_place()
        self.settings = settings
        store = store_at(self.path, settings=settings)
        assert isinstance(store, ObjectStore)
        self.store = store
        self.store.put(".hoodie/hoodie.properties", b"")

    def stages(self, mode: str, memory: MemoryBudget = MEMORY, buckets: int = 2) -> Stages:
        schema = table_schema(DDL, True)
        upserts = {"bucket_count": buckets, "avro": with_meta_columns(to_avro(schema, "t"))}
        layout = TableLayout(
            kind="hudi",
            path=self.path,
            key_fields=("id",),
            partition_fields=("day",),
            kafka_columns=True,
            target_file_bytes=1 << 30,
            ddl=DDL,
            mode=mode,
            body=upserts if mode == "upsert" else {},
        )
        return stages(layout=layout, slot=0, incarnation="i", memory=memory, storage=self.settings)

    def writer(self, mode: str, count: int, days: int = 2) -> Any:
        made = self.stages(mode)
        writer = made.files.writer(INSTANT, lambda _: None)
        give(made, writer, count, days)
        return writer

    def requests_of(self, writer: Any) -> dict[Request, int]:
        return dict(writer._files.store.requests.counts())

    def files(self) -> set[str]:
        return {f"{folder}/{name}" for folder, names in self.store.walk() for name in names}

    def uploads(self) -> list[str]:
        return [one.path for one in self.store.unfinished.uploads()]


def give(made: Stages, writer: FileWriter, count: int, days: int, *, first: int = 0, random: int = 0) -> None:
    """`random`: so many bytes of each row that nothing makes smaller."""
    offsets = np.arange(first, first + count, dtype=np.int64)
    values: list[bytes | None] = [
        b'{"id":"k%d%s","day":"d%d","amount":%d}' % (n, os.urandom(random).hex().encode(), n % days, n)
        for n in range(first, first + count)
    ]
    batch = RawBatch(
        partition=SourcePartition("t", 0), offsets=offsets, timestamps_ms=offsets, values=Values.of(values)
    )
    writer.write(made.files.shape(made.decoder.decode(batch).rows(batch)))


@pytest.fixture
def site(s3: S3Server) -> Site:
    return Site(s3.settings)


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3.port) as running:
        yield running


def rows_of(site: Site, mode: str, path: str) -> list[dict[str, Any]]:
    with site.store.source(path) as source:
        if mode == "insert":
            return list(pq.read_table(source).to_pylist())
        blocks = read_blocks(source.read())
    assert {block.kind for block in blocks} == {PARQUET_BLOCK}
    return [row for block in blocks for row in pq.read_table(io.BytesIO(block.content)).to_pylist()]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_written_is_read_back_from_an_object_store(site: Site, mode: str) -> None:
    writer = site.writer(mode, 1_000)
    assert not [path for path in site.files() if not path.startswith(".hoodie")], "before it is whole"
    files = writer.close()
    assert len(files) == (2 if mode == "insert" else 4) and sum(file.rows for file in files) == 1_000
    found = [row for file in files for row in rows_of(site, mode, file.path)]
    assert sorted(row["amount"] for row in found) == list(range(1_000))
    for file in files:
        stat = site.store.stat(file.path)
        assert stat is not None and stat.size_bytes == file.size_bytes
        assert site.store.stat(f".hoodie/.temp/{INSTANT}/{file.path}.marker.CREATE") is not None
        assert site.store.stat(f"{file.table_partition}/.hoodie_partition_metadata") is not None
    writer.discard()
    assert {file.path for file in files} <= site.files()


@pytest.mark.parametrize("mode", MODES)
def test_a_file_costs_its_marker_and_itself_and_nothing_is_asked_of_folders(site: Site, mode: str) -> None:
    site.writer(mode, 100).close()  # the table partitions are there then
    writer = site.writer(mode, 100)
    writer._instant = writer._files._instant = "20261122051234568"
    files = writer.close()
    assert site.requests_of(writer) == {
        Request.PUT_IF: len(files),
        Request.PUT: len(files),
        Request.HEAD: 1 + 2,  # whether the table is there, and its two table partitions
    }


@pytest.mark.parametrize("mode", MODES)
def test_what_is_discarded_leaves_markers_and_no_part_of_a_file(site: Site, mode: str) -> None:
    site.settings = replace(site.settings, part_bytes=5 * MIB)
    made = site.stages(mode, MemoryBudget(4_000_000, uploads=True), buckets=1)
    writer: Any = made.files.writer(INSTANT, lambda _: None)
    await_an_upload(site, made, writer)
    writer.discard()
    assert site.uploads() == []
    left = {path for path in site.files() if not path.startswith(".hoodie/.temp")}
    assert left <= {".hoodie/hoodie.properties", "d0/.hoodie_partition_metadata"}
    assert site.files() - left


LARGE, LARGE_ROWS = 500, 5_000
"""A file of some MiB with each call."""


def await_an_upload(site: Site, made: Stages, writer: FileWriter) -> None:
    for turn in range(8):
        give(made, writer, LARGE_ROWS, 1, first=turn * LARGE_ROWS, random=LARGE)
    await_that("an upload that has begun", site.uploads)


def meet(meeting: threading.Barrier) -> None:
    meeting.wait(AT_ONCE_S)


def test_files_are_uploaded_at_once(site: Site, proxy: S3Proxy) -> None:
    """Neither of two is answered before both are there."""
    site.settings = replace(site.settings, endpoint=proxy.endpoint)
    writer = site.writer("insert", 100)
    meeting = threading.Barrier(2)
    proxy.strike(Request.PUT, partial(meet, meeting), times=2)
    assert len(writer.close()) == 2 and not meeting.broken


@pytest.mark.parametrize("mode", MODES)
def test_a_refusal_is_told_in_the_stores_own_words(site: Site, mode: str, s3: S3Server) -> None:
    site.settings = replace(s3.settings, credentials=FixedKeys("reader", secret_of("reader")))
    with pytest.raises(StorageError, match="the policy must allow s3:PutObject") as raised:
        site.writer(mode, 100).close()
    assert secret_of("reader") not in str(raised.value)


@pytest.mark.parametrize("mode", MODES)
def test_a_table_that_is_gone_is_not_begun_anew(site: Site, mode: str) -> None:
    site.store.delete(".hoodie/hoodie.properties")
    writer = site.writer(mode, 100)
    with pytest.raises(StorageError, match="there is no table here any more"):
        writer.close()
    writer.discard()
    assert not [path for path in site.files() if not path.endswith("_metadata")]


def test_an_upload_that_was_aborted_by_others_is_a_rollback_and_not_storage(site: Site) -> None:
    made = site.stages("insert", MemoryBudget(4_000_000, uploads=True))
    writer = made.files.writer(INSTANT, lambda _: None)
    await_an_upload(site, made, writer)
    (upload,) = site.store.unfinished.uploads()
    site.store.unfinished.abort(upload)
    with pytest.raises((FilesGone, StorageError)) as raised:
        give(made, writer, LARGE_ROWS, 1, random=LARGE)
        writer.close()
    assert isinstance(raised.value, FilesGone), raised.value
    writer.discard()


def test_a_put_that_is_carried_out_and_not_answered_is_done(site: Site, proxy: S3Proxy) -> None:
    site.settings = replace(site.settings, endpoint=proxy.endpoint)
    writer = site.writer("upsert", 100, days=1)
    proxy.strike(Request.PUT, Blow.LOSE)
    proxy.strike(Request.PUT_IF, Blow.LOSE)
    files = writer.close()
    assert sum(file.rows for file in files) == 100 and not proxy.unstruck()
    assert {file.path for file in files} <= site.files()


MEASURED = """
import pickle, sys
from tests.integration.test_object_files import measure
measure(*pickle.load(sys.stdin.buffer))
"""
OPEN, TURNS = 30, 60


def measure(path: str, settings: ObjectSettings, mode: str, per_worker_bytes: int) -> None:
    """In a process of its own, bytes: what it takes more of memory for files of which all are always written
    to; the most that it says to hold; and what it has written.
    """
    site = Site(settings, path)
    made = site.stages(mode, MemoryBudget(per_worker_bytes, uploads=True))
    writer: Any = made.files.writer(INSTANT, lambda _: None)
    give(made, writer, LARGE_ROWS, OPEN, random=LARGE)
    before = most_memory_bytes()
    said = 0
    for turn in range(1, TURNS):
        give(made, writer, LARGE_ROWS, OPEN, first=turn * LARGE_ROWS, random=LARGE)
        said = max(said, writer.held_bytes)
    files = writer.close()
    assert sum(file.rows for file in files) == TURNS * LARGE_ROWS
    figures = (most_memory_bytes() - before, said, sum(file.size_bytes for file in files))
    sys.stdout.write(" ".join(map(str, figures)))


def most_memory_bytes() -> int:
    """Resident; what `getrusage` says begins with what the parent had."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


@pytest.mark.parametrize("mode", MODES)
def test_open_files_take_no_more_memory_than_the_worker_has_for_them(site: Site, mode: str) -> None:
    budget = MemoryBudget(128_000_000, uploads=True)
    asked = pickle.dumps((site.path, site.settings, mode, budget.per_worker_bytes))
    told = subprocess.run(
        [sys.executable, "-c", MEASURED], input=asked, stdout=subprocess.PIPE, cwd=ROOT, check=True
    )
    grown, said, written = map(int, told.stdout.split())
    assert said <= budget.held_bytes
    assert grown < budget.per_worker_bytes < written / 2
