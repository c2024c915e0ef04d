"""All hooks of a run, with real threads, a real HTTP server, and the table in memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from lockstep.hooks import courier
from lockstep.hooks.commits import Commit, TableTold
from lockstep.hooks.hooks import Hooks
from lockstep.hooks.port import Ending, HowEnded, Sink, SinkError
from lockstep.hooks.webhook import WebhookSink
from table.memory.reader import MemoryTableReader
from table.memory.store import MemoryStore
from tests.harness import await_that
from tests.hook_receiver import HANG, WELL, Receiver
from tests.unit.lockstep.hooks.memory_table import PIPELINE, Committed

SECRET = "correct-horse-battery-staple"
WELL_ENDED = Ending(how=HowEnded.WELL, reason="stopped")
TABLE = TableTold(path="memory:/events", name="events", kind="memory", mode="insert")


class World:
    """One table, one receiver, and the runs that tell it."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.table = Committed()
        self.store = MemoryStore()
        self.alarms: dict[str, str] = {}
        self._runs: list[Hooks] = []

    def webhook(self, *, timeout_s: float = 5.0) -> WebhookSink:
        headers = {"Authorization": f"Bearer {SECRET}"}
        url = f"{self.receiver.url}/hidden-path?token={SECRET}"
        return WebhookSink(url, headers, timeout_s=timeout_s, pipeline=PIPELINE, table=TABLE)

    def start(self, *sinks: Sink) -> Hooks:
        hooks = Hooks(
            sinks,
            pipeline=PIPELINE,
            store=self.store,
            open_reader=self.table.reader,
            newest=self.table.seen(),
            seen=self.table.seen,
            alarm=self._alarm,
        )
        hooks.start()
        self._runs.append(hooks)
        return hooks

    def _alarm(self, of: str, text: str, *, stands: bool) -> None:
        assert not stands, "no source partition waits for a hook"
        self.alarms[of] = text

    def close(self) -> None:
        for hooks in self._runs:
            hooks.finish(Ending(how=HowEnded.SUPERSEDED, reason=""))


@pytest.fixture
def world() -> Iterator[World]:
    with Receiver() as receiver:
        made = World(receiver)
        yield made
        made.close()


class Odd:
    """A sink that does whatever a test says."""

    name, place, newest_only, every_ms, patience_s = "odd", "nowhere", False, 0, 0.2

    def __init__(self, does: Callable[[], None]) -> None:
        self._does = does
        self.told: list[str] = []
        self.endings: list[Ending] = []

    def begin(self) -> None: ...

    def deliver(self, commit: Commit) -> None:
        self._does()
        self.told.append(commit.instant)

    def end(self, ending: Ending) -> None:
        self.endings.append(ending)

    def close(self) -> None: ...


def test_each_commit_is_told_in_its_order_with_its_transaction_as_the_key(world: World) -> None:
    world.table.commit()  # before there was a hook
    world.start(world.webhook())
    instants = [world.table.commit().instant for _ in range(3)]
    await_that("third message", lambda: len(world.receiver.taken) == 3)
    assert world.receiver.instants == instants
    for number, taken in enumerate(world.receiver.taken, start=1):
        assert taken.headers["Idempotency-Key"] == taken.document["transaction"] == f"t{number}"
        assert taken.headers["Content-Type"] == "application/json"
        assert taken.headers["Authorization"] == f"Bearer {SECRET}"


def test_what_a_hook_fails_with_is_an_alarm_until_it_takes_them_again_and_is_logged_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world.receiver.does = 503
    world.start(world.webhook())
    instants = [world.table.commit().instant for _ in range(3)]
    await_that("third try", lambda: world.receiver.asked >= 3)
    text = await_that("alarm", lambda: world.alarms.get("hook webhook"))
    assert "has not taken" in text and "last answer 503 (Service Unavailable)" in text
    assert world.receiver.url in text
    world.receiver.does = WELL
    await_that("end of the alarm", lambda: world.alarms["hook webhook"] == "")
    await_that("all messages", lambda: len(world.receiver.taken) == 3)
    assert world.receiver.instants == instants
    assert caplog.text.count("does not take commits") == 1 and caplog.text.count("takes commits again") == 1
    for shown in (caplog.text, text):
        assert SECRET not in shown and "hidden-path" not in shown


def test_what_was_not_told_when_a_run_was_killed_is_told_by_the_next_one(world: World) -> None:
    """The first run is left as a kill leaves it: it hangs in its first delivery, and says no more."""
    world.receiver.does = HANG
    world.start(world.webhook(timeout_s=60))
    instants = [world.table.commit().instant for _ in range(5)]
    await_that("delivery that hangs", lambda: world.receiver.asked == 1)
    world.receiver.does = WELL
    world.start(world.webhook())
    await_that("all messages", lambda: len(world.receiver.taken) == 5)
    assert world.receiver.instants == instants


def test_the_end_of_a_run_tells_what_is_open_and_the_next_run_tells_nothing_twice(world: World) -> None:
    hooks = world.start(world.webhook())
    instants = [world.table.commit().instant for _ in range(30)]
    hooks.finish(WELL_ENDED)
    assert world.receiver.instants == instants
    world.start(world.webhook())
    instants.append(world.table.commit().instant)
    await_that("next one", lambda: len(world.receiver.taken) == 31)
    assert world.receiver.instants == instants


def test_a_hook_that_hangs_holds_up_no_other_one_and_says_so(world: World) -> None:
    going_on = threading.Event()

    def does() -> None:
        going_on.wait(60)

    odd = Odd(does)
    world.start(odd, world.webhook())
    instants = [world.table.commit().instant for _ in range(20)]
    await_that("all messages", lambda: len(world.receiver.taken) == 20)
    text = await_that("alarm", lambda: world.alarms.get("hook odd"))
    assert "no answer yet" in text
    going_on.set()
    await_that("its own", lambda: odd.told == instants)


@pytest.mark.parametrize("error", [SinkError("away"), RuntimeError(SECRET), ValueError(SECRET)])
def test_whatever_a_sink_raises_it_is_tried_again(
    world: World, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    tries = iter([error, error])

    def does() -> None:
        if (raised := next(tries, None)) is not None:
            raise raised

    odd = Odd(does)
    world.start(odd)
    instant = world.table.commit().instant
    await_that("delivery", lambda: odd.told == [instant])
    assert SECRET not in caplog.text and SECRET not in str(world.alarms)


def test_how_a_run_ended_is_said_after_all_it_committed(world: World) -> None:
    odd = Odd(lambda: None)
    hooks = world.start(odd)
    instant = world.table.commit().instant
    halted = Ending(how=HowEnded.HALTED, reason="a poison record")
    hooks.finish(halted)
    hooks.finish(WELL_ENDED)
    assert odd.told == [instant] and odd.endings == [halted]


def test_a_run_that_was_superseded_leaves_the_rest_to_the_newer_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.receiver.does = 503
    hooks = world.start(world.webhook())
    world.table.commit()
    await_that("first try", lambda: world.receiver.asked == 1)
    hooks.finish(Ending(how=HowEnded.SUPERSEDED, reason="a newer run"))
    assert "has not taken" not in caplog.text
    world.receiver.does = WELL
    world.start(world.webhook())
    await_that("message", lambda: len(world.receiver.taken) == 1)


def test_a_run_without_hooks_starts_no_thread(world: World) -> None:
    before = threading.active_count()
    world.start().finish(WELL_ENDED)
    assert threading.active_count() == before


def test_while_its_note_cannot_be_read_a_hook_tells_nothing_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "READ_AGAIN_MS", 50)
    world.start(world.webhook()).finish(WELL_ENDED)
    (name,) = world.store.names("")
    world.store.put(name, b"")
    before = world.table.commit().instant
    world.start(world.webhook())
    text = await_that("alarm", lambda: world.alarms.get("hook webhook"))
    assert "cannot be read" in text and "delete it to begin anew" in text
    assert not world.receiver.taken and world.store.read(name, bytes_max=9) == b""
    world.store.delete(name)
    await_that("end of the alarm", lambda: world.alarms["hook webhook"] == "")
    after = world.table.commit().instant
    await_that("message", lambda: world.receiver.taken)
    assert world.receiver.instants == [after] and before != after


def test_the_end_of_a_run_does_not_wait_for_a_note_that_cannot_be_read(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.start(world.webhook()).finish(WELL_ENDED)
    (name,) = world.store.names("")
    world.store.put(name, b"{")
    world.start(world.webhook()).finish(WELL_ENDED)
    assert world.store.read(name, bytes_max=9) == b"{" and "cannot be read" in caplog.text


def test_whatever_fails_outside_of_the_sink_is_an_alarm_and_is_tried_again(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, broken = world.table.reader, threading.Event()
    broken.set()

    def fails() -> MemoryTableReader:
        if broken.is_set():
            raise ValueError(SECRET)
        return reader()

    monkeypatch.setattr(world.table, "reader", fails)
    odd = Odd(lambda: None)
    world.start(odd)
    instant = world.table.commit().instant
    text = await_that("alarm", lambda: world.alarms.get("hook odd"))
    assert "unexpected: ValueError" in text
    broken.clear()
    await_that("delivery", lambda: odd.told == [instant])
    await_that("end of the alarm", lambda: world.alarms["hook odd"] == "")
    assert SECRET not in caplog.text and caplog.text.count("cannot go on") == 1
