"""How many records a transaction may take, where writing one took too long. Pure.

A round that is waited for beyond the write timeout costs what it costs; the next ones are smaller, so that
less waits for them and less is lost where one fails after all. The limit goes away slowly, and comes back
where it went away too soon.
"""

from __future__ import annotations

GROWTH = 8
"""The limit grows by one part in so many with each round that is quick again."""


class Pace:
    """`patience_ms`: a round that takes longer was too large; one that takes half of it has room.

    `records_min`: no round is made smaller. What is slow then is not its size.
    """

    def __init__(self, patience_ms: int, records_min: int) -> None:
        self._patience_ms = patience_ms
        self._records_min = records_min
        self._too_many = 0
        self.records_max = 0
        """For the next transaction, all writers together; 0 is no limit."""

    def be_patient(self, patience_ms: int) -> None:
        """From the next round on."""
        self._patience_ms = patience_ms

    def written(self, took_ms: int, records: int) -> None:
        """Every file of a round is there, so long after its end."""
        if took_ms > self._patience_ms:
            self._shrink(records)
        elif self.records_max and took_ms <= self._patience_ms // 2:
            self._grow()

    def given_up(self, records: int) -> None:
        """A round in which files were being written did not come to its end."""
        self._shrink(records)

    def _shrink(self, records: int) -> None:
        if not records:
            return
        if not self.records_max:
            self._too_many = records
        held = min(records, self.records_max or records)
        self.records_max = max(self._records_min, held // 2)

    def _grow(self) -> None:
        self.records_max += max(1, self.records_max // GROWTH)
        if self.records_max >= self._too_many:
            self.records_max = 0
