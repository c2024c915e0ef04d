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
    """A file that a commit names. `path` is relative to the table's base path; `rows` it holds."""

    path: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A completed instant. Times are the table's own text: `TableReader.time_ms` reads it.

    `writes`: it has to do with rows at all. `rearranges`: it moved rows to other files, and left them as they
    are. `state`: a Lockstep commit's. `updated`, `deleted`: rows of earlier instants that this one changed or
    removed; `replaces`: it took whole files away, and did not rearrange them.
    """

    requested: str
    completed: str
    action: str
    operation: str = ""
    state: TableState | None = None
    files: tuple[CommittedFile, ...] = ()
    updated: int = 0
    deleted: int = 0
    replaces: bool = False
    writes: bool = False
    rearranges: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingInstant:
    """An instant that is not completed. `phase`: `requested` or `inflight`.

    `owner`: its `lockstep.*` metadata without the prefix, empty for everybody else's. `rolls_back`: of a
    rollback, the instant it is to remove. `rollback_requested`: such a rollback names this instant.
    """

    requested: str
    action: str
    phase: str
    owner: Mapping[str, str] = field(default_factory=dict)
    rolls_back: str = ""
    rollback_requested: bool = False
