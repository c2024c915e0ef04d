"""Whose fault it is that a worker ends, and what is done about it. Pure: standard library only."""

from __future__ import annotations

from enum import StrEnum


class WorkerFault(StrEnum):
    """A kind of outage is one value: to add one, say here whether it is waited out."""

    PIPELINE = "pipeline"
    """Its own: counted, and too many halt the run."""
    STORAGE = "storage"
    """Files of the table could not be written."""
    DEAD_LETTERS = "dead letters"
    """The topic of the dead letters does not take them, and may yet."""

    @property
    def is_outage(self) -> bool:
        """Waited out, with back-off, for as long as an outage may last: `Limits.outage_budget_ms`."""
        return self is not WorkerFault.PIPELINE
