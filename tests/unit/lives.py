"""Random lives of one core each: whatever its shell may give it, and nothing that it may not.

Cheaper and wilder than schedules: answers of every kind, messages of every kind, about the transaction that
is open and about others, and time in leaps.
"""

from __future__ import annotations

from random import Random
from typing import Any

from control_topic.controls import Controls, Tuning
from control_topic.messages import (
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
    Reject,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from coordinator import events as c
from coordinator.core import Coordinator
from coordinator.transitions import TABLE as COORDINATOR_TABLE
from coordinator.transitions import State
from participant import events as p
from participant.core import Participant
from participant.rejects_max import RejectsMax
from participant.transitions import TABLE as PARTICIPANT_TABLE
from participant.transitions import State as ParticipantState
from tests.unit.conversation import P0, P1, P2, message

PLACES = (P0, P1, P2)
LEAPS_MS = (0, 10, 400, 2_000, 20_000)
EVENTS_MAX = 70


def coordinators_life(random: Random) -> Coordinator:
    """To its end, or as long as it takes."""
    settings = c.Settings(
        pipeline="p",
        run="run",
        incarnation="me",
        interval_ms=1_000,
        write_timeout_ms=5_000,
        claims_max=2,
    )
    core, now_ms = Coordinator(settings), 0
    if random.random() < 0.9:
        core.handle(c.Launch(now_ms=0, nonce="t0"))
    unready, restless = random.random() < 0.3, random.random() < 0.3
    for sequence in range(EVENTS_MAX):
        if not COORDINATOR_TABLE[core.state]:
            break
        now_ms += random.choice(LEAPS_MS)
        event: c.Event
        stamp: dict[str, Any] = {"now_ms": now_ms, "nonce": f"t{sequence}"}
        draw = random.random()
        if core.state in (State.COMMITTING, State.RESOLVING) and draw < 0.05:
            event = c.Directed(**stamp, mode=random.choice((c.RunMode.HALT, c.RunMode.STOP)))
        elif core.pending is not None and core.machine.retry_ms is None and draw < 0.4:
            event = _answer(random, core, stamp)
        elif draw < 0.5:
            event = c.Tick(**stamp)
        elif draw < 0.53:
            event = c.WorkerDied(**stamp, incarnation=random.choice("ab"))
        elif draw < (0.7 if restless else 0.54):
            modes = [*c.RunMode, *[c.RunMode.DRAIN] * 4, *[c.RunMode.RUN] * 8]
            event = c.Directed(**stamp, mode=random.choice(modes), controls=_controls(sequence, now_ms))
        else:
            body = _to_coordinator(random, core, unready)
            sender = random.choice("ab")
            if isinstance(body, CoordinatorClaim) and random.random() < 0.9:
                sender = "me"
            epoch = core.epoch + (random.random() < 0.01)
            run = "run" if random.random() < 0.95 else "another"
            sent = message(body, sender=sender, sequence=sequence, epoch=epoch, run=run)
            event = c.Received(**stamp, message=sent)
        core.handle(event)
    return core


def _controls(sequence: int, now_ms: int) -> Controls | None:
    """What operators may have ordered by now; its numbers need not grow."""
    pick = Random(f"{sequence} {now_ms}").choice
    if pick((True, False)):
        return None
    tuning = Tuning(interval_ms=pick((500, 3_000)), write_timeout_ms=pick((2_000, 7_000)))
    number = sequence + pick((-2, 1, 2, 3))
    return Controls(number=number, commit=pick((0, 0, number)), pause=pick((0, number)), tuning=tuning)


def _answer(random: Random, core: Coordinator, stamp: dict[str, Any]) -> c.Completed:
    assert core.pending is not None
    likely = {
        State.COMMITTING: [c.Result.OK] * 4 + [c.Result.UNKNOWN] * 8,
        State.RESOLVING: [c.Result.COMMITTED] * 8 + [c.Result.ABSENT] * 4,
    }.get(core.state, [c.Result.OK] * 20)
    result = random.choice([*likely, *c.Result])
    places = PLACES[: random.choice((1, 2, 3))]
    committed = {place: core.committed.get(place, 0) for place in places}
    return c.Completed(
        **stamp,
        call=core.pending.call,
        result=result,
        instant="i",
        committed=committed,
        partitions=frozenset(places),
    )


def _to_coordinator(random: Random, core: Coordinator, unready: bool) -> Any:
    if core.state is State.CLAIMING and random.random() < 0.7:
        return CoordinatorClaim()
    transaction = core.transaction
    which = transaction.id if transaction is not None and random.random() < 0.8 else "t"
    places = tuple(random.sample(PLACES, random.choice((0, 1, 2, 3))))
    bodies: list[Any] = [
        ParticipantJoin(partitions=places),
        ParticipantLeave(partitions=places, transaction=random.choice(("", which))),
        ParticipantLeave(partitions=PLACES, transaction=""),
        CoordinatorClaim(),
        EndRequest(transaction=which, reason=random.choice(("bytes", "reached_end"))),
        WriteProgress(transaction=which, records=5, files=1, size_bytes=9, steps=random.randrange(99)),
        Halt(reason="x"),
    ]
    bodies += [] if unready else [ParticipantReady()] * 4
    if transaction is not None and transaction.statuses:
        bodies += [ParticipantLeave(partitions=PLACES, transaction="")] * 12
    if transaction is not None and transaction.writers:
        who = random.choice(sorted(set(transaction.writers.values())))
        length = random.choice((0, 0, 5))
        ranges = tuple(
            Range(partition=q, start=at, next=at + length, records=length)
            for q in sorted(transaction.owed_by(who))
            for at in [transaction.committed.get(q, 0)]
        )
        bodies += [WriteStatus(transaction=which, ranges=ranges)] * 6
    return random.choice(bodies)


def participants_life(random: Random) -> Participant:
    """To its end, or as long as it takes."""
    settings = p.Settings(
        pipeline="p",
        run="run",
        incarnation="a",
        interval_ms=1_000,
        memory_bytes_max=200,
        rejects_max=random.choice((RejectsMax(count=2), RejectsMax(share=0.5, share_judged_from=2))),
    )
    core, now_ms = Participant(settings), 0
    fetches: list[int] = []
    flushes: list[tuple[int, str]] = []
    for sequence in range(EVENTS_MAX):
        if not PARTICIPANT_TABLE[core.state]:
            break
        now_ms += random.choice(LEAPS_MS)
        event: p.Event
        draw = random.random()
        if fetches and draw < 0.2:
            outcome = random.choice(list(p.Outcome))
            committed = {place: random.choice((0, 5)) for place in PLACES[: random.randrange(4)]}
            event = p.OffsetsFetched(now_ms=now_ms, call=fetches.pop(0), outcome=outcome, committed=committed)
        elif flushes and draw < 0.45:
            event = _of_files(random, core, flushes, now_ms)
        elif draw < 0.65:
            event = _of_the_shell(random, core, now_ms)
        else:
            epoch = core.epoch + (random.random() < 0.04)
            run = "run" if random.random() < 0.95 else "another"
            body = _to_participant(random, core)
            sent = message(body, sender="c", sequence=sequence, epoch=epoch, run=run)
            event = p.Received(now_ms=now_ms, message=sent)
        for action in core.handle(event):
            if isinstance(action, p.FetchOffsets):
                fetches.append(action.call)
            elif isinstance(action, p.Flush):
                flushes.append((action.call, action.transaction))
    return core


def _of_files(random: Random, core: Participant, flushes: list[tuple[int, str]], now_ms: int) -> p.Event:
    """The data plane obeys in order, and answers so."""
    call, transaction = flushes[0]
    if random.random() < 0.3:
        return p.Wrote(now_ms=now_ms, transaction=transaction, files=1, size_bytes=9, steps=2)
    del flushes[0]
    given_up = core.work is None or core.work.flush != call
    outcomes = [p.Outcome.FAILED] if given_up else [p.Outcome.SUCCEEDED] * 6 + list(p.Outcome)
    outcome = random.choice(outcomes)
    final = outcome is p.Outcome.FAILED and not given_up and random.random() < 0.5
    return p.Flushed(now_ms=now_ms, call=call, outcome=outcome, reason="x", final=final)


def _of_the_shell(random: Random, core: Participant, now_ms: int) -> p.Event:
    missing = [place for place in PLACES if place not in core.owned]
    draw = random.random()
    if missing and draw < 0.2:
        return p.Assigned(now_ms=now_ms, offsets={missing[0]: random.choice((None, 0, 5))})
    if core.owned and draw < 0.3:
        return p.Revoked(now_ms=now_ms, partitions=(random.choice(sorted(core.owned)),))
    if draw > 0.985:
        tuning = Tuning(interval_ms=500, write_timeout_ms=900, max_records=random.choice((0, 6)), max_bytes=0)
        return p.Tuned(now_ms=now_ms, tuning=tuning)
    if core.state is ParticipantState.WRITING and draw > 0.97:
        which = core.work.id if core.work is not None and random.random() < 0.8 else f"t{random.randrange(3)}"
        return p.TakenAway(now_ms=now_ms, transaction=which, reason="x")
    if draw < 0.32:
        return random.choice((p.Leave(now_ms=now_ms, reason="x"), p.EffectFailed(now_ms=now_ms, reason="x")))
    resolved = [place for place, owned in sorted(core.owned.items()) if owned.resolved and not owned.blocked]
    if not resolved or draw < 0.5:
        return p.Tick(now_ms=now_ms)
    place = random.choice(resolved)
    owned, rejects = core.owned[place], random.choice((0, 0, 0, 2))
    if draw < 0.53:
        return p.Blocked(now_ms=now_ms, partition=place, generation=owned.generation, reason="x")
    return p.Buffered(
        now_ms=now_ms,
        partition=place,
        generation=owned.generation,
        start=owned.next,
        next=owned.next + 3,
        records=3,
        size_bytes=random.choice((10, 150)),
        rejects=rejects,
        reject_bytes=rejects,
        first_reject=Reject(partition=place, offset=owned.next, reason="x") if rejects else None,
    )


def _to_participant(random: Random, core: Participant) -> Any:
    work = core.work
    which = work.id if work is not None and random.random() < 0.8 else f"t{random.randrange(3)}"
    places = random.sample(PLACES, random.choice((1, 2, 3)))
    starts = {place: owned.start for place, owned in core.owned.items()}
    bodies: list[Any] = [
        *[EndCommit(transaction=which)] * 4,
        *[AckCommit(transaction=which, instant="i", committed=dict.fromkeys(PLACES, 3))] * 2,
        *[AbortCommit(transaction=which, reason="x")] * 2,
        CoordinatorClaim(),
        *[
            StartCommit(
                transaction=f"t{random.randrange(1_000)}",
                instant="i",
                committed={**dict.fromkeys(PLACES, 3), **starts},
                writers={place: random.choice("aab") for place in places},
                records_max=random.choice((0, 4)),
            )
        ]
        * 5,
    ]
    bodies += [Halt(reason="x")] if random.random() < 0.2 else []
    return random.choice(bodies)
