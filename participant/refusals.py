"""Where the run is to halt over what was read: too many rejects, or one that nobody can set aside. Pure."""

from __future__ import annotations

from control_topic.messages import ParticipantJoin, ParticipantLeave
from participant.events import Discard, Drop, Owned, Poison, Settings, Undeliverable, Work
from participant.rejects_max import too_many
from participant.repeats import Repeats
from participant.transitions import State


class Refusals(Repeats):
    """`abandoned`: the transaction that was given up last."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.abandoned = ""

    def _refuses(self, work: Work, *, complete: bool) -> bool:
        """Whether there are more rejects than allowed; then none of them is set aside, and the run halts."""
        limit = self.settings.rejects_max
        if not limit.exceeded(sum(work.rejects.values()), work.records, complete=complete):
            return False
        self._refuse(work, too_many(limit, work.rejects, work.first_rejects, work.records))
        return True

    def on_undeliverable(self, event: Undeliverable) -> None:
        work = self.work
        assert work is not None
        if event.transaction == work.id:
            self._refuse(work, event.reason)

    def _refuse(self, work: Work, reason: str) -> None:
        """Tell it, give up what is open, so that the others' drain does not wait for it, and read no more."""
        self.refused = True
        self._out += [Poison(reason=reason), Discard(transaction=work.id)]
        self.abandoned = work.id
        self.work = None
        self.state = State.JOINING
        self.unlisted = set(self.owned)
        for partition, owned in sorted(self.owned.items()):
            given_up = Owned(
                generation=self._next_generation(),
                resolved=owned.resolved,
                start=owned.start,
                written=owned.start,
                next=owned.start,
                committed=owned.committed,
            )
            self.owned[partition] = given_up
            self._out.append(Drop(partition=partition))
        self._meter()
        self._leave_again(work.id)

    def _leave_again(self, transaction: str) -> None:
        self._send(ParticipantLeave(partitions=tuple(sorted(self.owned)), transaction=transaction))
        self._send(ParticipantJoin(partitions=tuple(sorted(self.owned))))
