"""Cleaning and archiving: file versions and instants that Hudi's settings keep no longer.

Hudi would do both within every commit, which at 60 table partitions made commits take seconds. What is
cleaned is what a compaction, a clustering or a foreign writer has replaced. A clean that was left half done
is finished by the next one, which is how Hudi does it; archiving is one change under the table lock.

Hudi's LAZY cleaning also rolls back what looks given up: an open instant whose heartbeat has not beaten for
some minutes, as after the machine was suspended. It picks it without the table lock, waits for that, and does
not look again: by then the instant may be complete, and its rows are gone from Hudi's metadata table. So ours
rolls nothing back; what a pipeline has left open its own next run rolls back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from table.hudi.driver.clock import await_clock
from table.hudi.driver.java import changing
from table.hudi.driver.session import Session
from table.hudi.properties import AUTO_ARCHIVE, FAILED_WRITES
from table.hudi.upkeep.due import ByCommits, Done, Opener
from table.port import UPSERT, TableSpec


class Cleaning(ByCommits):
    """Implements `table.hudi.upkeep.due.ServiceWork`."""

    name = "cleaning"

    def __init__(self, spec: TableSpec) -> None:
        # Hudi archives only where it believes in the index, and its Java client knows no bucket index.
        self._by_spark = spec.mode == UPSERT
        # Of upserts it is off in any case.
        self.properties: Mapping[str, str] = {} if self._by_spark else {AUTO_ARCHIVE: "false"}

    def open(self, opener: Opener) -> Session:
        return opener(by_spark=self._by_spark)

    def tidy(self, session: Session) -> None:
        """Hudi's next clean begins with what is pending."""

    def run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        instant, removed, archived = "", 0, 0
        await_clock(session)
        with changing(f"table {session.path} could not be cleaned", session.lock.folder):
            session.choose_client()
            session.lock.holder.free_if_dead()
            doing("file versions")
            session.set_directly(FAILED_WRITES, "NEVER")
            cleaned = session.client.clean()
            if cleaned is not None:
                instant, removed = str(cleaned.getStartCleanTime()), int(cleaned.getTotalFilesDeleted())
        with changing(f"table {session.path}: its timeline could not be archived", session.lock.folder):
            if not session.archives_itself():
                doing("instants")
                archived = session.archive()
        return Done(instant, f"{removed:,} files removed, {archived:,} instants archived")
