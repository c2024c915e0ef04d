"""A table lock is taken over where its holder is proved dead, and only then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from table.errors import Unavailable
from table.hudi.driver.holder import (
    FREE_MARGIN_S,
    FREED,
    FREED_LIVES_S,
    HELD_BY,
    LOCK,
    UNSAID_S,
    WORDS,
    LockHolder,
    process_of,
)
from table.store.local import LocalStore

EXPIRE_S = 60.0


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Another process, which holds the lock in these tests."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait(10)


def successor(folder: Path) -> LockHolder:
    return LockHolder(LocalStore(folder), os.getpid(), expire_s=EXPIRE_S)


def lock(folder: Path, pid: int, taken: int = 1, **changed: str) -> None:
    """The file as Hudi makes it, held by that process, which has taken it so often."""
    process = process_of(pid)
    assert process is not None
    said = " ".join([*({**process, **changed}[word] for word in WORDS), str(taken)])
    (folder / LOCK).write_text(json.dumps({"lockCreateTime": "", "lockThreadName": f"{HELD_BY}{said}"}))


def die(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(10)


def test_the_lock_of_a_dead_holder_is_removed_once(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    lock(tmp_path, other.pid)
    die(other)
    assert successor(tmp_path).free_if_dead()
    assert not (tmp_path / LOCK).exists()
    assert not successor(tmp_path).free_if_dead()


def test_of_several_that_find_a_dead_holder_one_removes_its_lock(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    lock(tmp_path, other.pid)
    die(other)
    with ThreadPoolExecutor(8) as pool:
        freed = list(pool.map(lambda one: one.free_if_dead(), [successor(tmp_path) for _ in range(8)]))
    assert freed.count(True) == 1


def test_who_comes_late_leaves_the_lock_to_whoever_was_to_remove_it(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    """Between his look and his removal somebody else may have taken it."""
    lock(tmp_path, other.pid)
    content = (tmp_path / LOCK).read_bytes()
    die(other)
    assert successor(tmp_path).free_if_dead()
    (tmp_path / LOCK).write_bytes(content)  # he has looked before
    assert not successor(tmp_path).free_if_dead()
    assert (tmp_path / LOCK).exists()


def test_a_living_holder_keeps_its_lock_even_while_it_is_stopped(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    lock(tmp_path, other.pid)
    assert not successor(tmp_path).free_if_dead()
    other.send_signal(signal.SIGSTOP)
    assert not successor(tmp_path).free_if_dead()
    assert (tmp_path / LOCK).exists()


def test_the_lock_that_another_has_taken_meanwhile_is_left_alone(
    tmp_path: Path, other: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(tmp_path, other.pid)
    die(other)
    create = LocalStore.create

    def taken(store: LocalStore, path: str, data: bytes = b"") -> bool:
        lock(tmp_path, os.getpid())
        return create(store, path, data)

    monkeypatch.setattr(LocalStore, "create", taken)
    assert not successor(tmp_path).free_if_dead()
    assert (tmp_path / LOCK).exists()


@pytest.mark.parametrize(("left_s", "freed"), [(FREE_MARGIN_S - 1, False), (FREE_MARGIN_S + 1, True)])
def test_a_lock_that_expires_soon_is_left_to_that(
    tmp_path: Path, other: subprocess.Popen[bytes], left_s: float, freed: bool
) -> None:
    lock(tmp_path, other.pid)
    die(other)
    taken_s = time.time() - EXPIRE_S + left_s
    os.utime(tmp_path / LOCK, (taken_s, taken_s))
    assert successor(tmp_path).free_if_dead() is freed


@pytest.mark.parametrize("name", ["boot", "namespace"])
def test_a_holder_of_another_machine_or_container_cannot_be_judged(
    tmp_path: Path, other: subprocess.Popen[bytes], name: str
) -> None:
    lock(tmp_path, other.pid, **{name: "elsewhere"})
    die(other)
    assert not successor(tmp_path).free_if_dead()


def test_a_process_that_got_the_dead_holders_number_is_not_taken_for_it(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    lock(tmp_path, other.pid, started="1")
    assert successor(tmp_path).free_if_dead()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"lockThreadName": 3}',
        b'{"lockThreadName": "main"}',
        b'{"lockThreadName": "lockstep 1 2 3"}',
        b'{"lockThreadName": "lockstep pid 4711 5"}',
    ],
)
def test_a_lock_that_names_no_process_of_ours_proves_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LOCK).write_bytes(content)
    assert not successor(tmp_path).free_if_dead()
    assert [one.name for one in tmp_path.iterdir()] == [LOCK]


def test_without_a_lock_nothing_is_written(tmp_path: Path) -> None:
    assert not successor(tmp_path).free_if_dead()
    assert list(tmp_path.iterdir()) == []


def test_who_was_to_remove_locks_of_long_ago_is_forgotten(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    long_ago_s = time.time() - FREED_LIVES_S - 1
    for name in (f"{FREED}old", f"{FREED}new"):
        (tmp_path / name).touch()
    os.utime(tmp_path / f"{FREED}old", (long_ago_s, long_ago_s))
    lock(tmp_path, other.pid)
    die(other)
    assert successor(tmp_path).free_if_dead()
    left = {one.name for one in tmp_path.iterdir()}
    assert len(left) == 2 and f"{FREED}new" in left and f"{FREED}old" not in left


@pytest.mark.parametrize(
    ("held_s", "said"), [(UNSAID_S + 1, "was taken 11 s ago"), (-1.0, "is not held any more")]
)
def test_who_hears_late_that_it_holds_the_lock_does_nothing_under_it(
    tmp_path: Path, held_s: float, said: str
) -> None:
    with pytest.raises(Unavailable, match=said):
        LockHolder(LocalStore(tmp_path), os.getpid(), held_s=lambda: held_s).check()


def test_who_hears_of_it_soon_goes_on(tmp_path: Path) -> None:
    LockHolder(LocalStore(tmp_path), os.getpid(), held_s=lambda: UNSAID_S - 1).check()
    LockHolder(LocalStore(tmp_path), os.getpid()).check()
