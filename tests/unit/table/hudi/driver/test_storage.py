"""Which file system holds a folder, by the text of /proc/mounts, and whether it can be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from table.hudi.driver.storage import file_system, is_of_one_machine, unwritable
from table.hudi.upkeep.drafts import is_draft
from table.store.local import LocalStore

MOUNTS = """\
rootfs / rootfs rw 0 0
/dev/vda / ext4 rw,relatime 0 0
server:/lake /lake nfs4 rw 0 0
/dev/vdb /lake/local xfs rw 0 0
share /with\\040blank cifs rw 0 0
a b
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/data/events", "ext4"),
        ("/lake", "nfs4"),
        ("/lake/events", "nfs4"),
        ("/lakeside", "ext4"),
        ("/lake/local/events", "xfs"),
        ("/with blank/events", "cifs"),
    ],
)
def test_the_innermost_mount_holds_a_folder(path: str, kind: str) -> None:
    assert file_system(MOUNTS, path) == kind


def test_nothing_is_known_without_mounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert file_system("", "/data") == ""
    monkeypatch.setattr("table.hudi.driver.storage.MOUNTS", tmp_path / "missing")
    assert not is_of_one_machine("/")


def test_what_was_written_to_see_whether_a_folder_can_be_is_swept_where_it_stays(tmp_path: Path) -> None:
    class Dying(LocalStore):
        def delete(self, path: str) -> bool:
            raise OSError(5, "died before it removed the file")

    assert unwritable(Dying(str(tmp_path))) == ""
    (left,) = tmp_path.iterdir()
    assert is_draft(left.name)
    assert unwritable(LocalStore(str(tmp_path))) == "" and list(tmp_path.iterdir()) == [left]
