"""Why transactions end, in words that never change: what people read, counters count and alerts name. Pure.

The sentences beside them are for people and may say anything. Whoever reads one of these from the topic takes
what is not listed here for `OTHER`: it comes from a newer version, or from somebody else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

INTERVAL = "interval"
RECORDS = "records"
BYTES = "bytes"
MEMORY = "memory"
REACHED_END = "reached_end"
DRAIN = "drain"
SCHEDULE = "schedule"
ALIGN = "align"
REQUESTED = "requested"

END_REASONS: Mapping[str, str] = {
    INTERVAL: "the interval was over",
    RECORDS: "a worker had as many records as it may take",
    BYTES: "a worker had as many bytes as it may take",
    MEMORY: "a worker's memory was full",
    REACHED_END: "everybody had reached the end that the run was to reach",
    DRAIN: "the run drains",
    SCHEDULE: "its time had come",
    ALIGN: "a boundary that no transaction spans had come",
    REQUESTED: "an operator asked for it",
}
"""Of END_COMMIT, each in words."""

NOTHING = "nothing_to_commit"
WORKER_DIED = "worker_died"
WORKER_LEFT = "worker_left"
TAKEN_OVER = "taken_over"
SILENT = "silent"
TOO_LONG = "too_long"
NOT_TAKEN = "not_taken"
REFUSED = "refused"
NOT_LANDED = "not_landed"
COORDINATOR_LOST = "coordinator_lost"

ABORT_CAUSES: Mapping[str, str] = {
    NOTHING: "there was nothing to commit",
    WORKER_DIED: "a worker that was to write died",
    WORKER_LEFT: "a worker gave up what it had open",
    TAKEN_OVER: "another worker took over a source partition of it",
    SILENT: "a worker neither reported nor got on for the write timeout",
    TOO_LONG: "writing files took longer than the write limit",
    NOT_TAKEN: "rows that one worker handed over to another did not all arrive",
    REFUSED: "the table refused the commit",
    NOT_LANDED: "the commit's outcome was unknown, and it proved not to have landed",
    COORDINATOR_LOST: "its coordinator was lost, and the next one rolled it back",
}
"""Of ABORT_COMMIT, each in words; the last is never said, but concluded from the next START."""

FILES = "files"
LOCK = "lock"
CHECK = "check"
METADATA = "metadata"
WRITE = "write"

COMMIT_PARTS: Mapping[str, str] = {
    FILES: "looking at every file that workers reported",
    LOCK: "waiting for the table lock",
    CHECK: "comparing epoch, instant and offsets under the lock",
    METADATA: "bringing the table's own index of its files up to date",
    WRITE: "the rest of the table's write, with the completed instant",
}
"""Of a commit, in their order. A table without such an index, and one that does not know how long that takes,
says nothing of it; what is not known is within `WRITE`."""

OTHER = "other"


def known(word: str, words: Collection[str]) -> str:
    """The word where it is one of these, else `OTHER`; empty stays empty."""
    return word if not word or word in words else OTHER
