"""A copy of a table for a reader that does not know its store; of data files as long as they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from table.hudi.reader.mirror import Mirror
from table.store.local import LocalStore

DATA = b"rows" * 1_000


@pytest.fixture
def table(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path / "table")
    for folder in (".hoodie/timeline", ".hoodie/metadata/files", "a/b"):
        store.make_folder(folder)
    store.put(".hoodie/timeline/1.commit", b"{}")
    store.put(".hoodie/metadata/files/x.hfile", b"index")
    store.put("a/b/.hoodie_partition_metadata", b"depth")
    store.put("a/b/one.parquet", DATA)
    store.put("a/b/two.parquet", DATA)
    return store


def test_hudis_own_files_are_whole_and_of_data_files_those_that_are_held(table: LocalStore) -> None:
    mirror = Mirror(table)
    root = Path(mirror.folder)
    assert (root / ".hoodie/timeline/1.commit").read_bytes() == b"{}"
    assert (root / ".hoodie/metadata/files/x.hfile").read_bytes() == b"index"
    assert (root / "a/b/.hoodie_partition_metadata").read_bytes() == b"depth"
    assert sorted(mirror.files) == ["a/b/one.parquet", "a/b/two.parquet"]
    one, two = (root / path for path in sorted(mirror.files))
    with mirror.held(["a/b/one.parquet"]):
        assert one.read_bytes() == DATA and two.read_bytes() == bytes(len(DATA))
    assert one.read_bytes() == bytes(len(DATA))


def test_it_goes_when_nobody_holds_it(table: LocalStore) -> None:
    mirror = Mirror(table)
    root = Path(mirror.folder)
    assert root.exists()
    del mirror
    assert not root.exists()
