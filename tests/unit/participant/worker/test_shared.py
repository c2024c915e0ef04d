"""A worker on a machine that has not the driver's disk is told from one that has."""

from __future__ import annotations

import errno
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstep.driver.slots import Slot
from participant.worker import task
from participant.worker.shared import unshared
from participant.worker.spec import Ended
from table.kinds import HUDI, table_kind
from table.port import TableLayout
from table.service.place import Place
from table.store.local import LocalStore
from table.store.objects.settings import ObjectSettings


def layout(path: str, kind: str = HUDI) -> TableLayout:
    return TableLayout(
        kind=kind,
        path=path,
        key_fields=(),
        partition_fields=(),
        kafka_columns=True,
        target_file_bytes=1,
        ddl="a INT",
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder in which a driver has left its note."""
    (tmp_path / "lake" / ".hoodie").mkdir(parents=True)
    Place(table_kind(HUDI).notes(str(tmp_path / "lake")), pipeline="events", run="r").occupy()
    return tmp_path / "lake"


def test_where_the_drivers_note_is_the_table_is(table: Path) -> None:
    assert unshared(layout(str(table)), None, "events") == ""


def test_a_folder_without_it_is_another_be_it_empty_or_a_table(table: Path) -> None:
    said = unshared(layout(str(table)), None, "others")
    assert f"{table} on {socket.gethostname()} is not the one that the driver has" in said
    shutil.rmtree(table)
    assert "share under one path" in unshared(layout(str(table)), None, "events")
    table.mkdir()
    assert "share under one path" in unshared(layout(str(table)), None, "events")


def test_a_disk_that_does_not_answer_is_not_another_disk(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_store: LocalStore, path: str) -> None:
        raise OSError(errno.EIO, "Input/output error", path)

    monkeypatch.setattr(LocalStore, "stat", fails)
    assert unshared(layout(str(table)), None, "others") == ""


def test_a_store_that_all_reach_alike_is_not_asked(table: Path) -> None:
    assert unshared(layout("s3a://lake/t"), ObjectSettings(), "events") == ""
    assert unshared(layout(f"memory:{table}", "memory"), None, "events") == ""


class Context:
    """Of Spark, what a slot asks for: it does at once what it is given."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def setJobGroup(self, *_: object, **__: object) -> None:
        """Nothing to do."""

    def parallelize(self, *_: object) -> Context:
        return self

    def mapPartitions(self, made: Any) -> Context:
        self.tasks.append(made)
        return self

    def collect(self) -> list[str]:
        return list(self.tasks[-1](iter([0])))


class Spec:
    """Of a worker's, what is looked at before there is one."""

    pipeline, run, storage, log_format = "events", "r", None, "text"

    def __init__(self, path: str) -> None:
        self.layout = layout(path)


class NoWorker:
    """Which cannot be made: what has come so far is past the look."""

    def __init__(self, *_: object) -> None:
        raise RuntimeError("no worker")


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("participant.worker.worker.Worker", NoWorker)
    monkeypatch.setattr(task, "write_lines", lambda *_, **__: None)
    yield


def test_only_a_slots_first_worker_looks_for_an_outage_later_is_waited_out(tmp_path: Path) -> None:
    died: list[Ended] = []

    def note(ended: Ended) -> None:
        died.append(ended)
        if len(died) == 2:
            slot.end()

    context: Any = Context()
    spec: Any = Spec(str(tmp_path / "nowhere"))
    slot = Slot(context, spec, 3, log_level="INFO", died=note)
    slot.start()
    assert slot.join(10)
    assert [one.elsewhere for one in died] == [True, False]
    assert "is not the one that the driver has" in died[0].reason and "no worker" in died[1].reason
