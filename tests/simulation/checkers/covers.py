"""A commit's ranges cover the expected set, a set and never a count, and each comes from who was listed.

Once the commit call is out nothing aborts, until its outcome is known.
"""

from coordinator import events as ev
from coordinator.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims


class CommitsCoverTheExpectedSet(Checker):
    name = "covers"

    def coordinator_acts(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        transaction = claims.core.transaction
        for action in actions:
            if isinstance(action, ev.Abort) and before in (State.COMMITTING, State.RESOLVING):
                self.require(
                    isinstance(event, ev.Completed), f"aborted while its commit is out: {action.reason}"
                )
            if not isinstance(action, ev.Commit):
                continue
            assert transaction is not None
            covered = set()
            for who, status in transaction.statuses.items():
                self.require(
                    status.transaction == transaction.id,
                    f"{who} speaks of {status.transaction} in transaction {transaction.id}",
                )
                for r in status.ranges:
                    if transaction.writers.get(r.partition) != who:
                        self.violated(f"{who} reports {r.partition}, which START did not give it")
                    covered.add(r.partition)
            if not transaction.expected <= covered:
                self.violated(f"expected {sorted(transaction.expected)}, received {sorted(covered)}")
