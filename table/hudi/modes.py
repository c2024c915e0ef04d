"""What the two modes of a table differ in, as far as Hudi's write client is concerned. Pure.

Upserts run under Hudi's non-blocking concurrency control: writers of one file group add log files of their
own, and readers put them in order, so that neither a compaction nor Spark's `UPDATE` ever makes a commit of
ours fail. What a writer must know for that is kept in the table's own properties, which Spark SQL obeys: a
writer that was told nothing then hashes, locks and cleans as we do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from table.port import INSERT, UPSERT

INDEX_TYPE = "hoodie.index.type"
BUCKETS = "hoodie.bucket.index.num.buckets"
HASH_FIELD = "hoodie.bucket.index.hash.field"
BUCKET_ENGINE = "hoodie.index.bucket.engine"
LOCK_PROVIDER = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
LEASE_PROVIDER = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
"""Where the table is in an object store: its lock is an object, whose holder renews it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    table_type: str
    action: str
    """What an instant of ours is on the timeline."""
    operation: str
    """A `WriteOperationType`."""
    concurrency: str


MODES: Mapping[str, Mode] = {
    INSERT: Mode(
        table_type="COPY_ON_WRITE",
        action="commit",
        operation="BULK_INSERT",
        concurrency="optimistic_concurrency_control",
    ),
    UPSERT: Mode(
        table_type="MERGE_ON_READ",
        action="deltacommit",
        operation="UPSERT",
        concurrency="non_blocking_concurrency_control",
    ),
}


def merge_mode(ordering_field: str) -> str:
    """Hudi's `RecordMergeMode` where this field, or none, decides between versions of a row."""
    return "EVENT_TIME_ORDERING" if ordering_field else "COMMIT_TIME_ORDERING"


def index_properties(key_fields: Sequence[str], bucket_count: int) -> dict[str, str]:
    """The bucket index of an upsert table."""
    return {INDEX_TYPE: "BUCKET", BUCKETS: str(bucket_count), HASH_FIELD: ",".join(key_fields)}


def kept_properties(key_fields: Sequence[str], bucket_count: int, lock: Mapping[str, str]) -> dict[str, str]:
    """What is kept in an upsert table's `hoodie.properties` for writers that are told nothing. `lock`: which
    one they share.
    """
    return {
        **index_properties(key_fields, bucket_count),
        "hoodie.datasource.write.recordkey.field": ",".join(key_fields),  # Hudi's compaction procedure
        "hoodie.write.concurrency.mode": MODES[UPSERT].concurrency,
        **lock,
        "hoodie.clean.failed.writes.policy": "LAZY",
        # An index that others make while a transaction is open would cost it its commit.
        "hoodie.metadata.index.column.stats.enable": "false",
        # `MERGE … UPDATE SET` of some columns would write blocks that hold only those, which readers of
        # whole blocks beside them get wrong.
        "hoodie.spark.sql.merge.into.partial.updates": "false",
        # Spark's statements would end with what is pending of ours, and fail where it is being done already.
        "hoodie.compact.inline": "false",
        # Spark's statements would write the metadata table beside their data, and fail where we commit.
        "hoodie.metadata.streaming.write.enabled": "false",
    }
