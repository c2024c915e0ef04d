"""What took too long to write is followed by less, down to a bound, and by more once rounds are quick again.

A round is what is written after an END: long where it took more than the write timeout, quick where it took
at most half of that. The limit is one coordinator's, and so is the memory here.
"""

from __future__ import annotations

from dataclasses import dataclass

from control_topic.messages import StartCommit, WriteStatus
from coordinator import events as ev
from coordinator.transaction import Transaction
from coordinator.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import RECORDS_MIN, Claims
from tests.simulation.plane import FETCH_MAX_RECORDS

WRITTEN_OR_NOT = (State.COMMITTING, State.ABORTING)


@dataclass(slots=True)
class Round:
    """`too_many`: what the round held that began to be limited; `least`, `most`: what the next START may say.

    `most` 0: the next one must not be limited. `may_lift`: it need not be.
    """

    limit: int = 0
    too_many: int = 0
    least: int = 0
    most: int = 0
    may_lift: bool = True
    why: str = "nothing was slow"


class WhatFollowsIsSmaller(Checker):
    name = "pace"

    def __init__(self) -> None:
        self._rounds: dict[str, Round] = {}
        self._ended_ms: dict[str, int] = {}
        self._started: set[str] = set()

    def coordinator_handled(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        core = claims.core
        state, transaction = core.machine.state, core.rounds.transaction
        if state is State.ENDED and before is not State.ENDED:
            self._ended_ms[claims.incarnation] = event.now_ms
        elif (
            before is State.ENDED and transaction is not None and state in (State.COMMITTING, State.ABORTING)
        ):
            took_ms = event.now_ms - self._ended_ms[claims.incarnation]
            self._over(claims, transaction, took_ms, given_up=isinstance(event, ev.Tick))
        for action in actions:
            if isinstance(action, ev.Send) and isinstance(action.body, StartCommit):
                self._started_with(claims, action.body)
        if type(event) is ev.Received and isinstance(event.message.body, WriteStatus):
            self._reported(claims, event.message.incarnation, event.message.body)

    def _over(self, claims: Claims, transaction: Transaction, took_ms: int, *, given_up: bool) -> None:
        """The files are there, or are given up, or nobody is left to write them."""
        patience_ms = claims.core.machine.settings.write_timeout_ms
        records = sum(r.records for said in transaction.statuses.values() for r in said.ranges)
        writing = [who for who in transaction.progress if who not in transaction.statuses]
        records += sum(transaction.progress[who][0].records for who in writing)
        round_ = self._rounds.setdefault(claims.incarnation, Round())
        if given_up:
            slow, quick = bool(transaction.progress), False
        elif transaction.missing() or not transaction.owed:
            return
        else:
            slow, quick = took_ms > patience_ms, took_ms <= patience_ms // 2
        if slow and records:
            if not round_.limit:
                round_.too_many = records
            round_.least, round_.most = RECORDS_MIN, max(RECORDS_MIN, records - 1)
            round_.may_lift = False
            round_.why = f"{records} records took {took_ms} ms"
        elif quick and round_.limit:
            round_.least, round_.most = round_.limit + 1, round_.too_many - 1
            round_.may_lift = True
            round_.why = f"a limit of {round_.limit} was kept within {took_ms} ms"

    def _started_with(self, claims: Claims, body: StartCommit) -> None:
        if body.transaction in self._started:
            return
        self._started.add(body.transaction)
        round_ = self._rounds.setdefault(claims.incarnation, Round())
        allowed = round_.least <= body.records_max <= round_.most
        self.require(
            allowed or (round_.may_lift and not body.records_max),
            f"{body.transaction} may hold {body.records_max} records, where {round_.why}",
        )
        round_.limit = round_.least = round_.most = body.records_max
        round_.may_lift = not body.records_max

    def _reported(self, claims: Claims, who: str, body: WriteStatus) -> None:
        """No writer takes more than its share, but for the chunk that goes beyond it."""
        transaction = claims.core.rounds.transaction
        if transaction is None or transaction.id != body.transaction or who not in transaction.statuses:
            return
        writers = len(set(transaction.writers.values()))
        records, share = sum(r.records for r in body.ranges), -(-transaction.records_max // writers)
        self.require(
            not share or records < share + FETCH_MAX_RECORDS,
            f"a writer of {body.transaction} took {records} records, where its share is {share}",
        )
