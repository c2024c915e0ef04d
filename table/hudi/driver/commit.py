"""One commit: the files' statistics, and the check that Hudi makes inside its table lock.

What is looked at of the files themselves is in table/hudi/driver/looking.py.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from control_topic.causes import CHECK, LOCK
from control_topic.messages import DataFile
from table.chain import does_not_follow, follows
from table.checks import rival_open
from table.errors import Contradiction, Refused, TableError, Unavailable
from table.hudi.columns import widened, with_others
from table.hudi.driver.callbacks import PY4J_LOGGERS
from table.hudi.driver.clock import check_clock
from table.hudi.driver.history import History, Seen, rollbacks
from table.hudi.driver.java import reading
from table.hudi.driver.replaced import Replaced
from table.hudi.driver.session import Session
from table.hudi.driver.table_lock import Holder
from table.hudi.driver.watchdog import Watchdog
from table.hudi.files.log_file import log_file_version
from table.hudi.layout import file_id
from table.hudi.reader.schema_history import renamed_or_dropped
from table.hudi.reader.torn import Torn
from table.port import UPSERT, Commit, TableSpec
from table.state import PREFIX, TableState

CHECK_S = 15.0
"""How long the check may take: well below what the lock lives."""


class _RefusalsAreNoAccidents(logging.Filter):
    """Py4J logs every exception of a callback with its stack trace; ours are answers."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], TableError))


for _name in PY4J_LOGGERS:
    logging.getLogger(_name).addFilter(_RefusalsAreNoAccidents())


class Timing:
    """How long the parts of one commit take, of `control_topic.causes.COMMIT_PARTS`, one after the other.

    Whole milliseconds, rounded down: together they are never more than the whole.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._since_s = clock_s()
        self._inside: tuple[str, int] | None = None
        self.took_ms: dict[str, int] = {}

    def inside(self, part: str, took_ms: int | None) -> None:
        """So much of what ends next was this part's, by somebody else's clock; None where nobody knows."""
        self._inside = (part, took_ms) if took_ms is not None else None

    def ended(self, part: str) -> None:
        """What comes now is another part's."""
        now_s = self._clock_s()
        whole_ms = int((now_s - self._since_s) * 1_000)
        if self._inside is not None:
            apart, apart_ms = self._inside
            self.took_ms[apart] = min(apart_ms, whole_ms)
            whole_ms -= self.took_ms[apart]
        self.took_ms[part] = whole_ms
        self._since_s, self._inside = now_s, None

    def begins(self) -> None:
        """What was since the last part's end is of none."""
        self._since_s = self._clock_s()


class PreCommit:
    """Hudi calls `accept` under the table lock; raising there ends the commit without effect.

    `check`: whether it may be completed; `decide`: that it is, last of all. `objection`: what was raised, for
    whoever sees Java's exception; `decided`: nothing was. Takes no Python lock.
    """

    def __init__(
        self,
        check: Callable[[], None],
        decide: Callable[[], None],
        watchdog: Watchdog,
        holder: Holder,
        timing: Timing,
    ) -> None:
        self._timing = timing
        self._check = check
        self._decide = decide
        self._watchdog = watchdog
        self._holder = holder
        self.objection: TableError | None = None
        self.decided = False

    def accept(self, _meta: Any, _commit_metadata: Any) -> None:
        started_at = time.monotonic()
        self._timing.ended(LOCK)
        with self._watchdog.inside():
            try:
                self._holder.check()
                self._check()
                if time.monotonic() - started_at > CHECK_S:
                    raise Unavailable(f"the check under the table lock took longer than {CHECK_S:.0f} s")
                self._decide()
                self.decided = True
                self._timing.ended(CHECK)
            except TableError as error:
                self.objection = error
                raise

    class Java:
        implements = ("java.util.function.BiConsumer",)


HISTORY = "latest_schema"
"""By which a commit with schema-on-read keeps the ids of columns: Hudi's SerDeHelper.LATEST_SCHEMA."""


class Columns:
    """The table's columns as our commits say them, and whether those of others still agree.

    Where another writer has made a column nullable meanwhile, ours becomes so, too, and the commit that met
    this is tried again: its metadata was made before, and said NOT NULL. So it is with columns that others
    have added, where the run follows what it meets.

    Hudi takes the schema of the newest commit for the table's: without a look at others' commits, ours would
    take away the columns that they added. `schema`: ours, in Avro. To be made right after the table was
    loaded, which is when `schema` fitted.
    """

    def __init__(self, session: Session, spec: TableSpec, schema: str) -> None:
        self._session = session
        self._spec = spec
        self._schema = self._kept = self._said = schema
        self._ours = ""
        self._seen = Seen(session)
        self._seen.note(_completed(session.meta.getActiveTimeline()))

    def widen(self, columns: Mapping[str, str]) -> None:
        """Before a commit: what workers have written with is among its columns. `columns`: as of `Commit`.

        Raises `Contradiction`.
        """
        self._schema = widened(self._kept, columns, self._spec)
        self._say()

    def settle(self, *, decided: bool) -> None:
        """After it. `decided`: it may have landed, and if so the table has these columns."""
        if decided:
            self._kept = self._schema

    def _say(self) -> None:
        if self._said != self._schema:
            self._session.use_schema(self._schema)
            self._said = self._schema

    def check(self, instant: str) -> None:
        """Raise `Contradiction` where somebody has changed them. Under the table lock, after a reload.

        `instant`: the one that is about to be completed, which needs no look afterwards.
        """
        with reading(f"table {self._session.path}: its timeline cannot be read"):
            timeline = self._session.meta.getActiveTimeline()
            completed = _completed(timeline)
            for one in self._seen.fresh(completed):
                if one.requestedTime() != self._ours:
                    self._look_at(one, timeline.readCommitMetadata(one))
            self._seen.note(completed)
        self._ours = instant

    def _look_at(self, instant: Any, made: Any) -> None:
        if made.getMetadata(HISTORY) and (change := renamed_or_dropped(self._session.store)):
            raise Contradiction(
                f"another writer changed the table's columns while this run went on (instant "
                f"{instant.requestedTime()}): {change} with Hudi's schema-on-read, which no commit of "
                "Lockstep's carries on"
            )
        theirs = made.getMetadata("schema")
        operations = self._session.hudi.common.model.WriteOperationType
        if theirs and operations.canUpdateSchema(made.getOperationType()):
            self._compare(str(instant.requestedTime()), str(theirs))

    def _compare(self, instant: str, theirs: str) -> None:
        doing = f"another writer changed the table's columns while this run went on (instant {instant})"
        try:
            kept = with_others(self._kept, theirs, self._spec)
            said = with_others(self._schema, theirs, self._spec)
        except Contradiction as error:
            raise Contradiction(f"{doing}: {error}; then start again") from error
        self._kept = kept
        if said != self._schema:
            self._schema = said
            self._say()
            raise Unavailable(f"{doing}, which this commit is to say as well")


def _completed(timeline: Any) -> Any:
    """A java.util.List of the commits of an active timeline that are complete, everybody's."""
    return timeline.getCommitsTimeline().filterCompletedInstants().getInstants()


def check(
    session: Session,
    history: History,
    commit: Commit,
    fence: Callable[[TableState | None], str],
    columns: Columns,
    replaced: Replaced | None,
    torn: Torn | None,
) -> None:
    """Raise `Refused` unless the commit follows from what the table holds now. Under the table lock."""
    instant, transaction = commit.instant, commit.state.transaction
    found = {one.time: one for one in history.pending()}
    pending = found.get(instant)
    if pending is None or not pending.instant.isInflight():
        raise Refused(f"instant {instant} cannot be completed: it is not inflight any more")
    if not history.ours(pending) or pending.owner.get(PREFIX + "transaction") != transaction:
        owner = pending.owner.get(PREFIX + "transaction", "somebody else")
        raise Refused(f"instant {instant} cannot be completed: it belongs to {owner}, not to {transaction}")
    if instant in rollbacks(session):
        raise Refused(f"instant {instant} cannot be completed: its rollback is requested")
    rival = next((one.time for one in found.values() if one.time != instant and history.ours(one)), "")
    if rival:
        raise Refused(rival_open(instant, rival))
    newest = history.newest(loaded=True)
    objection = fence(newest)
    if objection:
        raise Refused(objection)
    committed = dict(newest.offsets) if newest is not None else {}
    if committed != dict(commit.expected):
        raise Refused(_moved(commit, committed, newest))
    if newest is not None and not follows(newest, commit.state):
        raise Refused(f"instant {instant} cannot be completed: {does_not_follow(newest, commit.state)}")
    check_clock(session)
    columns.check(instant)
    if replaced is not None:
        replaced.check(commit.files)
    if torn is not None:
        torn.check()


def write_stats(session: Session, mode: str, commit: Commit) -> Any:
    """A java.util.List of HoodieWriteStat, one per file, filled as Hudi's own writers fill them.

    Through Hudi's own JSON: a call into Java for each of their fields took a millisecond a file.
    """
    stats, model = session.jvm.java.util.ArrayList(), session.hudi.common.model
    made, of_one = (
        (model.HoodieDeltaWriteStat(), _log_stat) if mode == UPSERT else (model.HoodieWriteStat(), _stat)
    )
    mapper = session.hudi.common.util.JsonUtils.getObjectMapper()
    kinds = mapper.getTypeFactory().constructCollectionType(stats.getClass(), made.getClass())
    return mapper.readValue(json.dumps([of_one(file, commit.instant) for file in commit.files]), kinds)


def _stat(file: DataFile, _instant: str) -> dict[str, Any]:
    return {
        "fileId": file_id(file),
        "path": file.path,
        "partitionPath": file.table_partition,
        "prevCommit": "null",
        "numWrites": file.rows,
        "numInserts": file.rows,
        "totalWriteBytes": file.size_bytes,
        "fileSizeInBytes": file.size_bytes,
    }


def _log_stat(file: DataFile, instant: str) -> dict[str, Any]:
    """Of a log file nobody knows here which of its rows are new: they count as updates."""
    name = PurePosixPath(file.path).name
    return {
        "fileId": file_id(file),
        "path": file.path,
        "partitionPath": file.table_partition,
        "prevCommit": instant,
        "numWrites": file.rows + file.deletes,
        "numUpdateWrites": file.rows,
        "numDeletes": file.deletes,
        "totalWriteBytes": file.size_bytes,
        "fileSizeInBytes": file.size_bytes,
        "baseFile": "",
        "logFiles": [name],
        "logVersion": log_file_version(name),
        "logOffset": 0,
    }


def _moved(commit: Commit, committed: dict[Any, int], newest: TableState | None) -> str:
    expected = dict(commit.expected)
    first = min(one for one in {*committed, *expected} if committed.get(one) != expected.get(one))
    since = f"instant {newest.instant}" if newest is not None else "no instant"
    return (
        f"instant {commit.instant}: transaction {commit.state.transaction} starts at {first} offset "
        f"{expected.get(first, 'none')}, the table is at {committed.get(first, 'none')} since {since}: "
        "recover and take the source partitions again from there"
    )
