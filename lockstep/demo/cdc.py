"""The demo of change data: a shop's orders as Debezium tells them, a compaction on the way, a kill."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path

from lockstep.config import Config
from lockstep.demo.cdc_proof import Compared, compare
from lockstep.demo.kills import one_kill
from lockstep.demo.lake import Lake
from lockstep.demo.pipeline import PARTITIONS
from lockstep.demo.records import DemoRecord
from lockstep.demo.shop import FOLLOWED, KEY, SCHEMA, Shop, records
from lockstep.errors import Failed
from lockstep.output import readable_count
from table.errors import TableError
from table.instants import Instant
from table.kinds import HUDI, table_kind
from table.store.settings import StoreSettings

SNAPSHOT_PART = 4
"""One event in so many is a row that the snapshot reads, the others are changes."""
EVENTS_MIN = SNAPSHOT_PART * FOLLOWED
EVENTS_MAX = 4_000_000
"""The model is a dict in this process."""
COMPACTION_EVERY = 3
BUCKETS = 4
LOOK_S = 1.0

COMMIT, COMPACTION = "deltacommit", "commit"
"""The actions of a merge-on-read table's timeline that change what is in it, or where."""


class ChangeDataPlay:
    """As `lockstep.demo.play.Play` says. `events`: change events, EVENTS_MIN to EVENTS_MAX."""

    started_as = "demo --cdc"
    encoded = "JSON"
    topic = "shop.orders"
    per_second = 15_000

    def __init__(self, events: int) -> None:
        orders = events // SNAPSHOT_PART
        self._shop = Shop(orders=orders, changes=events - orders)
        self._model = self._shop.model(PARTITIONS)
        self.title = f"{readable_count(events)} change events of a shop's orders, exactly once"
        self.wanted: Mapping[int, int] = dict(sorted(self._model.spread.items()))
        self.kills = one_kill()
        self._snapshot_is_told = False
        self._seen = ""  # the completion of the newest instant that was looked at
        self._compactions = 0
        self._looked_s = 0.0

    def prepare(self, folder: Path, stack: ExitStack, doing: Callable[[str], None]) -> Sequence[str]:
        return ()

    def records(self) -> Iterator[DemoRecord]:
        return records(self._shop, PARTITIONS)

    def sections(self, path: str) -> str:
        return f"""\
[record]
schema = "{SCHEMA}"
envelope = "debezium"
decimal_handling = "string"

[table]
path = "{path}"
name = "orders"
kind = "upsert"
key = ["{KEY}"]
buckets = {BUCKETS}

[services]
compaction_every = {COMPACTION_EVERY}
"""

    def look(self, lake: Lake, sent: int) -> Sequence[str]:
        """That the snapshot is over, and compactions that have been completed."""
        said = []
        if not self._snapshot_is_told and sent > self._shop.orders:
            self._snapshot_is_told = True
            orders = readable_count(self._shop.orders)
            said.append(f"{orders} rows were read by the snapshot; from here on they change, go and come")
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s = time.monotonic()
            said += self._compacted(lake)
        return said

    def _compacted(self, lake: Lake) -> Iterator[str]:
        try:
            found = completed_since(lake.path, lake.storage, self._seen)
        except TableError:
            return  # there is none yet, or one file of it only half; the next look is soon
        for instant in found:
            self._seen = instant.completed
            if instant.action == COMPACTION:
                self._compactions += 1
                files = len(instant.files)
                yield f"compaction {instant.requested}: log files are merged into {files} base files"

    def awaited(self) -> str:
        """The table that is read in the end shall have base files and log files."""
        return "" if self._compactions else "the table's first compaction is completed"

    def prove(self, config: Config, config_path: Path, doing: Callable[[str], None]) -> Compared:
        doing(f"Spark SQL reads the table, and order {FOLLOWED} as it was after each commit")
        try:
            instants = completed_since(config.table.path, config.store_settings(), "")
        except TableError as error:
            raise Failed(str(error)) from error
        return compare(
            self._model,
            # As of its instant Hudi passes a commit over where a compaction was planned while it was open.
            commits=[one.completed for one in instants if one.action == COMMIT],
            compactions=sum(one.action == COMPACTION for one in instants),
            config=config,
            config_path=config_path,
        )


def completed_since(path: str, storage: StoreSettings | None, completed: str) -> list[Instant]:
    """Instants that were completed after that one, oldest first. Raises `TableError`."""
    instants = table_kind(HUDI).reader(path, storage).completed()
    return list(takewhile(lambda one: one.completed > completed, instants))[::-1]
