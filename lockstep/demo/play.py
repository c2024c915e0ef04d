"""What one demo has that another has not: its records, its table, its kills, and how its end is proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from lockstep.config import Config
from lockstep.demo.kills import Kill
from lockstep.demo.lake import Lake
from lockstep.demo.records import DemoRecord
from lockstep.demo.report import Finding


class Play(Protocol):
    """Everything else is the stage's, `lockstep.demo.stage`."""

    title: str
    started_as: str
    """The words of the command line."""

    encoded: str
    """What values are in, for people."""

    topic: str
    wanted: Mapping[int, int]
    """How many records each source partition gets, by its number."""

    per_second: int
    """The pace at which records are produced."""

    kills: tuple[Kill, ...]

    def prepare(self, folder: Path, stack: ExitStack, doing: Callable[[str], None]) -> Sequence[str]:
        """Called first: starts in the folder what it needs besides, and says what that is.

        `stack` ends it, `doing` is told what goes on. Raises `Failed`.
        """

    def records(self) -> Iterator[DemoRecord]:
        """All of them, in the order in which they are produced."""

    def sections(self, path: str) -> str:
        """[record], [table] and more of the pipeline's configuration; the table is at that address."""

    def look(self, lake: Lake, sent: int) -> Sequence[str]:
        """Called some times a second, `sent` records after the beginning: sentences about what is new."""

    def awaited(self) -> str:
        """All records are committed: what is to happen before the job leaves, as far as `look` has seen."""

    def prove(self, config: Config, config_path: Path, doing: Callable[[str], None]) -> Finding:
        """The job has left: what readers find in the table. `doing` is told what goes on. Raises `Failed`."""
