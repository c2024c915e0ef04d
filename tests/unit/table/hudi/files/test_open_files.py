"""Files that are open: what they hold of memory together, and which of them is ended for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Event, Thread

import pytest

from control_topic.messages import DataFile
from table.hudi.files.durable import Files
from table.hudi.files.open_files import OpenFiles
from table.memory.store import MemoryStore
from tests.harness import await_that


def ended_at_once() -> Event:
    event = Event()
    event.set()
    return event


@dataclass(eq=False)
class Opened:
    path: str
    held_bytes: int = 0
    fails: bool = False
    may_end: Event = field(default_factory=ended_at_once)
    began: Event = field(default_factory=Event, init=False)
    abandoned: bool = field(default=False, init=False)

    def end(self) -> DataFile:
        self.began.set()
        assert self.may_end.wait(30)
        if self.fails:
            raise OSError("the disk is full")
        return DataFile(path=self.path, body="", table_partition="", rows=0, size_bytes=self.held_bytes)

    def abandon(self) -> None:
        self.abandoned = True


def opened(bytes_max: int) -> OpenFiles[str, Opened]:
    return OpenFiles(Files(MemoryStore(), "20261122051234567"), bytes_max)


def hold(files: OpenFiles[str, Opened], name: str, held_bytes: int) -> None:
    if files.get(name) is None:
        files.add(name, Opened(name))
    file = files.get(name)
    assert file is not None
    file.held_bytes = held_bytes
    files.grown(name)


def test_the_file_that_holds_most_is_ended_when_all_together_hold_too_much() -> None:
    files = opened(100)
    for name, held_bytes in (("a", 40), ("b", 50), ("c", 10)):
        hold(files, name, held_bytes)
    assert files.held_bytes == 100 and len(files) == 3
    hold(files, "c", 11)
    assert list(files) == ["a", "c"] and files.held_bytes == 51
    assert [one.path for one in files.ended] == ["b"]


def test_one_file_may_always_be_open_and_it_is_not_ended_for_itself() -> None:
    files = opened(100)
    hold(files, "a", 1_000)
    assert list(files) == ["a"]
    hold(files, "b", 1)
    assert list(files) == ["b"] and [one.path for one in files.ended] == ["a"]


@pytest.mark.parametrize("open_at_once", [1, 50])
@pytest.mark.parametrize("at_once", [1, 32])
def test_files_that_are_being_ended_are_as_many_as_the_store_likes_and_come_out_in_their_order(
    at_once: int, open_at_once: int
) -> None:
    """And as many more as may be open, and are not."""
    store = MemoryStore()
    store.capabilities = replace(store.capabilities, ending_at_once=at_once, open_at_once=open_at_once)
    files: OpenFiles[str, Opened] = OpenFiles(Files(store, "20261122051234567"), 100)
    names = [f"{number:03}" for number in range(5 * at_once + 2 * open_at_once)]
    most, last = 0, names[-open_at_once:]
    for name in names:
        hold(files, name, 0)
        if name not in last:
            files.end(name)
        most = max(most, len(files._ending))
        assert len(files._ending) + len(files) <= 2 * at_once + open_at_once
    assert most == 2 * at_once + open_at_once - 1
    files.end_all()
    assert [one.path for one in files.ended] == names and files.held_bytes == 0


def test_of_what_is_given_up_nothing_more_is_ended_than_is_being_ended() -> None:
    store = MemoryStore()
    store.capabilities = replace(store.capabilities, ending_at_once=1)
    files: OpenFiles[str, Opened] = OpenFiles(Files(store, "20261122051234567"), 100)
    slow, waiting = Opened("slow", may_end=Event()), Opened("waiting")
    for file in (slow, waiting):
        files.add(file.path, file)
        files.end(file.path)
    assert slow.began.wait(30)
    over = Thread(target=files.abandon)
    over.start()
    await_that("word that it is to be no file", lambda: waiting.abandoned)
    assert not waiting.began.is_set()
    slow.may_end.set()
    over.join(30)
    assert not over.is_alive() and not waiting.began.is_set() and not files.ended


def test_what_is_given_up_is_let_go_of_also_where_its_end_has_failed() -> None:
    files = opened(100)
    left, failed = Opened("left"), Opened("failed", fails=True)
    for file in (left, failed):
        files.add(file.path, file)
    files.end("failed")
    files.abandon()
    assert left.abandoned and failed.abandoned and not files.ended


@pytest.mark.parametrize("held_bytes", [0, 7])
def test_a_place_goes_on_in_another_file_once_its_own_was_ended(held_bytes: int) -> None:
    files = opened(100)
    hold(files, "a", held_bytes)
    files.end("a")
    assert files.get("a") is None
    hold(files, "a", held_bytes)
    files.end_all()
    assert [one.path for one in files.ended] == ["a", "a"]
