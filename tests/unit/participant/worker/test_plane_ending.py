"""While files are being ended a plane goes on with other things, and answers once they are durable."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from control_topic.messages import SourcePartition
from participant import events as ev
from participant.records.raw import RawBatch, Values
from participant.source.fetched import Fetched
from participant.worker.memory import MemoryBudget
from participant.worker.plane import Plane
from participant.worker.stages import stages
from table.store.local import LocalStore
from tests.harness import await_that
from tests.unit.participant.worker.test_plane import LAYOUT, NOBODY

DEADLINE_S = 30.0
P0 = SourcePartition("events", 0)
RECORDS = 100


@dataclass
class Disk:
    """The real one, which takes as long as it is told to."""

    free: Event
    asked: Event
    refuses: bool = False
    times: int = 0
    """So often it was asked to keep something."""


@dataclass
class Site:
    root: Path
    plane: Plane
    disk: Disk
    said: queue.Queue[Any]
    following: int = 0
    days: int = 1

    def read(self) -> None:
        """The next records are decoded."""
        start, self.following = self.following, self.following + RECORDS
        numbers = range(start, self.following)
        values: list[bytes | None] = [b'{"id":"%d","day":"%d"}' % (n, n % self.days) for n in numbers]
        offsets = np.arange(start, self.following, dtype=np.int64)
        raw = RawBatch(
            partition=P0, offsets=offsets, timestamps_ms=np.zeros_like(offsets), values=Values.of(values)
        )
        assert self.plane.deliver(
            Fetched(partition=P0, generation=1, start=start, next=self.following, raw=raw)
        )
        buffered = self.answer()
        assert isinstance(buffered, ev.Buffered) and buffered.next == self.following

    def write(self, transaction: str) -> None:
        """All that is read, to the files of a transaction that is flushed."""
        instant = f"2026112600000000{transaction[1:]}"
        self.plane.order(ev.Open(transaction=transaction, instant=instant))
        self.plane.order(ev.Write(transaction=transaction, partition=P0, generation=1, upto=self.following))
        self.plane.order(ev.Flush(call=int(transaction[1:]), transaction=transaction))

    def answer(self) -> Any:
        """The next event that is not about how far files are."""
        while isinstance(event := self.said.get(timeout=DEADLINE_S), ev.Wrote):
            pass
        return event

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.glob("*/*.parquet"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    (tmp_path / ".hoodie").mkdir()
    disk, secure = Disk(Event(), Event()), LocalStore.secure

    def waits(self: LocalStore, path: str) -> int:
        disk.times += 1
        disk.asked.set()
        assert disk.free.wait(DEADLINE_S)
        if disk.refuses:
            raise OSError(5, "the disk is broken", path)
        return secure(self, path)

    monkeypatch.setattr(LocalStore, "secure", waits)
    said: queue.Queue[Any] = queue.Queue()
    memory = MemoryBudget(64_000_000)
    layout = replace(LAYOUT, path=str(tmp_path), ddl="id STRING, day STRING", partition_fields=("day",))
    plane = Plane(
        stages=stages(layout=layout, slot=0, incarnation="i", memory=memory),
        queued_bytes_max=memory.queued_bytes,
        dead_letters=None,
        post=said.put,
        now_ms=lambda: 0,
        callbacks=NOBODY,
    )
    plane.order(ev.Rewind(partition=P0, offset=0, generation=1))
    plane.start()
    yield Site(tmp_path, plane, disk, said)
    disk.free.set()
    assert plane.stop(DEADLINE_S)


def test_records_of_the_next_transaction_are_decoded_while_files_are_being_ended(site: Site) -> None:
    site.read()
    site.write("t1")
    assert site.disk.asked.wait(DEADLINE_S)
    site.read()
    site.read()
    site.disk.free.set()
    flushed = site.answer()
    assert isinstance(flushed, ev.Flushed) and flushed.outcome is ev.Outcome.SUCCEEDED, flushed
    assert flushed.call == 1 and [file.rows for file in flushed.files] == [RECORDS]
    site.write("t2")
    flushed = site.answer()
    assert flushed.call == 2 and [file.rows for file in flushed.files] == [2 * RECORDS]


def test_files_of_many_table_partitions_are_ended_while_records_are_decoded(site: Site) -> None:
    """Not only of as many as storage ends at once."""
    site.days = RECORDS
    site.read()
    site.write("t1")
    assert site.disk.asked.wait(DEADLINE_S)
    site.read()
    site.disk.free.set()
    flushed = site.answer()
    assert flushed.outcome is ev.Outcome.SUCCEEDED and len(flushed.files) == RECORDS
    assert site.files() == sorted(file.path for file in flushed.files)


def test_of_files_that_are_given_up_only_those_are_awaited_whose_end_has_begun(site: Site) -> None:
    site.days = RECORDS
    site.read()
    site.write("t1")
    assert site.disk.asked.wait(DEADLINE_S)
    site.read()
    site.plane.order(ev.Discard(transaction="t1"))
    assert site.answer().outcome is ev.Outcome.FAILED
    site.disk.free.set()
    site.read()  # behind the order to discard
    assert site.files() == [] and site.disk.times <= 2 * LocalStore.capabilities.ending_at_once


def test_nothing_is_answered_before_files_and_folders_are_durable(site: Site) -> None:
    site.read()
    site.write("t1")
    assert site.disk.asked.wait(DEADLINE_S)
    site.plane.order(ev.Rewind(partition=P0, offset=0, generation=2))  # obeyed, and nothing is said of it
    assert site.said.empty() or isinstance(site.said.get(), ev.Wrote)
    assert site.files(), "it is there, and not yet safe"
    site.disk.free.set()
    assert site.answer().outcome is ev.Outcome.SUCCEEDED


def test_what_is_given_up_while_its_files_are_being_ended_is_answered_and_they_are_removed(
    site: Site,
) -> None:
    site.read()
    site.write("t1")
    assert site.disk.asked.wait(DEADLINE_S)
    site.plane.order(ev.Discard(transaction="t1"))
    flushed = site.answer()
    assert (flushed.call, flushed.outcome, flushed.final) == (1, ev.Outcome.FAILED, False)
    site.disk.free.set()
    site.read()  # behind the order to discard
    assert site.files() == []
    site.write("t2")
    flushed = site.answer()
    assert flushed.outcome is ev.Outcome.SUCCEEDED and [file.rows for file in flushed.files] == [RECORDS]


def test_a_disk_that_fails_while_files_are_being_ended_leaves_it_unknown_with_its_own_words(
    site: Site,
) -> None:
    site.read()
    site.write("t1")
    assert site.disk.asked.wait(DEADLINE_S)
    site.read()
    site.disk.refuses = True
    site.disk.free.set()
    flushed = site.answer()
    assert flushed.outcome is ev.Outcome.UNKNOWN and "the disk is broken" in flushed.reason


def test_time_in_which_a_plane_has_nothing_to_do_but_await_its_files_is_storage_s(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow store is to be seen as one: docs/alerts.md, where records wait for long."""
    site.read()
    site.write("t1")
    assert site.disk.asked.wait(DEADLINE_S)
    monkeypatch.setattr("participant.worker.plane.IDLE_S", 0.01)
    seconds = site.plane.meters.seconds
    before = dict(seconds)
    await_that("storage's time", lambda: seconds["upload"] > before["upload"] + 0.05)
    assert seconds["wait"] == before["wait"]


def test_a_plane_that_is_stopped_answers_first_what_it_was_ordered_to_flush(site: Site) -> None:
    site.read()
    site.write("t1")
    assert site.disk.asked.wait(DEADLINE_S)
    site.disk.free.set()
    assert site.plane.stop(DEADLINE_S)
    flushed = site.answer()
    assert flushed.outcome is ev.Outcome.SUCCEEDED
    assert site.files() == [file.path for file in flushed.files]
