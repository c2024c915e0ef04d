"""The steps of a verification, in order: timeline, rows, log, verdict."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from lockstep.verify.chain import follow
from lockstep.verify.judge import Log, judge
from lockstep.verify.report import VerifyReport
from lockstep.verify.rows import count_rows
from table.chain import place
from table.errors import Unavailable
from table.instants import Instant
from table.kinds import HUDI, table_kind
from table.port import UPSERT
from table.state import TableState
from table.store.settings import StoreSettings

log = logging.getLogger("lockstep.verify")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Foreign:
    """What another writer's instant did to rows that were there before it."""

    updated: int = 0
    deleted: int = 0
    replaces: bool = False

    @property
    def changes(self) -> bool:
        return self.replaces or self.updated > 0 or self.deleted > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """A timeline's commits, ours oldest first."""

    ours: list[tuple[Instant, TableState]]
    foreign: dict[str, _Foreign]

    def excusable(self) -> int:
        """How many rows may be missing because others removed them."""
        if any(one.replaces for one in self.foreign.values()):
            return sys.maxsize
        return sum(one.deleted for one in self.foreign.values())


def verify_table(
    base_path: str,
    pipeline: str,
    source_log: Log,
    *,
    kind: str = HUDI,
    storage: StoreSettings | None = None,
) -> VerifyReport:
    """Verify one pipeline's part of the table. Raises `TableError`, `StateError` where it cannot begin.

    `kind`: a name in `table.kinds`. `storage`: how the table's store is reached.
    """
    reader = table_kind(kind).reader(base_path, storage)
    report = VerifyReport(pipeline=pipeline, table=reader.place)
    split = _split(reader.completed(), pipeline)
    if not split.ours:
        report.not_checkable.append(
            f"No commit of pipeline {pipeline} is on the table's timeline: check pipeline.id and table.path"
        )
        return report
    if said := reader.damage():
        report.metadata_broken.append(said)
    states = [state for _, state in split.ours]
    report.commits = len(states)
    report.first_instant, report.last_instant = states[0].instant, states[-1].instant
    report.epoch = max(state.epoch for state in states)
    log.info("%d commits of ours, %d of others", len(states), len(split.foreign))
    chain = follow(states)
    if reader.mode == UPSERT:
        report.not_checkable.append(
            "The table takes upserts: records change rows, and a row does not tell of all that changed "
            "it. That the commits' ranges follow each other was checked"
        )
        report.ranges_broken = chain.broken
        report.conclude(excusable=0)
        return report
    changes = {instant: one.changes for instant, one in split.foreign.items()}
    try:
        found = reader.rows()
    except Unavailable as error:
        report.not_checkable.append(str(error))
        report.ranges_broken = chain.broken
        report.conclude(excusable=0)
        return report
    rows = count_rows(found, chain, until=max(chain.eras), foreign=changes)
    log.info("%d rows of ours, %d of others", rows.own, rows.foreign)
    judge(report, chain, rows, source_log)
    rewritten = sum(part.rewritten for part in report.partitions)
    if rewritten:
        changing = sorted(instant for instant, changed in changes.items() if changed)
        report.not_checkable.append(
            f"{rewritten} rows were rewritten by other writers (instants {', '.join(changing[:5])}"
            f"{' …' if len(changing) > 5 else ''}): what they held before cannot be checked"
        )
    report.conclude(excusable=split.excusable())
    return report


def _split(instants: Iterable[Instant], pipeline: str) -> _Split:
    ours: list[tuple[Instant, TableState]] = []
    foreign: dict[str, _Foreign] = {}
    for instant in instants:
        if instant.state is not None and instant.state.pipeline == pipeline:
            ours.append((instant, instant.state))
        elif instant.rearranges:
            foreign[instant.requested] = _Foreign()
        elif instant.writes:
            foreign[instant.requested] = _Foreign(
                updated=instant.updated, deleted=instant.deleted, replaces=instant.replaces
            )
    ours.sort(key=lambda one: (place(one[1]), one[0].requested))
    return _Split(ours=ours, foreign=foreign)
