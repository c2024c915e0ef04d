"""Every (state, event) pair of both tables, walked with cores that got into the state by a conversation."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from random import Random
from typing import Any

import pytest

from control_topic.controls import Tuning
from control_topic.messages import (
    TYPE_NAMES,
    AbortCommit,
    AckCommit,
    Control,
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
from tests.unit import lives
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
    Control: Control(number=1, action="pause"),
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
        if kind is c.Outranked:
            return c.Outranked(now_ms=now_ms, nonce="t2", reason="epoch 2 rules")
        if kind is c.WorkerDied:
            return c.WorkerDied(now_ms=now_ms, nonce="t2", incarnation="a")
        if kind is c.Directed:
            return c.Directed(now_ms=now_ms, nonce="t2", mode=c.RunMode.DRAIN)
        return kind(now_ms=now_ms, nonce="t2")  # type: ignore[no-any-return]


COORDINATOR_KINDS = [*BODIES, c.Launch, c.Tick, c.Completed, c.WorkerDied, c.Directed, c.Outranked]
COORDINATOR_PAIRS = [(state, kind) for state in coordinator_table.State for kind in COORDINATOR_KINDS]


def coordinator_in(state: coordinator_table.State) -> CoordinatorWalk:
    walk = CoordinatorWalk()
    getattr(walk, state.value)()
    assert walk.core.state is state
    return walk


def watch(core: Any, step: Any) -> list[str]:
    """Note whether the step's method runs, without changing what it does."""
    seen: list[str] = []
    if step.method:
        *parts, name = step.method.split(".")
        part = attrgetter(*parts)(core) if parts else core
        method: Callable[[Any], None] = getattr(part, name)

        def noted(event: Any) -> None:
            seen.append(step.method)
            method(event)

        setattr(part, name, noted)
        core._methods.clear()
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
    seen = watch(walk.core, row[kind])
    actions = walk.feed(walk.event(kind))
    if row[kind] == coordinator_table.IGNORE:
        assert (seen, actions, walk.core.state) == ([], [], state)
    else:
        assert seen == [row[kind].method]


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


def test_what_is_illegal_for_the_coordinator_is_what_its_shell_promises_never_to_do() -> None:
    """It launches once, answers what was asked, and lets go of a core that has ended."""
    table, kinds = coordinator_table.TABLE, COORDINATOR_KINDS
    state = coordinator_table.State
    ended = {state.FENCED, state.HALTED}
    calls_nothing = {state.NEW, state.CLAIMING, state.IDLE, state.STARTED, state.ENDED, state.DRAINED}
    illegal = {(of, kind) for of in state for kind in kinds if kind not in table[of]}
    assert illegal == {
        *((of, kind) for of in ended for kind in kinds),
        *((of, c.Completed) for of in calls_nothing),
        *((of, c.Launch) for of in set(state) - {state.NEW}),
        (state.NEW, c.Outranked),
    }


def test_the_coordinators_table_names_nothing_that_the_core_lacks() -> None:
    core = CoordinatorWalk().core
    for row in coordinator_table.TABLE.values():
        assert all(not step.method or callable(attrgetter(step.method)(core)) for step in row.values())
        assert set(row) <= set(COORDINATOR_KINDS)


def test_a_core_that_goes_where_its_table_does_not_lead_is_stopped() -> None:
    walk = coordinator_in(coordinator_table.State.IDLE)
    walk.core.on_ready = lambda _: setattr(  # type: ignore[method-assign]
        walk.core.machine, "state", coordinator_table.State.COMMITTING
    )
    with pytest.raises(coordinator_table.IllegalStep, match="from IDLE to COMMITTING"):
        walk.hear(ParticipantReady())


# --- the participant --------------------------------------------------------------------------


class ParticipantWalk(ParticipantTalk):
    """Gets into a state by a conversation and makes up an event for it."""

    def ask(self) -> int:
        """A call that nobody has answered yet."""
        return self.core.machine.call(lambda call: p.FetchOffsets(call=call))

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
            p.OffsetsFetched: p.OffsetsFetched(now_ms=now_ms, call=self.ask(), committed=COMMITTED),
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
            p.TakenAway: p.TakenAway(now_ms=now_ms, transaction="t1", reason="x"),
            p.Flushed: p.Flushed(now_ms=now_ms, call=self.asked or self.ask()),
            p.Outranked: p.Outranked(now_ms=now_ms, epoch=2),
            p.EffectFailed: p.EffectFailed(now_ms=now_ms, reason="x"),
            p.Leave: p.Leave(now_ms=now_ms, reason="x"),
            p.Tuned: p.Tuned(now_ms=now_ms, tuning=Tuning(interval_ms=1, write_timeout_ms=4)),
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
    p.TakenAway,
    p.Flushed,
    p.Outranked,
    p.EffectFailed,
    p.Leave,
    p.Tuned,
]


def participant_in(state: participant_table.State) -> ParticipantWalk:
    walk = ParticipantWalk()
    getattr(walk, state.value)()
    assert walk.core.state is state
    return walk


@pytest.mark.parametrize("state", participant_table.State, ids=str)
@pytest.mark.parametrize("kind", PARTICIPANT_KINDS, ids=lambda x: x.__name__)
def test_every_pair_of_the_participant_is_handled_ignored_or_illegal(
    state: participant_table.State, kind: type[Any]
) -> None:
    walk = participant_in(state)
    row = participant_table.TABLE[state]
    event = walk.event(kind)
    if kind not in row:
        with pytest.raises(participant_table.IllegalEvent, match=f"{kind.__name__} in {state.name}"):
            walk.feed(event)
        return
    seen = watch(walk.core, row[kind])
    actions = walk.feed(event)
    if row[kind] == participant_table.IGNORE:
        assert (seen, actions, walk.core.state) == ([], [], state)
    else:
        assert seen == [row[kind].method]


def test_what_is_illegal_for_the_participant_is_what_its_shell_promises_never_to_do() -> None:
    """It lets go of a core that has ended, and says nothing of files after it has answered their Flush."""
    table, state = participant_table.TABLE, participant_table.State
    illegal = {(of, kind) for of in state for kind in PARTICIPANT_KINDS if kind not in table[of]}
    said = (p.Wrote, p.TakenAway, p.Flushed)
    flushed = {(of, kind) for of in (state.WAITING, state.PREPARED) for kind in said}
    assert illegal == flushed | {(state.STOPPED, kind) for kind in PARTICIPANT_KINDS}


def test_the_participants_table_names_nothing_that_the_core_lacks() -> None:
    core = ParticipantWalk().core
    for row in participant_table.TABLE.values():
        assert all(not step.method or callable(attrgetter(step.method)(core)) for step in row.values())
        assert set(row) <= set(PARTICIPANT_KINDS)


def test_a_participant_that_goes_where_its_table_does_not_lead_is_stopped() -> None:
    walk = participant_in(participant_table.State.WAITING)
    walk.core.rounds.on_end_unknown = lambda _: setattr(  # type: ignore[method-assign]
        walk.core.machine, "state", participant_table.State.PREPARED
    )
    with pytest.raises(participant_table.IllegalStep, match="from WAITING to PREPARED"):
        walk.end("t9")


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


# --- the steps that are taken -------------------------------------------------------------------


LIVES = 30_000
"""Of each core: about twice as many as the rarest step takes to be taken, with this seed."""


@pytest.mark.parametrize(
    ("live", "core", "table"),
    [
        (lives.coordinators_life, Coordinator, coordinator_table.TABLE),
        (lives.participants_life, Participant, participant_table.TABLE),
    ],
    ids=["coordinator", "participant"],
)
def test_every_step_that_a_table_allows_is_taken_by_some_life_and_no_other_by_any(
    live: Callable[[Random], Any], core: Any, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: set[tuple[str, str, str]] = set()
    take = core._follow

    def noting(self: Any, step: Any, event: Any, kind: type[Any]) -> None:
        before = self.state
        take(self, step, event, kind)  # raises where the table does not lead
        if self.state is not before:
            taken.add((before.name, kind.__name__, self.state.name))

    monkeypatch.setattr(core, "_follow", noting)
    random = Random(1)
    for _ in range(LIVES):
        live(random)
    allowed = {
        (state.name, kind.__name__, to.name)
        for state, row in table.items()
        for kind, step in row.items()
        for to in step.to
    }
    never = sorted(" ".join(one) for one in allowed - taken)
    assert not never, ", ".join(never)
    assert taken <= allowed
