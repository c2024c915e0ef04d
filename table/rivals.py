"""Which of several runs of one pipeline started last. Pure.

A run announces itself on the control topic when it starts, and may lose that announcement with the topic. So
a run whose worker was fenced announces itself again, and whoever started later answers with its own
announcement. Which of two started later is in the announcements, not in their order on the topic.
"""

from __future__ import annotations

from control_topic.messages import Message, RunAnnounce


class Rivals:
    """What `run` knows of other runs. `newer`: the newest that started after it; empty where none is known.

    Only what follows this run's own announcement on the topic counts: earlier ones may be of runs long gone.
    """

    def __init__(self, run: str, announcement: RunAnnounce) -> None:
        self._run = run
        self._own = self._newest = run_order(run, announcement)
        self._announced = False
        self.newer = ""

    def hear(self, message: Message) -> bool:
        """Take a message of the control topic; whether it is to be answered with our own announcement."""
        body = message.body
        if not isinstance(body, RunAnnounce):
            return False
        if message.run == self._run:
            self._announced = True
            return False
        if not self._announced:
            return False
        order = run_order(message.run, body)
        if order > self._newest:
            self.newer, self._newest = message.run, order
        return order < self._own


def run_order(run: str, announcement: RunAnnounce) -> tuple[int, int, str]:
    """What tells which of two runs started later.

    The table's epoch counts first: it grows with the runs' commits, whatever their machines' clocks say.
    """
    return announcement.table_epoch, announcement.started_at_ms, run
