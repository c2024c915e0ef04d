"""Whether a table is there, and what is taken for one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from table.errors import Refused, Unavailable
from table.hudi.driver.presence import REWRITTEN_S, check_whole, died_over_properties, is_new
from table.hudi.layout import META_FOLDER, PROPERTIES
from table.store.local import LocalStore

WRITTEN, BACKUP = PROPERTIES


def put(folder: Path, name: str, *, old_s: float = 0.0) -> None:
    path = folder / META_FOLDER / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    os.utime(path, (time.time() - old_s,) * 2)


def test_what_is_missing_or_empty_is_new(tmp_path: Path) -> None:
    assert is_new(LocalStore(tmp_path / "none"))
    assert is_new(LocalStore(tmp_path))


def test_what_begins_with_a_dot_is_nobodys_data(tmp_path: Path) -> None:
    (tmp_path / ".lockstep").mkdir()
    assert is_new(LocalStore(tmp_path))


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_table_has_properties_or_their_backup(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    assert not is_new(LocalStore(tmp_path))


def test_a_folder_that_holds_something_else_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(Refused, match=r"holds letters\.txt and is no Hudi table"):
        is_new(LocalStore(tmp_path))


def test_a_file_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="is a file: give a folder"):
        is_new(LocalStore(tmp_path / "file"))


@pytest.mark.parametrize(
    ("names", "old_s", "died"),
    [
        ((WRITTEN,), 2 * REWRITTEN_S, False),
        ((WRITTEN, BACKUP), 2 * REWRITTEN_S, False),
        ((BACKUP,), 0.0, False),  # somebody may be at it
        ((BACKUP,), 2 * REWRITTEN_S, True),
        ((), 0.0, False),
    ],
)
def test_only_a_backup_that_has_been_alone_for_long_says_that_its_writer_died(
    tmp_path: Path, names: tuple[str, ...], old_s: float, died: bool
) -> None:
    for name in names:
        put(tmp_path, name, old_s=old_s)
    assert died_over_properties(LocalStore(tmp_path)) is died


@pytest.mark.parametrize(
    ("content", "backup", "old_s", "instants", "sentence"),
    [
        (b"hoodie.table.name=t\nhoodie.table.checksum=1\n", False, 0.0, (), ""),
        (b"", True, 0.0, (), ""),  # Hudi takes the backup
        (b"", False, 0.0, (), "somebody may be making the table just now"),
        (b"hoodie.tab", False, 2 * REWRITTEN_S, (), "Nothing was ever committed to it: remove"),
        (b"", False, 2 * REWRITTEN_S, ("20260101000000000.commit",), "the table has commits"),
        (b"", False, 2 * REWRITTEN_S, ("timeline/20260101000000000_2.commit",), "the table has commits"),
    ],
)
def test_properties_that_are_not_whole_are_told_apart_by_who_may_be_at_it_and_what_is_lost(
    tmp_path: Path, content: bytes, backup: bool, old_s: float, instants: tuple[str, ...], sentence: str
) -> None:
    meta = tmp_path / META_FOLDER
    (meta / "timeline").mkdir(parents=True)
    for name in instants:
        (meta / name).write_bytes(b"")
    if backup:
        put(tmp_path, BACKUP)
    (meta / WRITTEN).write_bytes(content)
    os.utime(meta / WRITTEN, (time.time() - old_s,) * 2)
    if not sentence:
        check_whole(LocalStore(tmp_path))
    else:
        with pytest.raises((Refused, Unavailable), match=sentence):
            check_whole(LocalStore(tmp_path))
