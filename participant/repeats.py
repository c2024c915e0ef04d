"""What the participant says or asks again until it is answered: the bus may lose any of it. Pure."""

from __future__ import annotations

from control_topic.messages import ParticipantJoin, ParticipantReady, SourcePartition
from participant.events import Event, FetchOffsets, Settings
from participant.intake import Intake


class Repeats(Intake):
    """Waits double from `repeat_ms` to `repeat_max_ms` and start again where something changes.

    `unlisted`: source partitions of ours that the last START did not give us.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.unlisted: set[SourcePartition] = set()
        self.fetch_ms: int | None = None
        self.joined_ms = 0
        self.join_wait_ms = settings.repeat_ms
        self.readied_ms: int | None = None
        self.ready_wait_ms = settings.repeat_ms

    def _repeat_soon(self, event: Event) -> None:
        """Something changed: what is repeated starts from its shortest wait again.

        But a JOIN that is due is not put off: changes may come faster than its wait.
        """
        self.join_wait_ms = self.ready_wait_ms = self.settings.repeat_ms
        if not self.unlisted:
            self.joined_ms = event.now_ms
        self.readied_ms = None

    def _refetch(self, event: Event) -> None:
        if self.fetch_ms is not None and event.now_ms - self.fetch_ms >= self.settings.repeat_ms // 2:
            self._fetch(event)

    def _fetch(self, event: Event) -> None:
        self.fetch_ms = event.now_ms + self.settings.repeat_max_ms  # until the answer comes
        self._out.append(FetchOffsets())

    def _join(self, event: Event) -> None:
        if not self.owned:
            return
        self.joined_ms = event.now_ms
        self._send(ParticipantJoin(partitions=tuple(sorted(self.owned))))

    def _repeat_join(self, event: Event) -> None:
        if event.now_ms - self.joined_ms >= self.join_wait_ms:
            self.join_wait_ms = min(2 * self.join_wait_ms, self.settings.repeat_max_ms)
            self._join(event)

    def _maybe_ready(self, event: Event) -> None:
        if self.work is not None or not self._holds_work(event):
            return
        if self.readied_ms is None or event.now_ms - self.readied_ms >= self.ready_wait_ms:
            if self.readied_ms is not None:
                self.ready_wait_ms = min(2 * self.ready_wait_ms, self.settings.repeat_max_ms)
                self._join(event)  # unanswered: perhaps the coordinator does not know what we own
            self.readied_ms = event.now_ms
            self._send(ParticipantReady())
