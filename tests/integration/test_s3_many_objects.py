"""A table in S3 beside which, and in which, many objects are: requests, and memory."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import obstore
import psutil
import pytest

from lockstep.stores.local import S3Server
from table.hudi.reader.timeline import Timeline
from table.kinds import HUDI, table_kind
from table.store.objects.requests import Request
from table.store.objects.store import ObjectStore
from tests.integration import test_s3_table
from tests.integration.test_s3_table import S3Driver

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3"), pytest.mark.timeout(900)]
place, opened = test_s3_table.place, test_s3_table.opened

OBJECTS = int(os.environ.get("MANY_OBJECTS", "20_000"))
"""With MANY_OBJECTS=100000 it takes a minute or two."""
IN_IT, BESIDE = OBJECTS * 9 // 10, OBJECTS // 10
AT_ONCE = 64
MEMORY_MAX = 256 * 1024 * 1024
"""Above what the process had: a page is some megabytes, names of a sweep some tens."""
LOOK_S = 0.02


def fill(store: ObjectStore) -> None:
    """Objects that are nobody's, in the table's folder and in one that is called nearly the same."""
    root = store._root

    async def put_all() -> None:
        at_once = asyncio.Semaphore(AT_ONCE)

        async def put(key: str) -> None:
            async with at_once:
                await obstore.put_async(store._bucket.client, key, b"1", use_multipart=False)

        keys = [f"{root}/b/{number % 100:03}-{number:06}.csv" for number in range(IN_IT)]
        keys += [f"{root}-old/{number:06}.csv" for number in range(BESIDE)]
        await asyncio.gather(*map(put, keys))

    asyncio.run(put_all())


@contextmanager
def memory_bounded() -> Iterator[None]:
    process, done, most = psutil.Process(), threading.Event(), [0]
    before = process.memory_info().rss

    def watch() -> None:
        while not done.wait(LOOK_S):
            most[0] = max(most[0], process.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()
    assert most[0] - before < MEMORY_MAX


def test_a_sweep_and_looks_at_a_table_among_many_objects_ask_what_is_promised(
    opened: Callable[..., S3Driver], s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = opened()
    driver.run("one", 3)
    store = driver.store
    assert isinstance(store, ObjectStore)
    fill(store)
    swept = driver.table._session.store
    assert isinstance(swept, ObjectStore)
    with memory_bounded():
        for _ in range(2):
            before = swept.requests.counts()
            assert driver.table.sweep(grace_ms=0).removed == 0
            asked = {one: n - before.get(one, 0) for one, n in swept.requests.counts().items()}
            assert asked[Request.LIST] <= IN_IT // 1_000 + 6, asked
            assert sum(asked.values()) <= IN_IT // 1_000 + 12, asked
        reader = table_kind(HUDI).reader(driver.spec.path, s3.settings)
        newest = reader.newest("events")
        assert newest is not None
        looked = reader._store  # type: ignore[attr-defined]
        assert looked.requests.total() <= 5, looked.requests.counts()
        rows = reader.rows()
        found = [row for file in rows.files for batch in file.batches for row in batch.to_pylist()]
        assert len(found) == 3
        assert looked.requests.total() <= 40, looked.requests.counts()
        looks: list[ObjectStore] = []

        class Watched(Timeline):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                assert isinstance(self.store, ObjectStore)
                looks.append(self.store)

        monkeypatch.setattr("table.hudi.census.census.Timeline", Watched)
        census = table_kind(HUDI).census(driver.spec)
        first = census.take(unless=None, files_max=200_000, enough=lambda: False)
        assert first is not None and first.files.is_whole and first.files.files == 1
        asked = looks[-1].requests.counts()
        assert asked[Request.LIST] <= IN_IT // 1_000 + 5, asked
        assert sum(asked.values()) <= IN_IT // 1_000 + 8, asked
        assert census.take(unless=first.as_of, files_max=200_000, enough=lambda: False) is None
        assert looks[-1].requests.total() <= 3, looks[-1].requests.counts()
        some = census.take(unless=None, files_max=2_500, enough=lambda: False)
        assert some is not None and not some.files.is_whole
        assert looks[-1].requests.total() <= 8, "no more is listed than is asked for"
