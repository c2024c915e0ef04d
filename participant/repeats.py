"""What the participant says or asks again until it is answered: the bus may lose any of it. Pure."""

from __future__ import annotations

from control_topic.messages import ParticipantJoin, ParticipantReady, SourcePartition
from participant.events import FetchOffsets, OffsetsFetched, Settings
from participant.intake import Intake
from participant.machine import Machine


class Repeats:
    """Waits double from `repeat_ms` to `repeat_max_ms` and start again where something changes."""

    def __init__(self, machine: Machine, intake: Intake) -> None:
        self._machine = machine
        self._intake = intake
        self.unlisted: set[SourcePartition] = set()
        """Source partitions of ours that the last START did not give us."""
        self._fetching = 0
        self._fetched_ms: int | None = None
        self._joined_ms = 0
        self._join_wait_ms = self._settings.repeat_ms
        self._readied_ms: int | None = None
        self._ready_wait_ms = self._settings.repeat_ms

    @property
    def _settings(self) -> Settings:
        return self._machine.settings

    def all_unlisted(self) -> None:
        """Nobody has listed us: a JOIN says again who we are."""
        self.unlisted = set(self._intake.owned)

    def soon(self, now_ms: int) -> None:
        """Something changed: what is repeated starts from its shortest wait again.

        But a JOIN that is due is not put off: changes may come faster than its wait.
        """
        self._join_wait_ms = self._ready_wait_ms = self._settings.repeat_ms
        if not self.unlisted:
            self._joined_ms = now_ms
        self._readied_ms = None

    def wait_for_the_commit(self) -> None:
        """What was reported is not asked about while a commit may take its time."""
        self._join_wait_ms = self._settings.commit_wait_ms

    # --- offsets --------------------------------------------------------------------------------

    def fetch(self) -> None:
        """Ask for the committed offsets, unless that is asked already."""
        if not self._fetching:
            self._fetching = self._machine.call(lambda call: FetchOffsets(call=call))

    def refetch(self, now_ms: int) -> None:
        if self._fetched_ms is not None and now_ms - self._fetched_ms >= self._settings.repeat_ms // 2:
            self.fetch()

    def fetched(self, event: OffsetsFetched) -> None:
        """The answer; what it does not resolve is asked again later."""
        self._fetching = 0
        self._fetched_ms = event.now_ms if self._intake.unresolved else None

    # --- JOIN and READY -------------------------------------------------------------------------

    @property
    def joining(self) -> ParticipantJoin:
        """What we own, and where we take rows."""
        partitions = tuple(sorted(self._intake.owned))
        return ParticipantJoin(partitions=partitions, takes_at=self._settings.takes_at)

    def join(self, now_ms: int) -> None:
        """Say what we own."""
        if self._intake.owned:
            self._joined_ms = now_ms
            self._machine.send(self.joining)

    def join_again(self, now_ms: int) -> None:
        if now_ms - self._joined_ms >= self._join_wait_ms:
            self._join_wait_ms = min(2 * self._join_wait_ms, self._settings.repeat_max_ms)
            self.join(now_ms)

    def ready(self, now_ms: int) -> None:
        """Say READY where what is held is worth a transaction. Of no use where one is open."""
        if not self._intake.is_worth_a_transaction(now_ms):
            return
        if self._readied_ms is None or now_ms - self._readied_ms >= self._ready_wait_ms:
            if self._readied_ms is not None:
                self._ready_wait_ms = min(2 * self._ready_wait_ms, self._settings.repeat_max_ms)
                self.join(now_ms)  # unanswered: perhaps the coordinator does not know what we own
            self._readied_ms = now_ms
            self._machine.send(ParticipantReady())
