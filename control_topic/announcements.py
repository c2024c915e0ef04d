"""Which of several runs of one pipeline started last, as far as people are told. Pure.

Announcements are on the control topic, where anybody may write: what a run does about a newer one it takes
from the table's folder (table/service/place.py).
"""

from __future__ import annotations

from control_topic.messages import RunAnnounce


def run_order(run: str, announcement: RunAnnounce) -> tuple[int, int, str]:
    """What tells which of two runs started later.

    The table's epoch counts first: it grows with the runs' commits, whatever their machines' clocks say.
    """
    return announcement.table_epoch, announcement.started_at_ms, run
