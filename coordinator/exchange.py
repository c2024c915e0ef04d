"""Whether workers hand rows over to each other in the next transaction, and whether all arrived. Pure.

An exchange that does not work must not stop a pipeline: a network may keep workers from each other. So one
that was aborted is followed by transactions without, each time by more of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from control_topic.messages import WriteStatus

WORKERS_MAX = 100
"""So many may hand rows over to each other, at most: each keeps streams to and from all others, and a
transaction's WRITE_STATUSes, which every worker reads, grow with the square of them, to some 800 kB."""

REST_MAX = 64
"""So many transactions without an exchange follow one that failed, at most."""


class Exchange:
    """One coordinator's memory of how it went."""

    def __init__(self) -> None:
        self._rest = 0
        self._next_rest = 1

    def takers(self, writers: Collection[str], takes_at: Mapping[str, str]) -> dict[str, str]:
        """Writer -> where it takes rows; empty where each is to write what it reads."""
        found = {who: takes_at.get(who, "") for who in writers}
        if self._rest or not 2 <= len(found) <= WORKERS_MAX or not all(found.values()):
            return {}
        return found

    def committed(self, exchanged: bool) -> None:
        """A transaction was, with an exchange or without."""
        if exchanged:
            self._next_rest = 1
        elif self._rest:
            self._rest -= 1

    def aborted(self, exchanged: bool) -> None:
        """One that was worth a commit was aborted, whoever is to blame."""
        if exchanged:
            self._rest, self._next_rest = self._next_rest, min(2 * self._next_rest, REST_MAX)


def disagreement(statuses: Mapping[str, WriteStatus]) -> tuple[str, str, int, int] | None:
    """Of a transaction in which everybody has answered: who handed rows over to whom, how many, and how many
    that one took, where these are not the same; None where all are.
    """
    for who, status in sorted(statuses.items()):
        for other, rows in sorted(status.handed.items()):
            taken = statuses[other].taken.get(who, 0) if other in statuses else 0
            if taken != rows:
                return who, other, rows, taken
        for other, rows in sorted(status.taken.items()):
            handed = statuses[other].handed.get(who, 0) if other in statuses else 0
            if handed != rows:
                return other, who, handed, rows
    return None
