"""One table as two sides: Hudi's, on real files, and the one in memory. Drivers come and go on both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from control_topic.messages import DataFile, Range
from table.errors import TableError
from table.hudi.driver.rollback import _request, table_lock
from table.memory.table import Interruption, MemoryTable
from table.memory.timeline import MemoryTimeline
from table.port import Commit, TransactionalTable
from table.state import TableState
from tests.data_files import data_files
from tests.integration.test_hudi_table import (
    FOREIGN,
    PLAIN,
    QUICK_ARCHIVE,
    SOURCE,
    Driver,
    as_in_another_process,
)

PIPELINE = "events"
DAY_MS = 24 * 3_600_000


class Died(Exception):
    """The process is gone: nothing after it runs, nothing is given back."""


class TableDriver(Protocol):
    """One process that talks to the table; `write` is what a worker of its run does."""

    table: TransactionalTable
    pipeline: str

    def begin(self, transaction: str) -> str: ...

    def write(self, instant: str, rows: int, *, first: int = 0) -> DataFile: ...

    def planned(self, transaction: str, instant: str, rows: int, *files: DataFile) -> Commit: ...

    def run(self, transaction: str, rows: int = 0) -> str: ...


class TableSide(Protocol):
    def driver(self, pipeline: str = PIPELINE) -> TableDriver: ...

    def successor_rolls_back(self, instant: str) -> bool:
        """A driver comes, rolls an instant back, and goes. May be called inside of another one's commit."""

    def request_rollback_and_die(self, instant: str) -> None:
        """A driver requests the rollback of an instant, and dies before it carries it out."""

    def foreign_commit(self) -> str: ...

    def foreign_begin(self) -> str:
        """An instant of somebody else's that is open."""

    def foreign_rollback(self, instant: str) -> None:
        """A writer that rolls back whatever is open, as those with EAGER cleaning do."""

    def request_ahead(self) -> None:
        """A writer whose clock is a day ahead requests an instant."""

    def complete_ahead(self, instant: str) -> None:
        """A completed instant bears a completion time of tomorrow, as by a clock that was set back since."""

    def take_lock(self) -> None:
        """Somebody elsewhere takes the table lock, and is not heard of again."""

    def expire_lock(self) -> None: ...

    def is_locked(self) -> bool: ...

    def remove(self, path: str) -> None:
        """A data file is gone from storage."""

    def files(self) -> set[str]:
        """The data files that are on storage, by path."""

    def away(self) -> Any:
        """A context in which storage does not answer."""

    def archive(self, driver: TableDriver) -> None:
        """Commit until what was complete before is archived."""


def answer(do: Callable[[], Any]) -> Any:
    """What a call returned, or the kind of error that it raised."""
    try:
        return do()
    except TableError as error:
        return type(error).__name__


def accept(_newest: TableState | None) -> str:
    return ""


def tomorrow() -> str:
    """As Hudi names instants, in whatever zone."""
    return (datetime.now(UTC) + timedelta(days=2)).strftime("%Y%m%d%H%M%S000")


# --- Hudi -----------------------------------------------------------------------------------------------


class HudiSide:
    def __init__(self, spark: SparkSession, path: Path, opened: ExitStack) -> None:
        self._spark, self._path, self._opened = spark, path, opened
        self._properties: Mapping[str, str] = {
            **PLAIN,
            "hoodie.write.lock.client.num_retries": "1",
            "hoodie.write.lock.wait_time_ms": "300",
            **QUICK_ARCHIVE,
        }

    def driver(self, pipeline: str = PIPELINE) -> TableDriver:
        made = Driver(self._spark, self._path, self._properties, pipeline=pipeline)
        self._opened.callback(made.table.close)
        return made

    def successor_rolls_back(self, instant: str) -> bool:
        with as_in_another_process():
            made = Driver(
                self._spark, self._path, self._properties
            )  # here: Hudi calls back on another thread
        done = made.table.roll_back(instant)
        made.table.close()
        return done

    def request_rollback_and_die(self, instant: str) -> None:
        with as_in_another_process():
            made = Driver(self._spark, self._path, self._properties)
        with table_lock(made.table._session, made.table._watchdog):
            table = made.table
            assert _request(table._session, table._history, instant, table._fence) is not None
        made.table.close()

    def foreign_commit(self) -> str:
        client, instant = self._foreign()
        stats = self._spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        none = self._spark._jvm.org.apache.hudi.common.util.Option.empty()  # type: ignore[union-attr]
        assert client.client.commitStats(instant, stats, none, "commit", {}, none)
        client.close()
        return instant

    def foreign_begin(self) -> str:
        session, instant = self._foreign()
        session.close()
        return instant

    def _foreign(self) -> tuple[Any, str]:
        """A session of a writer that says nothing of whose an instant is, and its open instant."""
        made = Driver(self._spark, self._path, {**PLAIN, **FOREIGN})
        session = made.table._session
        instant = str(session.client.startCommit("commit"))
        timeline = session.reload()
        for one in timeline.getInstants():
            if one.requestedTime() == instant:
                timeline.transitionRequestedToInflight(one, session.none())
        operations = session.hudi.common.model.WriteOperationType
        session.client.setOperationType(operations.valueOf("BULK_INSERT"))
        return session, instant

    def foreign_rollback(self, instant: str) -> None:
        made = Driver(self._spark, self._path, {**PLAIN, **FOREIGN})
        assert made.table._session.client.rollback(instant)
        made.table.close()

    def request_ahead(self) -> None:
        (self._path / ".hoodie" / "timeline" / f"{tomorrow()}.deltacommit.requested").touch()

    def complete_ahead(self, instant: str) -> None:
        (file,) = (self._path / ".hoodie" / "timeline").glob(f"{instant}_*.commit")
        file.rename(file.with_name(f"{instant}_{tomorrow()}.commit"))

    @property
    def _lock(self) -> Path:
        return self._path / ".hoodie" / "lock"

    def take_lock(self) -> None:
        self._lock.touch(exist_ok=False)

    def expire_lock(self) -> None:
        self._lock.unlink()

    def is_locked(self) -> bool:
        return self._lock.exists()

    def remove(self, path: str) -> None:
        (self._path / path).unlink()

    def files(self) -> set[str]:
        found = data_files(self._path)
        return {str(path.relative_to(self._path)) for path in found}

    @contextmanager
    def away(self) -> Iterator[None]:
        """All that Hudi reads; its heartbeats would make the folder anew."""
        folder = self._path / ".hoodie"
        for name in ("hoodie.properties", "timeline"):
            os.rename(folder / name, folder / f"{name}.away")
        try:
            yield
        finally:
            for name in ("hoodie.properties", "timeline"):
                os.rename(folder / f"{name}.away", folder / name)

    def archive(self, driver: TableDriver) -> None:
        timeline = self._path / ".hoodie" / "timeline"
        before = {entry.name for entry in timeline.iterdir() if entry.suffix == ".commit"}
        for number in range(20):
            driver.run(f"archiving-{number}")
            if not before & {entry.name for entry in timeline.iterdir()}:
                return
        raise AssertionError("nothing was archived")


# --- in memory ------------------------------------------------------------------------------------------


class MemoryDriver:
    def __init__(self, timeline: MemoryTimeline, pipeline: str) -> None:
        self.timeline, self.pipeline = timeline, pipeline
        self.table = MemoryTable(timeline, pipeline, wall_ms=self._wall_ms)
        self.table.open()

    def _wall_ms(self) -> int:
        """A clock that goes on by itself, and is right."""
        self.timeline.now_ms += 1
        return self.timeline.now_ms

    def begin(self, transaction: str) -> str:
        return self.table.begin(run="run", transaction=transaction)

    def write(self, instant: str, rows: int, *, first: int = 0) -> DataFile:
        path = f"a/{instant}-{len(self.timeline.files)}-{first}"
        self.timeline.write_file(path, instant)
        return DataFile(path=path, body=path, table_partition="a", rows=rows, size_bytes=rows)

    def planned(self, transaction: str, instant: str, rows: int, *files: DataFile) -> Commit:
        newest = self.table.newest()
        expected = dict(newest.offsets) if newest is not None else {}
        start = expected.get(SOURCE, 0)
        state = TableState(
            pipeline=self.pipeline,
            run="run",
            epoch=1,
            transaction=transaction,
            offsets={SOURCE: start + rows},
            ranges=(Range(partition=SOURCE, start=start, next=start + rows, records=rows),),
        )
        return Commit(instant=instant, expected=expected, state=state, files=files)

    def run(self, transaction: str, rows: int = 0) -> str:
        instant = self.begin(transaction)
        newest = self.table.newest()
        first = newest.offsets[SOURCE] if newest is not None else 0
        files = [self.write(instant, rows, first=first)] if rows else []
        self.table.commit(self.planned(transaction, instant, rows, *files), fence=accept)
        return instant


class MemorySide:
    def __init__(self) -> None:
        self._timeline = MemoryTimeline()

    def driver(self, pipeline: str = PIPELINE) -> TableDriver:
        return MemoryDriver(self._timeline, pipeline)

    def successor_rolls_back(self, instant: str) -> bool:
        return MemoryTable(self._timeline, PIPELINE).roll_back(instant)

    def request_rollback_and_die(self, instant: str) -> None:
        def dies(step: Interruption) -> None:
            if step is Interruption.ROLLBACK_REQUESTED:
                raise Died

        try:
            MemoryTable(self._timeline, PIPELINE, at=dies).roll_back(instant)
        except Died:
            return
        raise AssertionError("nothing was requested")

    def foreign_commit(self) -> str:
        return self._timeline.foreign_commit()

    def foreign_begin(self) -> str:
        return self._timeline.foreign_begin()

    def foreign_rollback(self, instant: str) -> None:
        self._timeline.foreign_rollback(instant)

    def request_ahead(self) -> None:
        self._timeline.new_instant(self._timeline.later(self._timeline.now_ms + DAY_MS))

    def complete_ahead(self, instant: str) -> None:
        self._timeline.instants[instant].completed_at = self._timeline.later(self._timeline.now_ms + DAY_MS)

    def take_lock(self) -> None:
        assert self._timeline.lock_holder is None
        self._timeline.lock_holder = object()

    def expire_lock(self) -> None:
        self._timeline.expire_lock()

    def is_locked(self) -> bool:
        return self._timeline.lock_holder is not None

    def remove(self, path: str) -> None:
        del self._timeline.files[path]

    def files(self) -> set[str]:
        return set(self._timeline.files)

    @contextmanager
    def away(self) -> Iterator[None]:
        self._timeline.available = False
        try:
            yield
        finally:
            self._timeline.available = True

    def archive(self, driver: TableDriver) -> None:
        """Nothing that the port tells depends on it: there is no second timeline here."""
        for number in range(4):
            driver.run(f"archiving-{number}")
