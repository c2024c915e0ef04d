"""Every (state, event) pair of both tables, walked with cores that got into the state by a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from control_topic.messages import (
    TYPE_NAMES,
    AbortCommit,
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    EndRequest,
    Halt,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    Range,
    RunAnnounce,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from coordinator import events as c
from coordinator import transitions as coordinator_table
from coordinator.core import Coordinator
from participant import events as p
from participant import transitions as participant_table
from participant.core import Participant
from tests.unit.conversation import P0, P1, CoordinatorTalk, ParticipantTalk, message

COMMITTED = {P0: 0}


STATUS = WriteStatus(transaction="t1", ranges=(Range(partition=P0, start=0, next=5, records=5),))
BODIES: dict[type[Any], Any] = {
    RunAnnounce: RunAnnounce(),
    CoordinatorClaim: CoordinatorClaim(),
    ParticipantJoin: ParticipantJoin(partitions=(P0,)),
    ParticipantLeave: ParticipantLeave(partitions=(P0,), transaction="t1"),
    ParticipantReady: ParticipantReady(),
    StartCommit: StartCommit(transaction="t1", instant="i1", committed=COMMITTED, writers={P0: "a"}),
    EndRequest: EndRequest(transaction="t1", reason="bytes"),
    EndCommit: EndCommit(transaction="t1"),
    WriteProgress: WriteProgress(transaction="t1", records=5, files=1, size_bytes=9, steps=2),
    WriteStatus: STATUS,
    AckCommit: AckCommit(transaction="t1", instant="i1", committed={P0: 5}),
    AbortCommit: AbortCommit(transaction="t1", reason="x"),
    Halt: Halt(reason="x"),
}


def test_the_bodies_walked_are_all_there_are() -> None:
    assert BODIES.keys() == TYPE_NAMES.keys()


# --- the coordinator --------------------------------------------------------------------------


class CoordinatorWalk(CoordinatorTalk):
    """Gets into a state by a conversation and makes up an event for it."""

    def event(self, kind: type[Any]) -> c.Event:
        """An event of this kind as the shell would give it in this state."""
        now_ms = self.now_ms + 60_000
        if kind in BODIES:
            sent = message(BODIES[kind], sender="a", sequence=99)
            return c.Received(now_ms=now_ms, nonce="t2", message=sent)
        if kind is c.Completed:
            call = self.core.pending.call if self.core.pending is not None else 0
            return c.Completed(now_ms=now_ms, nonce="t2", call=call, result=c.Result.OK, instant="i2")
        if kind is c.WorkerDied:
            return c.WorkerDied(now_ms=now_ms, nonce="t2", incarnation="a")
        if kind is c.Directed:
            return c.Directed(now_ms=now_ms, nonce="t2", mode=c.Mode.DRAIN)
        return kind(now_ms=now_ms, nonce="t2")  # type: ignore[no-any-return]


COORDINATOR_KINDS = [*BODIES, c.Launch, c.Tick, c.Completed, c.WorkerDied, c.Directed]
COORDINATOR_PAIRS = [(state, kind) for state in coordinator_table.State for kind in COORDINATOR_KINDS]


def coordinator_in(state: coordinator_table.State) -> CoordinatorWalk:
    walk = CoordinatorWalk()
    getattr(walk, state.value)()
    assert walk.core.state is state
    return walk


def watch(core: Any, table: Any, state: Any, kind: type[Any]) -> list[str]:
    """Note which of the table's methods runs for this pair, without changing what it does."""
    seen: list[str] = []
    name = table.TABLE[state].get(kind, "")
    if name:
        method: Callable[[Any], None] = getattr(core, name)

        def noted(event: Any) -> None:
            seen.append(name)
            method(event)

        setattr(core, name, noted)
    return seen


@pytest.mark.parametrize(("state", "kind"), COORDINATOR_PAIRS, ids=lambda x: getattr(x, "__name__", str(x)))
def test_every_pair_of_the_coordinator_is_handled_ignored_or_illegal(
    state: coordinator_table.State, kind: type[Any]
) -> None:
    walk = coordinator_in(state)
    row = coordinator_table.TABLE[state]
    if kind not in row:
        with pytest.raises(coordinator_table.IllegalEvent):
            walk.feed(walk.event(kind))
        return
    seen = watch(walk.core, coordinator_table, state, kind)
    before = walk.core.state
    actions = walk.feed(walk.event(kind))
    assert walk.core.state in coordinator_table.State
    if row[kind] == coordinator_table.IGNORED:
        assert (seen, actions, walk.core.state) == ([], [], before)
    else:
        assert seen == [row[kind]]


@pytest.mark.parametrize("state", coordinator_table.State, ids=str)
@pytest.mark.parametrize("result", c.Result, ids=str)
def test_every_result_of_a_call_is_legal_wherever_a_completion_is(
    state: coordinator_table.State, result: c.Result
) -> None:
    walk = coordinator_in(state)
    if walk.core.pending is None:
        return
    walk.answer(result, instant="i1", committed=COMMITTED, partitions=frozenset({P0}))
    assert walk.core.state in coordinator_table.State


def test_only_a_launch_and_a_completion_are_ever_illegal_for_the_coordinator() -> None:
    illegal = {
        (state, kind) for state, kind in COORDINATOR_PAIRS if kind not in coordinator_table.TABLE[state]
    }
    launches = {(state, c.Launch) for state in coordinator_table.State} - {
        (coordinator_table.State.NEW, c.Launch)
    }
    assert illegal == launches | {(coordinator_table.State.NEW, c.Completed)}


def test_the_coordinators_table_names_nothing_that_the_core_lacks() -> None:
    for row in coordinator_table.TABLE.values():
        assert all(name == coordinator_table.IGNORED or hasattr(Coordinator, name) for name in row.values())
        assert set(row) <= set(COORDINATOR_KINDS)


# --- the participant --------------------------------------------------------------------------


class ParticipantWalk(ParticipantTalk):
    """Gets into a state by a conversation and makes up an event for it."""

    def event(self, kind: type[Any]) -> p.Event:
        now_ms = 60_000
        owned = self.core.owned.get(P0)
        generation, at = (owned.generation, owned.next) if owned else (0, 0)
        if kind in BODIES:
            sent = message(BODIES[kind], sender="coordinator", sequence=9)
            return p.Received(now_ms=now_ms, message=sent)
        others: dict[type[Any], p.Event] = {
            p.Tick: p.Tick(now_ms=now_ms),
            p.Assigned: p.Assigned(now_ms=now_ms, offsets={P1: None}),
            p.Revoked: p.Revoked(now_ms=now_ms, partitions=(P0,)),
            p.OffsetsFetched: p.OffsetsFetched(now_ms=now_ms, committed=COMMITTED),
            p.Buffered: p.Buffered(
                now_ms=now_ms,
                partition=P0,
                generation=generation,
                start=at,
                next=at + 1,
                records=1,
                size_bytes=2_000,
            ),
            p.Blocked: p.Blocked(now_ms=now_ms, partition=P0, generation=generation),
            p.Wrote: p.Wrote(now_ms=now_ms, transaction="t1", files=1, size_bytes=9, steps=2),
            p.Flushed: p.Flushed(now_ms=now_ms, transaction="t1"),
            p.Undeliverable: p.Undeliverable(now_ms=now_ms, transaction="t1", reason="x"),
            p.EffectFailed: p.EffectFailed(now_ms=now_ms, reason="x"),
            p.Leave: p.Leave(now_ms=now_ms, reason="x"),
        }
        return others[kind]


PARTICIPANT_KINDS = [
    *BODIES,
    p.Tick,
    p.Assigned,
    p.Revoked,
    p.OffsetsFetched,
    p.Buffered,
    p.Blocked,
    p.Wrote,
    p.Flushed,
    p.Undeliverable,
    p.EffectFailed,
    p.Leave,
]


@pytest.mark.parametrize("state", participant_table.State, ids=str)
@pytest.mark.parametrize("kind", PARTICIPANT_KINDS, ids=lambda x: x.__name__)
def test_every_pair_of_the_participant_is_handled_or_ignored(
    state: participant_table.State, kind: type[Any]
) -> None:
    walk = ParticipantWalk()
    getattr(walk, state.value)()
    assert walk.core.state is state
    seen = watch(walk.core, participant_table, state, kind)
    name = participant_table.TABLE[state][kind]
    actions = walk.feed(walk.event(kind))
    assert walk.core.state in participant_table.State
    if name == participant_table.IGNORED:
        assert (seen, actions, walk.core.state) == ([], [], state)
    else:
        assert seen == [name]


def test_the_participants_table_is_complete_and_names_nothing_that_the_core_lacks() -> None:
    for row in participant_table.TABLE.values():
        assert set(row) == set(PARTICIPANT_KINDS)
        assert all(name == participant_table.IGNORED or hasattr(Participant, name) for name in row.values())


def test_a_chunk_that_does_not_continue_the_last_is_the_shells_bug() -> None:
    walk = ParticipantWalk()
    walk.joining()
    generation = walk.core.owned[P0].generation
    with pytest.raises(participant_table.IllegalEvent):
        walk.feed(
            p.Buffered(
                now_ms=0, partition=P0, generation=generation, start=6, next=7, records=1, size_bytes=1
            )
        )


def test_a_completion_of_a_call_that_was_never_made_is_the_shells_bug() -> None:
    walk = coordinator_in(coordinator_table.State.IDLE)
    with pytest.raises(coordinator_table.IllegalEvent):
        walk.feed(c.Completed(now_ms=0, call=99, result=c.Result.OK))
