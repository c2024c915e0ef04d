"""The sweep of a Hudi table in S3: by names, in few requests, and of uploads that nobody ended."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

import pytest

from control_topic.messages import DataFile
from table.hudi.files.base_file import create_marker, file_name, new_file_id
from table.store.objects.requests import Request
from table.store.objects.settings import MIB
from table.store.objects.store import ObjectStore
from tests.harness import await_that
from tests.integration import test_s3_table
from tests.integration.test_s3_table import S3Driver

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]
place, opened = test_s3_table.place, test_s3_table.opened


def begin_upload(store: ObjectStore, instant: str) -> str:
    """As of a worker that is killed: a part is there, and nobody ends it."""
    path = f"a/{file_name(new_file_id(uuid.uuid4()), '0-0-0', instant)}"
    sink = store.sink(path)
    sink.write(bytes(12 * MIB))
    create_marker(store, instant, "a", path.removeprefix("a/"))
    await_that("a part that is there", lambda: any(one.path == path for one in store.uploads()))
    LEFT.append(sink)
    return path


LEFT: list[object] = []
"""Sinks that are neither closed nor collected, which would abort them."""


def test_files_and_uploads_of_instants_that_are_over_go_and_all_others_stay(
    opened: Callable[..., S3Driver], caplog: pytest.LogCaptureFixture
) -> None:
    driver = opened()
    store = driver.store
    assert isinstance(store, ObjectStore)
    committed = driver.run("one", 3)
    given_up = driver.begin("two")
    driver.table.roll_back(given_up)
    orphan: DataFile = driver.write(given_up, 2)  # by a worker that had stood still
    killed = begin_upload(store, given_up)
    pending = driver.begin("three")
    going_on = begin_upload(store, pending)
    unnamed = driver.write(committed, 1)
    with caplog.at_level(logging.WARNING, logger="table.hudi.upkeep.sweep"):
        assert driver.table.sweep(grace_ms=0).removed == 2
    assert [one.path for one in store.uploads()] == [going_on]
    names = set(store.names("a"))
    assert not {path.removeprefix("a/") for path in (orphan.path, unnamed.path, killed)} & names
    (line,) = [one.getMessage() for one in caplog.records if one.name == "table.hudi.upkeep.sweep"]
    assert "removed 3 files" in line and "1 of them had only been begun to be uploaded" in line
    assert not [folder for folder, _ in store.walk(f".hoodie/.temp/{given_up}")]
    assert [folder for folder, _ in store.walk(f".hoodie/.temp/{pending}")]


def test_a_sweep_asks_nothing_of_single_files(opened: Callable[..., S3Driver]) -> None:
    driver = opened()
    for number in range(5):
        driver.run(f"t{number}", 3)
    sweeper = driver.table._sweeper
    sweeper.sweep(grace_ms=0)
    store = driver.table._session.store
    assert isinstance(store, ObjectStore)
    before = store.requests.counts()
    sweeper.sweep(grace_ms=0)
    asked = {one: count - before.get(one, 0) for one, count in store.requests.counts().items()}
    assert {one: count for one, count in asked.items() if count} == {
        Request.LIST: 4,  # files, markers, what was begun, and what was taken away
        Request.HEAD: 2,  # there are no such notes
        Request.LIST_UPLOADS: 1,
    }
