"""When the guardian kills: what it hears, and the seconds that pass."""

from __future__ import annotations

import fcntl
import os
import subprocess
import threading
from collections.abc import Callable

import pytest

from table.hudi.driver import watchdog
from table.hudi.driver.held import Held
from table.hudi.driver.watchdog import LAST_WORDS, TICK_S, Watch, held_s

LIVES_S = 60
HELD_S = held_s(60)


class Guardian:
    """Hears what is told once a second, with a clock beside it; `why` is empty while it kills nobody."""

    def __init__(self, lives_s: int = LIVES_S) -> None:
        self.watch = Watch(silence_s=20, callback_s=30)
        self.now_s = 1_000.0
        self.watch.hear("", self.now_s)
        self.why = ""
        self._lives_s = lives_s
        self._held: list[Held] = []

    def take(self) -> None:
        """The JVM shows that it holds the lock."""
        self._held.append(Held(self.now_s, self._lives_s))

    def give_back(self) -> None:
        self._held.pop()

    def hear(self, told: str, passes_s: float = TICK_S) -> str:
        self.now_s += passes_s
        self.why = self.why or self.watch.hear(told, self.now_s, self._held)
        return self.why

    def hear_for(self, seconds: int, told: str = "..") -> str:
        """Python is alive, and nothing else is heard."""
        for _ in range(seconds):
            self.hear(told)
        return self.why


@pytest.mark.parametrize("told", ["", "a", "ael"])
def test_a_jvm_that_stops_behind_the_check_is_killed_before_the_lock_expires(told: str) -> None:
    """Also where Python has not said that Hudi may take the lock, as it does to clean."""
    guardian = Guardian()
    guardian.take()
    taken_s = guardian.now_s
    guardian.hear(told)
    while not guardian.hear(".."):
        assert guardian.now_s - taken_s < LIVES_S - 10
    assert guardian.now_s - taken_s >= HELD_S
    assert "has held the table lock for 40 s" in guardian.why


def test_waiting_for_the_lock_counts_for_nothing() -> None:
    guardian = Guardian()
    guardian.hear("a")
    assert guardian.hear_for(10 * LIVES_S) == ""
    guardian.take()
    assert guardian.hear_for(HELD_S - 1) == ""
    guardian.give_back()
    assert guardian.hear_for(10 * LIVES_S) == ""


def test_each_lock_has_its_own_time() -> None:
    guardian = Guardian()
    for told in ("aeld", "ad", "aeel", "ael"):
        guardian.take()
        guardian.hear(told)
        assert guardian.hear_for(HELD_S - 2) == ""
        guardian.give_back()
    assert guardian.hear_for(1, "") == ""


def test_of_several_locks_each_is_looked_after() -> None:
    guardian = Guardian()
    guardian.take()
    guardian.hear_for(HELD_S - 5)
    guardian.take()
    assert guardian.hear_for(4) == ""
    assert guardian.hear_for(1) != ""


def test_a_machine_that_was_suspended_inside_the_lock_for_longer_than_it_lives_is_not_let_go_on() -> None:
    guardian = Guardian()
    guardian.take()
    guardian.hear("ael")
    assert guardian.hear("..", passes_s=LIVES_S) != ""


def test_a_machine_that_was_suspended_without_the_lock_wakes_up_unharmed() -> None:
    guardian = Guardian()
    for told in ("", "a", "..", "ae", "ld"):
        assert guardian.hear(told, passes_s=8 * 3_600) == ""


def test_a_suspension_inside_the_lock_that_it_outlives_is_no_harm() -> None:
    guardian = Guardian()
    guardian.take()
    guardian.hear("ael")
    assert guardian.hear("..", passes_s=HELD_S - 2) == ""
    guardian.give_back()
    assert guardian.hear("d") == ""


def test_what_hudi_does_after_it_gave_the_lock_back_may_last() -> None:
    guardian = Guardian()
    guardian.take()
    guardian.hear("ael")
    guardian.give_back()
    assert guardian.hear_for(10 * LIVES_S) == ""
    guardian.take()
    assert guardian.hear_for(HELD_S) != "", "the next lock is another one"


@pytest.mark.parametrize("uptime_s", [0.0, 5_551.0, 1e9])
def test_a_jvm_whose_uptime_is_another_one_is_let_alone_and_bound_by_when_the_lock_was_seen(
    uptime_s: float,
) -> None:
    """Some containers have an uptime of their own, which no other clock of theirs agrees with."""
    watch, now_s, why = Watch(silence_s=20, callback_s=30), 50_000.0, ""
    watch.hear("a", now_s)
    taken_s = now_s
    while not why:
        now_s += TICK_S
        why = watch.hear("..", now_s, [Held(uptime_s, LIVES_S)])
    assert HELD_S <= now_s - taken_s <= HELD_S + 1 and "has held the table lock for 40 s" in why


def test_a_lock_that_is_renewed_is_held_since_then() -> None:
    watch, now_s = Watch(silence_s=20, callback_s=30), 1_000.0
    renewed_s = now_s
    for _ in range(10 * LIVES_S):
        now_s += TICK_S
        if now_s - renewed_s >= 30:
            renewed_s = now_s
        assert watch.hear("..", now_s, [Held(renewed_s, LIVES_S)]) == ""
    while not watch.hear("..", now_s, [Held(renewed_s, LIVES_S)]):
        now_s += TICK_S
    assert HELD_S <= now_s - renewed_s <= HELD_S + 1


def test_a_silent_python_is_killed_while_armed_and_left_alone_otherwise() -> None:
    guardian = Guardian()
    guardian.hear("ad")
    assert guardian.hear_for(100, "") == ""
    guardian.hear("a")
    assert guardian.hear_for(19, "") == ""
    assert "Python does not answer" in guardian.hear("")


def test_a_callback_that_does_not_end_is_killed_though_python_beats() -> None:
    guardian = Guardian()
    guardian.hear("ae")
    assert guardian.hear_for(30, ".") == ""
    for _ in range(30):  # each heard by itself, twice a second
        guardian.hear(".", passes_s=0)
    assert "a look under the table lock has not ended for 30 s" in guardian.why


@pytest.mark.parametrize(("expire_minutes", "bound_s"), [(1, 40), (5, 280), (0, 0)])
def test_the_bound_follows_how_long_the_lock_lives(expire_minutes: int, bound_s: int) -> None:
    assert held_s(60 * expire_minutes) == bound_s


def test_a_lock_that_never_expires_may_be_held_for_ever() -> None:
    guardian = Guardian(lives_s=0)
    guardian.take()
    guardian.hear("ael")
    assert guardian.hear_for(100 * LIVES_S) == ""


# --- what it says -----------------------------------------------------------------------------------------

WAITS_S = 5.0


def ends(work: Callable[[], None]) -> bool:
    """Whether it does, instead of waiting for somebody."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(WAITS_S)
    return not thread.is_alive()


def test_the_guardians_last_word_waits_for_nobody_and_is_lost_where_nobody_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A JVM that stands still: its stderr is a pipe, which is full, or is read by the next one."""
    monkeypatch.delenv(LAST_WORDS, raising=False)
    unread, log = os.pipe()
    jvm = subprocess.Popen(["sleep", "300"], stderr=log)
    try:
        watchdog._say(jvm.pid, "it stands still")
        assert os.read(unread, 1_000) == b"lockstep: it stands still\n"
        os.set_blocking(log, False)
        os.write(log, bytes(fcntl.fcntl(log, fcntl.F_GETPIPE_SZ)))
        os.set_blocking(log, True)  # as it is for the JVM
        assert ends(lambda: watchdog._say(jvm.pid, "it stands still"))
    finally:
        jvm.kill()
        jvm.wait()
        os.close(log)
        os.close(unread)
