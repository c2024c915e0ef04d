"""Faults on the real parts: what is done to a pipeline, the one outcome that is expected, how soon.

A scenario is a row: its name, its two sentences, its configuration, its limit, and what acts on a running
world and returns what it measured. Most rows act by a function that many share (of `acts`, `kills`, `pauses`,
`upkeep_blows`), with what is their own bound to it; one that is like no other is a function of its own, under
`@scenario` or named by its row. The catalogue is what `docs/reliability.md` lists, `make faults` draws from
and `make test-all` takes a few of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from table.store.location import AZURE, FILE, GOOGLE, HDFS, S3

if TYPE_CHECKING:
    from tests.faults.stage import Stage

Notes = dict[str, float | int | str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one scenario showed."""

    recovery_s: float | None = None
    """From the fault's end (or the kill) to the next commit."""
    expiry_s: float = 0.0
    """On top of the scenario's limit, because the fault left the table locked."""
    notes: Notes = field(default_factory=dict)


EVERYWHERE = (FILE, S3, HDFS, GOOGLE, AZURE)
ON_FILES = (FILE,)
ON_S3 = (S3,)
ON_HDFS = (HDFS,)
ON_GOOGLE = (GOOGLE,)
ON_AZURE = (AZURE,)

Act = Callable[["Stage"], Outcome]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the catalogue."""

    name: str
    fault: str
    """What is done: a sentence of the documentation."""
    expected: str
    """What comes of it: another one."""
    act: Act
    limit_s: float | None = None
    """Of `Outcome.recovery_s`."""
    in_tests: bool = False
    """`make test-all` plays it too."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the pipeline's configuration, from the beginning."""
    upserts: Mapping[str, str] | None = None
    """See `Stage.with_upserts`, which takes these services. None: a table of inserts."""
    stores: tuple[str, ...] = EVERYWHERE
    """Where the table may be, as `table.store.location` has it: not on a server for what has to do with its
    files."""
    more_s: Mapping[str, float] = field(default_factory=dict)
    """By store: so much more than the limit is allowed there, since the store itself takes it."""
    group: str = ""

    def play(self, stage: Stage) -> Outcome:
        """Configure what nothing has been started of yet, and act."""
        if self.upserts is not None:
            stage.with_upserts(**self.upserts)
        stage.pipeline.settings |= self.settings
        return self.act(stage)


CATALOGUE: dict[str, Scenario] = {}


def put(group: str, *rows: Scenario, stores: tuple[str, ...] = EVERYWHERE) -> None:
    """Into the catalogue, in this order. `stores`: of those that say nothing of it themselves."""
    for row in rows:
        assert row.name not in CATALOGUE, f"two scenarios are called {row.name}"
        own = stores if row.stores == EVERYWHERE else row.stores
        CATALOGUE[row.name] = replace(row, group=group, stores=own)


def scenario(
    group: str,
    *,
    fault: str,
    expected: str,
    limit_s: float | None = None,
    in_tests: bool = False,
    settings: Mapping[str, str] | None = None,
    upserts: Mapping[str, str] | None = None,
    stores: tuple[str, ...] = EVERYWHERE,
    more_s: Mapping[str, float] | None = None,
) -> Callable[[Act], Act]:
    """Put the function into the catalogue under its own name, as the act of a row."""

    def named(act: Act) -> Act:
        name = act.__name__
        row = Scenario(name, fault, expected, act, limit_s, in_tests, settings or {}, upserts, stores)
        put(group, replace(row, more_s=more_s or {}))
        return act

    return named
