"""What the driver's look at broker, group and workers comes to, and what it does about it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from control_topic.messages import SourcePartition
from lockstep.brokers.group import GroupMember, GroupView
from lockstep.brokers.source_topics import SourceTopics
from lockstep.driver.group_watch import LOOK_EVERY_S, GroupWatch
from lockstep.driver.stands import ALARM_S, UNREAD_MAX_S, LivingWorker
from table.service.calls import RunMode, WorkerReport
from table.service.roster import LIVES_MS, Reported
from table.service.servicer import TableService
from table.service.source_facts import MissingTopic, NoCoordinator, SourceUnavailable, Unauthorized

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
NOW_MS = 1_000_000
GUEST = GroupMember(client="console", host="/10.0.0.7", instance="", partitions=())
OURS = GroupMember(client="rdkafka", host="/10.0.0.1", instance="orders-0", partitions=(P0, P1))
VIEW = GroupView(state="STABLE", members=(GUEST, OURS))


class World:
    """Everything that a look is at, and what comes of it. The clock goes on by a look's time at each."""

    def __init__(self) -> None:
        self.facts_are: Any = SimpleNamespace(partitions=(P0, P1))
        self.group_is: Any = VIEW
        self.mode = RunMode.RUN
        self.workers: tuple[Reported, ...] = (entry(0, P0),)
        self.alarms: list[str] = []
        self.halts: list[str] = []
        self._now_s = 0.0
        self.watch = GroupWatch(
            cast(SourceTopics, self), "orders", service=cast(TableService, self), clock=self._clock
        )

    def _clock(self) -> float:
        self._now_s += LOOK_EVERY_S
        return self._now_s

    def facts(self) -> Any:
        return answer(self.facts_are)

    def group(self, name: str) -> Any:
        assert name == "orders"
        return answer(self.group_is)

    def progress(self) -> Any:
        standing = SimpleNamespace(mode=self.mode)
        return SimpleNamespace(standing=standing, workers=self.workers, now_ms=NOW_MS, commits=3)

    def alarm(self, of: str, text: str, *, stands: bool) -> None:
        assert (of, stands) == ("group", True)
        self.alarms.append(text)

    def halt(self, reason: str) -> None:
        self.halts.append(reason)


def answer(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def entry(slot: int, *owned: SourcePartition, age_ms: int = 0, dead: bool = False) -> Reported:
    report = WorkerReport(incarnation=f"i{slot}", slot=slot, state="writing", partitions=owned)
    return Reported(report=report, at_ms=NOW_MS - age_ms, dead=dead)


def test_a_look_has_source_partitions_group_and_living_workers() -> None:
    world = World()
    world.workers = (entry(0, P0), entry(1, P1, age_ms=LIVES_MS), entry(2, P1, dead=True))
    seen = world.watch.look()
    assert seen is not None
    assert (seen.partitions, seen.group, seen.outage, seen.commits) == ((P0, P1), VIEW, "", 3)
    assert seen.workers == (LivingWorker(name="worker-0", owned=frozenset([P0])),)


@pytest.mark.parametrize("away", [SourceUnavailable("no answer"), NoCoordinator("no coordinator")])
def test_a_broker_that_is_away_and_a_group_without_a_coordinator_are_outages(away: Exception) -> None:
    for place in ("facts_are", "group_is"):
        world = World()
        setattr(world, place, away)
        seen = world.watch.look()
        assert seen is not None
        assert (seen.outage, seen.group) == (str(away), None)


def test_a_group_that_may_not_be_looked_at_is_no_outage() -> None:
    world = World()
    world.group_is = Unauthorized("not yours")
    seen = world.watch.look()
    assert seen is not None
    assert (seen.partitions, seen.group, seen.outage) == ((P0, P1), None, "")


@pytest.mark.parametrize("told", [MissingTopic("gone"), Unauthorized("not yours")])
def test_what_others_judge_is_left_to_them(told: Exception) -> None:
    world = World()
    world.facts_are = told
    assert world.watch.look() is None
    assert world.watch._goes_on() and not world.alarms


@pytest.mark.parametrize("mode", [mode for mode in RunMode if mode is not RunMode.RUN])
def test_a_run_that_ends_is_not_judged(mode: RunMode) -> None:
    world = World()
    world.mode = mode
    assert world.watch.look() is None
    assert world.alarms == [""]


def test_a_look_that_fails_unexpectedly_is_said_and_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.facts_are = KeyError("what")
    assert world.watch._goes_on()
    assert "could not be looked at; it is tried again" in caplog.text


def test_an_alarm_is_shown_at_each_look_logged_once_and_ends_the_run_and_the_looking(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, looks = World(), 1
    with caplog.at_level(logging.WARNING):
        while world.watch._goes_on():
            looks += 1
    assert looks == 1 + UNREAD_MAX_S / LOOK_EVERY_S
    assert len([one for one in world.alarms if one]) == (UNREAD_MAX_S - ALARM_S) / LOOK_EVERY_S
    [said] = caplog.messages
    assert said.startswith("No worker reads events:1: ") and "console at /10.0.0.7" in said
    [halt] = world.halts
    assert halt.startswith("No worker reads events:1: ")


def test_an_alarm_goes_when_its_cause_does() -> None:
    world = World()
    for _ in range(5):
        world.watch._goes_on()
    assert world.alarms[-1]
    world.workers = (entry(0, P0, P1),)
    assert world.watch._goes_on() and not world.alarms[-1]


def test_what_lasted_before_a_pause_is_counted_anew_after_it() -> None:
    world = World()
    for _ in range(int(UNREAD_MAX_S / LOOK_EVERY_S)):
        assert world.watch._goes_on()
    world.mode = RunMode.PAUSE
    assert world.watch._goes_on()
    world.mode = RunMode.RUN
    for _ in range(int(UNREAD_MAX_S / LOOK_EVERY_S)):
        assert world.watch._goes_on()
    assert not world.watch._goes_on()


@pytest.mark.parametrize("facts", [SimpleNamespace(partitions=(P0, P1)), SourceUnavailable("it is serviced")])
def test_a_paused_run_is_not_judged_and_what_was_said_before_is_taken_back(facts: Any) -> None:
    world = World()
    world.workers, world.mode, world.facts_are = (), RunMode.PAUSE, facts
    for _ in range(int(2 * UNREAD_MAX_S / LOOK_EVERY_S)):
        assert world.watch._goes_on()
    assert world.halts == []
    assert set(world.alarms) == {""}
