"""Where a hook goes on after a restart."""

from __future__ import annotations

import json
import logging

import pytest

from lockstep.errors import Failed
from lockstep.hooks.commits import Mark
from lockstep.hooks.notes import HookNote, NoteUnreadable
from table.memory.store import MemoryStore

OLD, NEW = Mark(3, 100, "20260101000000000"), Mark(3, 200, "20260102000000000")
NEWER = Mark(3, 300, "20260103000000000")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def note(store: MemoryStore, *, hook: str = "webhook", pipeline: str = "events") -> HookNote:
    return HookNote(store, pipeline=pipeline, hook=hook)


def test_a_hook_begins_behind_the_newest_commit_and_that_is_noted_at_once(store: MemoryStore) -> None:
    assert note(store).begin(OLD) == OLD
    assert note(store).begin(NEW) == OLD


def test_it_goes_on_behind_what_was_delivered(store: MemoryStore) -> None:
    note(store).begin(OLD)
    note(store).write(NEW)
    assert note(store).begin(NEWER) == NEW


def test_pipelines_and_hooks_have_notes_of_their_own(store: MemoryStore) -> None:
    note(store).begin(OLD)
    assert note(store, hook="topic").begin(NEW) == NEW
    assert note(store, pipeline="others").begin(NEW) == NEW
    assert note(store).begin(NEW) == OLD


def test_a_table_that_ends_before_what_was_delivered_is_another_one(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    note(store).write(NEW)
    with caplog.at_level(logging.WARNING):
        assert note(store).begin(OLD) == OLD
    assert "restored" in caplog.text
    assert note(store).begin(NEW) == OLD


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b"[" * 4_000,
        b'{"version": 2}',
        json.dumps({"version": 1, "pipeline": "others", "delivered": OLD.to_json()}).encode(),
        json.dumps({"version": 1, "pipeline": "events", "delivered": {"epoch": "3"}}).encode(),
        json.dumps(
            {"version": 1, "pipeline": "events", "delivered": {**OLD.to_json(), "epoch": True}}
        ).encode(),
        json.dumps({"version": 1, "pipeline": "events", "delivered": [1]}).encode(),
    ],
)
def test_nobody_goes_on_without_a_note_that_cannot_be_read_and_nobody_writes_over_it(
    store: MemoryStore, said: bytes
) -> None:
    note(store).begin(OLD)
    (name,) = store.names("")
    store.put(name, said)
    for _ in range(2):
        with pytest.raises(NoteUnreadable, match=r"cannot be read .* delete it to begin anew"):
            note(store).begin(NEW)
    assert store.read(name, bytes_max=10_000) == said
    store.delete(name)
    assert note(store).begin(NEW) == NEW


def test_a_note_outlives_the_machines_power() -> None:
    asked: list[bool] = []

    class Power(MemoryStore):
        def put(self, path: str, data: bytes, *, durable: bool = False) -> None:
            asked.append(durable)
            super().put(path, data, durable=durable)

    store = Power()
    note(store).begin(OLD)
    note(store).write(NEW)
    assert asked == [True, True]


def test_a_store_that_does_not_serve_ends_the_start(store: MemoryStore) -> None:
    class Away(MemoryStore):
        def read(self, path: str, *, bytes_max: int) -> bytes:
            raise PermissionError(13, "Permission denied")

    with pytest.raises(Failed, match="Permission denied"):
        note(Away()).begin(OLD)
