"""What `lockstep validate` asks of a store, on a file system and on a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.stores.local import S3Server, secret_of
from table.store import probe as probe_module
from table.store.location import store_at
from table.store.objects.settings import FixedKeys, ObjectSettings
from table.store.port import Store
from table.store.probe import PREFIX, probe
from tests.s3_fixture import new_place

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]
ALL = (
    *("write a file", "read it", "list it", "put a file only where there is none", "delete it"),
    "list unfinished uploads",
)


def failures(path: str, settings: ObjectSettings | None) -> dict[str, str]:
    tried = list(probe(path, settings))
    assert [one.what for one in tried] == list(ALL)
    return {one.what: one.why_not for one in tried if one.why_not}


def test_all_that_a_table_asks_can_be_done_and_nothing_is_left(s3: S3Server, tmp_path: Path) -> None:
    place = new_place()
    assert failures(place, s3.settings) == {}
    assert not list(store_at(place, settings=s3.settings).walk())
    assert failures(f"file://{tmp_path}/not/there/yet", None) == {}
    assert list(tmp_path.iterdir()) == []


def test_whoever_may_only_read_is_told_which_permissions_are_missing(s3: S3Server) -> None:
    reader = replace(s3.settings, credentials=FixedKeys("reader", secret_of("reader")))
    found = failures(new_place(), reader)
    assert "s3:PutObject" in found["write a file"]
    assert "s3:PutObject" in found["put a file only where there is none"]
    assert secret_of("reader") not in str(found)


def test_what_is_not_there_and_whoever_is_nobody_is_named(s3: S3Server) -> None:
    found = failures("s3a://no-such-bucket/t", s3.settings)
    assert "there is no bucket no-such-bucket" in found["write a file"]
    nobody = replace(s3.settings, credentials=FixedKeys("nobody", "wrong"))
    assert "nobody has this access key" in failures(new_place(), nobody)["write a file"]


def test_a_folder_where_nothing_may_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = failures(f"file://{tmp_path}/file", None)
    assert found["write a file"] == "Not a directory"


class Unconditional:
    """A server that knows no conditions: it puts all the same, and says yes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def create(self, path: str, data: bytes = b"") -> bool:
        self._store.put(path, data)
        return True


@pytest.fixture
def unconditional(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    right = probe_module.store_at
    monkeypatch.setattr(
        probe_module, "store_at", lambda *given, **named: Unconditional(right(*given, **named))
    )
    yield


@pytest.mark.usefixtures("unconditional")
def test_a_server_that_keeps_no_conditions_is_refused(s3: S3Server) -> None:
    found = failures(new_place(), s3.settings)
    assert list(found) == ["put a file only where there is none"]
    assert "without which no table is safe in it" in str(found)
    assert PREFIX not in str(found)
