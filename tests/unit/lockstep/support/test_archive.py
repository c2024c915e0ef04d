"""The archive: bounded in size and in time, for its user's eyes, and never over what is there."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from lockstep.errors import ConfigError, Failed
from lockstep.support import parts as parts_module
from lockstep.support.archive import MANIFEST, MANIFEST_MAX, Archive, writing
from lockstep.support.collect import collect
from lockstep.support.parts import Found, Part, log_parts
from lockstep.support.redaction import Redactor, Secrets

NONE = Secrets(values=frozenset())


def archived(
    at_once: list[Part], in_turn: list[Part] | None = None, *, bytes_max: int = 10**8
) -> dict[str, str]:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as file:
        archive = Archive(file, Redactor(NONE), bytes_max=bytes_max)
        collect(archive, at_once, in_turn or [], NONE)
        archive.finish("heading")
    with zipfile.ZipFile(io.BytesIO(raw.getvalue())) as file:
        assert {info.external_attr >> 16 for info in file.infolist()} == {0o600}
        return {name: file.read(name).decode() for name in file.namelist()}


def part(name: str, gather: object, *, within_s: float = 60) -> Part:
    return Part(title=name, names={name: "what it is"}, within_s=within_s, gather=gather)  # type: ignore[arg-type]


def put(name: str, text: str) -> Part:
    return part(name, lambda found: found.members.update({name: text}))


def test_the_listing_says_what_is_in_it_and_what_is_not() -> None:
    def fails(_found: Found) -> None:
        raise Failed("the store is\naway")

    members = archived([put("a.txt", "hello"), part("b.txt", fails), part("c.txt", lambda _found: None)])
    assert set(members) == {"a.txt", MANIFEST}
    listing = members[MANIFEST]
    assert "a.txt  5 B  what it is" in listing
    assert "b.txt: the store is away" in listing and "c.txt: there is nothing" in listing
    assert "Look through it before you send it." in listing


def test_a_part_that_hangs_costs_its_time_and_what_it_had_is_kept() -> None:
    released = threading.Event()

    def hangs(found: Found) -> None:
        found.members["a.txt"] = "so far"
        released.wait(60)

    try:
        members = archived([part("a.txt", hangs, within_s=0.2), put("b.txt", "b")])
    finally:
        released.set()
    assert members["a.txt"] == "so far" and members["b.txt"] == "b"
    assert "a.txt: it took longer than 0 s" in members[MANIFEST]


def test_what_is_too_large_together_is_cut_and_the_listing_says_so() -> None:
    members = archived(
        [put("a", "x" * 600), put("b", "y" * 600), put("c", "z")], bytes_max=MANIFEST_MAX + 1_000
    )
    assert [len(members[name]) for name in "abc"] == [600, 400, 0]
    assert "b: cut to 400 B" in members[MANIFEST] and "c: cut to 0 B" in members[MANIFEST]


def test_of_a_log_its_end_is_taken_from_a_whole_line_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "LOG_BYTES_MAX", 20)
    log = tmp_path / "my run (1).log"
    log.write_text("first line of it\nsecond line\nthird\n")
    members = archived([], log_parts((log,)))
    assert members["logs/1-my_run__1_.log"] == "second line\nthird\n"
    assert "bytes" in members[MANIFEST]


def test_a_log_that_is_none_is_listed_as_missing_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    names = ("pipe", "not-there", ".")
    members = archived([], log_parts(tuple(tmp_path / name for name in names)))
    assert set(members) == {MANIFEST}
    assert "is no file" in members[MANIFEST] and "not-there" in members[MANIFEST]


def test_only_its_user_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    before = os.umask(0)
    try:
        with writing(path, force=False) as file:
            file.writestr("a", "b")
            (half,) = tmp_path.iterdir()
            assert half != path and stat.S_IMODE(half.stat().st_mode) == 0o600
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["a.zip"]


def test_nothing_is_replaced_but_by_force(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_text("precious")
    with pytest.raises(ConfigError, match="is there already"), writing(path, force=False):
        raise AssertionError
    assert path.read_text() == "precious"
    with writing(path, force=True) as file:
        file.writestr("a", "b")
    assert zipfile.is_zipfile(path) and stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("links", [True, False])
def test_what_appears_under_its_name_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def unknown(*_given: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", unknown)
    path = tmp_path / "a.zip"
    with writing(path, force=False) as file:
        file.writestr("a", "b")
    assert zipfile.is_zipfile(path)
    path.unlink()
    with pytest.raises(ConfigError, match="is there already"), writing(path, force=False) as file:
        path.write_text("precious")
    assert [one.read_text() for one in tmp_path.iterdir()] == ["precious"]


WRITES = """
import signal, sys, time
from pathlib import Path
from lockstep.support.archive import writing
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
with writing(Path(sys.argv[1]), force=False) as file:
    file.writestr("a", "b")
    print("half", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_is_told_to_end_half_way_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "a.zip"
    running = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with running:
        assert running.stdout is not None and running.stdout.readline() == "half\n"
        assert not path.exists()
        running.send_signal(number)
        assert running.wait(30) != 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("force", [False, True])
def test_an_archive_that_fails_leaves_what_was_there(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "a.zip"
    if force:
        path.write_text("precious")
    with pytest.raises(Failed, match="cannot be written"), writing(path, force=force):
        raise OSError(28, "No space left on device")
    assert [one.read_text() for one in tmp_path.iterdir()] == ["precious"] * force


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    for force in (False, True):
        path = tmp_path / "no" / "a.zip"
        with pytest.raises((ConfigError, Failed), match="cannot be written"), writing(path, force=force):
            raise AssertionError
