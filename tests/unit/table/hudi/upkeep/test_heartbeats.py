"""What Hudi leaves of heartbeats, and what is said where it may not be removed."""

from __future__ import annotations

import pytest

from table.hudi.layout import HEARTBEATS
from table.hudi.upkeep.heartbeats import Heartbeats
from table.memory.store import MemoryStore


class Kept(MemoryStore):
    refuses = True

    def delete(self, path: str) -> bool:
        if self.refuses and self.stat(path) is not None:
            raise PermissionError(13, "it may not be deleted", path)
        return super().delete(path)


def test_what_is_left_is_removed_once_it_may_be_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    store = Kept()
    store.make_folder(HEARTBEATS)
    heartbeats = Heartbeats(store)
    heartbeats.completed("gone")
    heartbeats.clear()
    assert caplog.messages == []
    for instant in ("1", "2", "3"):
        store.put(f"{HEARTBEATS}/{instant}", b"")
        heartbeats.completed(instant)
        heartbeats.clear()
    (said,) = caplog.messages
    assert f"{HEARTBEATS}/1" in said and "it may not be deleted" in said
    store.refuses = False
    store.put(f"{HEARTBEATS}/open", b"")
    heartbeats.clear()
    assert store.names(HEARTBEATS) == ["open"]
    assert "again" in caplog.messages[1]


def test_of_many_that_are_left_a_few_are_removed_at_once_for_whoever_wants_the_table_waits() -> None:
    store = Kept()
    store.make_folder(HEARTBEATS)
    heartbeats = Heartbeats(store)
    for number in range(100):
        store.put(f"{HEARTBEATS}/{number}", b"")
        heartbeats.completed(str(number))
    store.refuses = False
    heartbeats.clear()
    assert 50 < len(store.names(HEARTBEATS)) < 100
    for _ in range(20):
        heartbeats.clear()
    assert store.names(HEARTBEATS) == []
