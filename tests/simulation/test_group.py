"""The simulated group itself, where no sequence that a real one can be led through is quick enough."""

from __future__ import annotations

from control_topic.messages import SourcePartition
from tests.conformance.group_sides import SimulatedGroupSide


def test_a_holder_is_asked_once_though_somebody_else_gives_up_the_same() -> None:
    side = SimulatedGroupSide()
    old = side.join(0)
    side.await_that("assignment", lambda: old.owns)
    place = SourcePartition("events", min(old.owns))
    old.freeze()
    newcomer = side.join(0)
    side.await_that("newcomer's assignment", lambda: newcomer.owns == old.owns)
    side.group.withhold(place, for_ms=1)
    side.group.revoked(old, place)  # type: ignore[arg-type]
    side.await_that("its return", lambda: len(newcomer.told) >= 3)
    side.scheduler.at(5_000, None, newcomer.told.append, ("later", set()))
    side.await_that("what comes later", lambda: newcomer.told[-1][0] == "later")
    wanted = [("assigned", {0, 1, 2, 3}), ("revoked", {place.number}), ("assigned", {place.number})]
    assert newcomer.told[:-1] == wanted


def test_what_is_taken_and_given_again_while_a_member_sleeps_is_given_once() -> None:
    side = SimulatedGroupSide()
    member = side.join(0)
    side.await_that("assignment", lambda: member.owns)
    member.freeze()
    side.recreate(3, seen=True)
    side.scheduler.run_until(side.scheduler.now_ms + 1_000)
    side.add_partition()
    side.scheduler.run_until(side.scheduler.now_ms + 1_000)
    member.thaw()
    side.scheduler.run_until(side.scheduler.now_ms + 20_000)
    assert member.told == [("assigned", {0, 1, 2, 3}), ("revoked", {3}), ("assigned", {3})]


def test_whoever_holds_what_nobody_saw_vanish_keeps_it_though_another_was_to_have_it() -> None:
    side = SimulatedGroupSide()
    member = side.join(0)
    side.await_that("assignment", lambda: member.owns)
    member.freeze()
    side.foreign_joins("cooperative-sticky")
    side.recreate(1, seen=False)
    side.foreign_leaves()
    member.thaw()
    side.scheduler.run_until(side.scheduler.now_ms + 20_000)
    assert member.owns == {0, 1, 2, 3}
