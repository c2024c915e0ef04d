"""What a table tells of its history, whatever its kind. Pure: standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from table.errors import Refused
from table.state import TableState


class MissingTable(Refused):
    """There is no table at the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedFile:
    """A file that a commit names."""

    path: str
    """Relative to the table's base path."""
    rows: int
    """It holds so many."""
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A completed instant. Times are the table's own text: `TableReader.time_ms` reads it."""

    requested: str
    completed: str
    action: str
    operation: str = ""
    state: TableState | None = None
    """A Lockstep commit's."""
    files: tuple[CommittedFile, ...] = ()
    updated: int = 0
    """Rows of earlier instants that this one changed."""
    deleted: int = 0
    """Likewise, that it removed."""
    replaces: bool = False
    """It took whole files away, and did not rearrange them."""
    writes: bool = False
    """It has to do with rows at all."""
    rearranges: bool = False
    """It moved rows to other files, and left them as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """An instant that an operator keeps readable: nothing after it leaves the active timeline."""

    instant: str
    """The requested time of the commit that is saved."""
    created: str
    """The completion time of the savepoint, as `TableReader.time_ms` reads it."""
    kept: int
    """Completed instants on the active timeline that completed after the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingInstant:
    """An instant that is not completed."""

    requested: str
    action: str
    phase: str
    """`requested` or `inflight`."""
    owner: Mapping[str, str] = field(default_factory=dict)
    """Its `lockstep.*` metadata without the prefix, empty for everybody else's."""
    rolls_back: str = ""
    """Of a rollback, the instant that it is to remove."""
    rollback_requested: bool = False
    """Such a rollback names this instant."""
