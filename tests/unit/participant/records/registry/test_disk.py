"""Schemas in files: whole or none, bounded, and no reason to fail."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from participant.records.registry import disk
from participant.records.registry.disk import KeptSchemas, folder_of


def test_what_is_kept_is_read_as_it_was_and_by_others(tmp_path: Path) -> None:
    kept = KeptSchemas(tmp_path / "a" / "b")
    assert kept.read("7") is None
    kept.write("7", ('"string"', "{ä}"))
    assert KeptSchemas(kept.folder).read("7") == ('"string"', "{ä}")
    assert os.listdir(kept.folder) == ["7.json"], "something is left beside it"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"schemas":[],"sha256":""}',
        b'{"schemas":[5],"sha256":"x"}',
        b"\xff",
        b"[" * 99_999,
    ],
)
def test_a_damaged_file_is_as_none_and_is_written_anew(tmp_path: Path, content: bytes) -> None:
    kept = KeptSchemas(tmp_path)
    kept.path("7").write_bytes(content)
    assert kept.read("7") is None
    kept.write("7", ('"string"',))
    assert kept.read("7") == ('"string"',)


def test_a_file_that_says_something_else_than_was_written_is_as_none(tmp_path: Path) -> None:
    kept = KeptSchemas(tmp_path)
    kept.write("7", ('"string"',))
    kept.path("7").write_text(kept.path("7").read_text().replace("string", "strinh"))
    assert kept.read("7") is None


def test_the_oldest_goes_where_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "FILES_MAX", 3)
    kept = KeptSchemas(tmp_path)
    for number in range(5):
        kept.write(str(number), ('"string"',))
        os.utime(kept.path(str(number)), (number, number))
    assert sorted(os.listdir(tmp_path)) == ["2.json", "3.json", "4.json"]


def test_what_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptSchemas(tmp_path)
    kept.write("7", ('"string"',))
    monkeypatch.setattr(disk, "FILE_BYTES_MAX", 50)
    kept.write("8", ("x" * 50,))
    assert kept.read("7") is None and kept.read("8") is None


def test_a_folder_that_cannot_be_used_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept = KeptSchemas(tmp_path / "file" / "schemas")
    with caplog.at_level(logging.WARNING):
        kept.write("7", ('"string"',))
        assert kept.read("7") is None
    (said,) = caplog.messages
    assert "set registry.cache_folder to a folder that can be written" in said


def test_the_folder_is_the_caches_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", "/somewhere")
    assert folder_of("", ["http://a"]).parent == Path("/somewhere/schemas")
    monkeypatch.delenv("LOCKSTEP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert folder_of("", ["http://a"]).parent == Path("/cache/lockstep/schemas")
