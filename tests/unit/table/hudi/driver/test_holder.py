"""A table lock is taken over where its holder is proved dead, and only then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from table.errors import Unavailable
from table.hudi.driver.holder import NOTE, UNSAID_S, LockHolder
from table.store.local import LocalStore


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Another process, which holds the lock in these tests."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait(10)


def locked(folder: Path, holder: int) -> LockHolder:
    """The lock is there and noted; what a later driver in this process makes of it."""
    (folder / "lock").touch()
    LockHolder(LocalStore(folder), holder).note()
    return LockHolder(LocalStore(folder), os.getpid())


def die(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(10)


def test_the_lock_of_a_dead_holder_is_removed_once(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    successor = locked(tmp_path, other.pid)
    die(other)
    assert successor.free_if_dead()
    assert not (tmp_path / "lock").exists()
    assert not successor.free_if_dead()


def test_a_living_holder_keeps_its_lock_even_while_it_is_stopped(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    successor = locked(tmp_path, other.pid)
    assert not successor.free_if_dead()
    other.send_signal(signal.SIGSTOP)
    assert not successor.free_if_dead()
    assert (tmp_path / "lock").exists()


def test_the_lock_that_somebody_else_took_after_the_dead_holder_is_left_alone(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    successor = locked(tmp_path, other.pid)
    die(other)
    (tmp_path / "foreign").touch()  # beside the old one, so that it cannot get its inode
    os.replace(tmp_path / "foreign", tmp_path / "lock")
    assert not successor.free_if_dead()
    assert (tmp_path / "lock").exists()


@pytest.mark.parametrize("name", ["boot", "namespace"])
def test_a_holder_of_another_machine_or_container_cannot_be_judged(
    tmp_path: Path, other: subprocess.Popen[bytes], name: str
) -> None:
    successor = locked(tmp_path, other.pid)
    die(other)
    said = json.loads((tmp_path / NOTE).read_text())
    said["process"][name] = "elsewhere"
    (tmp_path / NOTE).write_text(json.dumps(said))
    assert not successor.free_if_dead()


def test_a_process_that_got_the_dead_holders_number_is_not_taken_for_it(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    successor = locked(tmp_path, other.pid)
    said = json.loads((tmp_path / NOTE).read_text())
    said["process"]["started"] = "1"
    (tmp_path / NOTE).write_text(json.dumps(said))
    assert successor.free_if_dead()


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b"null", b'{"lock": [1, 2], "process": 3}', b"\xff"])
def test_a_damaged_note_proves_nothing(tmp_path: Path, note: bytes) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / NOTE).write_bytes(note)
    assert not LockHolder(LocalStore(tmp_path), os.getpid()).free_if_dead()


def test_without_a_lock_nothing_is_written(tmp_path: Path) -> None:
    holder = LockHolder(LocalStore(tmp_path), os.getpid())
    holder.note()
    assert not holder.free_if_dead()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("held_s", "said"), [(UNSAID_S + 1, "was taken 11 s ago"), (-1.0, "is not held any more")]
)
def test_who_hears_late_that_it_holds_the_lock_does_nothing_under_it(
    tmp_path: Path, held_s: float, said: str
) -> None:
    (tmp_path / "lock").touch()
    holder = LockHolder(LocalStore(tmp_path), os.getpid(), held_s=lambda: held_s)
    with pytest.raises(Unavailable, match=said):
        holder.note()
    assert not (tmp_path / NOTE).exists()


def test_who_hears_of_it_soon_goes_on(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    LockHolder(LocalStore(tmp_path), os.getpid(), held_s=lambda: UNSAID_S - 1).note()
    assert (tmp_path / NOTE).exists()
