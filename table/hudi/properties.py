"""Which `hoodie.*` properties may be given, and what the write client is started with. Pure.

A property is worse than refused when it is silently ignored: Lockstep writes the data files itself and uses
Hudi's write client for the timeline, the metadata table and the table services only, so that options of
Spark's datasource and of Hudi's own file writers have no effect here.

Source of the names: the ConfigProperty definitions of hudi-spark3.5-bundle_2.12 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from table.errors import Refused
from table.hudi.modes import LEASE_PROVIDER, LOCK_PROVIDER, MODES
from table.port import INSERT, UPSERT, OtherWriters, TableSpec
from table.store.location import FILE, HDFS, Location

LOCK = "hoodie.write.lock.provider"
LOCK_FOLDER = "hoodie.write.lock.filesystem.path"
LOCK_EXPIRE_MINUTES = 1
"""The least there is. A driver killed inside the lock blocks the table for so long where its successor cannot
prove it dead (see `table.hudi.driver.holder`); a holder that is paused for longer is stopped by the rollback
of its instant, not by the lock."""

EXPIRE = "hoodie.write.lock.filesystem.expire"
LEASE = "hoodie.write.lock.storage.validity.timeout.secs"
RENEWAL = "hoodie.write.lock.storage.renew.interval.secs"
LEASE_S = 60
"""How long the lock of a table in an object store lives that nobody renews. The shorter, the sooner a driver
elsewhere goes on after one that was killed in it; the guardian ends a holder that stands still
`LOCK_MARGIN_S` (table/hudi/driver/watchdog.py) before."""
RENEWAL_S = 5
LEASE_RETRIES = 1
"""Hudi waits for such a lock within each try, for `hoodie.write.lock.wait_time_ms`."""

AUTO_ARCHIVE = "hoodie.archive.automatic"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
CREATION = (HIVE_STYLE, URL_ENCODE)
"""They say how a table is created; of a table that exists its own properties say it."""

TIMEBASED = "hoodie.keygen.timebased."
"""How a table that exists makes folders of times, where its own properties do not say it."""

FAILED_WRITES = "hoodie.clean.failed.writes.policy"
REQUIRED: Mapping[str, str] = {
    FAILED_WRITES: "LAZY",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.rollback.using.markers": "true",
    "hoodie.metadata.streaming.write.enabled": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.allow.empty.commit": "true",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.populate.meta.fields": "true",
    "hoodie.datasource.write.drop.partition.columns": "false",
}
"""The protocol does not hold with other values."""

REQUIRED_OF_MODE: Mapping[str, Mapping[str, str]] = {
    name: {
        "hoodie.write.concurrency.mode": mode.concurrency,
        "hoodie.datasource.write.table.type": mode.table_type,
    }
    for name, mode in MODES.items()
}

READ_BUFFER_BYTES = 1_048_576
"""Of a log file, or a block in it, that Hudi's client reads."""

DEFAULTS: Mapping[str, str] = {
    "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.wait_time_ms": "5000",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.memory.dfs.buffer.max.size": str(READ_BUFFER_BYTES),
}
"""What the configuration may change. A lock that is held is waited for 5 s; the caller asks again. Old file
versions are cleaned beside the commits, not within them. Hudi's own buffer of 16 MB would be allocated and
cleared for each log file that is opened, whatever its size: gigabytes a second where they are small."""

SHARED_LOCK: Mapping[str, str] = {LOCK: LOCK_PROVIDER, EXPIRE: str(LOCK_EXPIRE_MINUTES)}
"""What writers of a table must agree on of its lock."""
SHARED_LEASE: Mapping[str, str] = {LOCK: LEASE_PROVIDER, LEASE: str(LEASE_S), RENEWAL: str(RENEWAL_S)}
"""The same, of a table in an object store."""
RETRIES = "hoodie.write.lock.client.num_retries"

ONE_CLOCK: Mapping[str, str] = {"hoodie.time.generator.max_expected_clock_skew_ms": "1"}
"""The default where only one machine writes to the table. Under the lock Hudi waits for as long as clocks of
writers may differ, 200 ms by default, when an instant begins and again when it completes."""

SYNONYMS: Mapping[str, str] = {
    "hoodie.cleaner.policy.failed.writes": FAILED_WRITES,
    "hoodie.table.populate.meta.fields": "hoodie.populate.meta.fields",
    "hoodie.table.type": "hoodie.datasource.write.table.type",
}

OWN: Mapping[str, str] = {
    "hoodie.base.path": "table.path",
    "hoodie.table.name": "table.name",
    "hoodie.avro.schema": "record.schema",
    "hoodie.write.schema": "record.schema",
    "hoodie.table.create.schema": "record.schema",
    "hoodie.datasource.write.recordkey.field": "table.key",
    "hoodie.table.recordkey.fields": "table.key",
    "hoodie.datasource.write.partitionpath.field": "table.partition_by",
    "hoodie.table.partition.fields": "table.partition_by",
    "hoodie.datasource.write.operation": "table.kind",
    "hoodie.datasource.write.precombine.field": "table.ordering",
    "hoodie.table.ordering.fields": "table.ordering",
    "hoodie.table.precombine.field": "table.ordering",
    "hoodie.record.merge.mode": "table.ordering",
    "hoodie.index.type": "table.kind",
    "hoodie.bucket.index.num.buckets": "table.buckets",
    "hoodie.bucket.index.hash.field": "table.key",
    "hoodie.parquet.max.file.size": "table.target_file_size",
    "hoodie.clean.automatic": "services.cleaning",
    "hoodie.async.clean": "services.cleaning",
}
"""Properties that say again what the configuration says in its own words."""

OWN_OF_MODE: Mapping[str, Mapping[str, str]] = {
    INSERT: {},
    # Hudi's Java client fails at archiving within the commits of such a table: see
    # table/hudi/upkeep/cleaning.py.
    UPSERT: {AUTO_ARCHIVE: "services.cleaning"},
}

REFUSED_OF_MODE: Mapping[str, Mapping[str, str]] = {
    INSERT: {},
    UPSERT: {
        "hoodie.partition.ttl.": (
            "takes table partitions out of the table, and what is upserted into one later is hidden by Hudi "
            "for good (docs/operations.md says why, under table partitions that were taken out): delete rows"
        )
    },
}
"""Prefixes of what would be obeyed, and would do harm."""

LOSSY_INDEXES: Mapping[str, str] = {
    f"hoodie.metadata.index.{index}.": (
        "readers that skip files by it lose rows where a column holds NaN or a string above 4,096 bytes"
    )
    for index in ("column.stats", "partition.stats", "expression")
}
"""Prefixes of Hudi's indexes by minimum and maximum. Readers take a file whose minimum is missing for a file
without a match. No list of columns avoids that: Hudi always indexes record keys, which are strings."""
LOSSY_PARTITIONS = ("column_stats", "partition_stats", "expr_index_")
"""Names, or their beginnings, of these indexes in the metadata table."""


def lossy_index(properties: Mapping[str, str]) -> tuple[str, str] | None:
    """The first property that asks for a lossy index, and the reason against it."""
    for name, value in properties.items():
        for prefix, why in LOSSY_INDEXES.items():
            if name.startswith(prefix) and value.lower() != "false":
                return name, why
    return None


OBEYED = (
    "hoodie.allow.",
    "hoodie.archive.",
    "hoodie.clean.",
    "hoodie.cleaner.",
    "hoodie.client.heartbeat.",
    "hoodie.clustering.",
    "hoodie.commits.archival.",
    "hoodie.embed.timeline.",
    "hoodie.filesystem.view.",
    "hoodie.finalize.write.",
    "hoodie.fs.",
    "hoodie.keep.",
    "hoodie.layout.optimize.",
    "hoodie.markers.",
    "hoodie.max.archive.files",
    "hoodie.memory.",
    "hoodie.metadata.",
    "hoodie.metrics.",
    "hoodie.partition.ttl.",
    "hoodie.populate.meta.fields",
    "hoodie.rollback.",
    "hoodie.table.services.",
    "hoodie.time.generator.",
    "hoodie.timeline.compaction.",
    "hoodie.write.application.id",
    "hoodie.write.auto.upgrade",
    "hoodie.write.can.ignore.post.commit.failures",
    "hoodie.write.commit.callback.",
    "hoodie.write.concurrency.",
    "hoodie.write.empty.clean.",
    "hoodie.write.lock.",
    "hoodie.write.markers.",
    "hoodie.write.rolling.metadata.",
)
"""What the write client obeys when it completes, rolls back, cleans, archives and clusters."""

SMALL_FILES = "hoodie.clustering.plan.strategy.small.file.limit"
"""Bytes: what is smaller is put together."""

OBEYED_WHILE_CLUSTERING = ("hoodie.parquet.", "hoodie.bulkinsert.")

SYNC = "catalog sync belongs to Spark's datasource: run Hudi's sync tool beside Lockstep"
IGNORED: Mapping[str, str] = {
    "hoodie.datasource.hive_sync.": SYNC,
    "hoodie.datasource.meta.sync.": SYNC,
    "hoodie.datasource.meta_sync.": SYNC,
    "hoodie.meta.sync.": SYNC,
    "hoodie.datasource.": "it is an option of Spark's datasource",
    "hoodie.parquet.": "Lockstep writes the files itself; Hudi's writer is used by clustering only",
    "hoodie.streamer.": "it is an option of HoodieStreamer",
    "hoodie.deltastreamer.": "it is an option of HoodieStreamer",
    "hoodie.kafka.": "it is an option of Hudi's Kafka Connect sink",
}
"""Why, for the best known of those that are not obeyed. The first prefix that fits counts."""


def check(properties: Mapping[str, str], mode: str = INSERT) -> None:
    """Raise `Refused` where a property would be ignored, or where it contradicts the protocol."""
    required = {**REQUIRED, **REQUIRED_OF_MODE[mode]}
    own = {**OWN, **OWN_OF_MODE[mode]}
    if lossy := lossy_index(properties):
        raise Refused(f"table.hudi: {lossy[0]} is refused: {lossy[1]}. Remove it")
    for name, value in properties.items():
        if name in own:
            raise Refused(f"table.hudi: {name} is not taken: say it with {own[name]}")
        for prefix, why in REFUSED_OF_MODE[mode].items():
            if name.startswith(prefix):
                raise Refused(f"table.hudi: {name} is not taken: it {why}")
        _check_one(name, value, properties, required)


def _is_clients(name: str) -> bool:
    return name not in CREATION and not name.startswith(TIMEBASED)


def shared_lock(path: str) -> Mapping[str, str]:
    """The lock of a table at this path or address, where the configuration names no other."""
    return SHARED_LOCK if Location.parse(path).scheme in (FILE, HDFS) else SHARED_LEASE


def merge(
    properties: Mapping[str, str], fixed: Mapping[str, str], mode: str = INSERT, *, path: str = "/table"
) -> dict[str, str]:
    """What the write client is started with: defaults, then `properties`, then what must be.

    `fixed`: what the table and the configuration say (name, keys, schema). Raises `Refused` as `check`.
    """
    check(properties, mode)
    given = {SYNONYMS.get(name, name): value for name, value in properties.items() if _is_clients(name)}
    lock = shared_lock(path)
    retries = {RETRIES: "25" if lock is SHARED_LOCK else str(LEASE_RETRIES)}
    return {**DEFAULTS, **lock, **retries, **given, **REQUIRED, **REQUIRED_OF_MODE[mode], **fixed}


def small_file_bytes(spec: TableSpec) -> int:
    """What is smaller is small: what a clustering takes, half of the target where nothing else is given."""
    given = spec.properties.get(SMALL_FILES, "")
    return int(given) if given.isdecimal() else spec.target_file_bytes // 2


def archives_beside(spec: TableSpec, services: Mapping[str, str]) -> bool:
    """Whether instants are archived beside commits, when the metadata table is tended: Hudi would look within
    each commit what there is to archive, which takes the table lock once more. Not where the configuration
    says when, nor where the services do it (`services`: their properties), nor of upserts, which Hudi's own
    client would fail at (`table.hudi.upkeep.cleaning`).
    """
    return spec.mode == INSERT and AUTO_ARCHIVE not in {**services, **spec.properties}


SHARED = (
    "hoodie.write.concurrency.mode",
    LOCK,
    EXPIRE,
    LEASE,
    RENEWAL,
    FAILED_WRITES,
    "hoodie.write.markers.type",
    "hoodie.metadata.index.column.stats.enable",
    "hoodie.metadata.streaming.write.enabled",
)
"""What every writer of a table must agree on."""


def other_writers(spec: TableSpec) -> OtherWriters:
    """What they must be told, and what goes wrong without. Raises `Refused` as `check`."""
    merged = merge(spec.properties, {}, spec.mode, path=spec.path)
    told = (
        "the table keeps this for Spark SQL, which needs to be told nothing; any other writer"
        if spec.mode == UPSERT
        else "a foreign writer of this table"
    )
    return OtherWriters(
        settings={name: merged[name] for name in SHARED if name in merged},
        advice=f"{told} must use a lock provider, concurrency control and LAZY cleaning as above: an EAGER "
        "one rolls back anybody's open instant without the lock. It must write the metadata table as above, "
        "too: its own commits fail otherwise",
    )


def _check_one(name: str, value: str, properties: Mapping[str, str], required: Mapping[str, str]) -> None:
    if name in CREATION:
        if value not in ("true", "false"):
            raise Refused(f"table.hudi: {name} is {value!r}: say true or false")
        return
    if name.startswith(TIMEBASED):
        return
    needed = required.get(SYNONYMS.get(name, name))
    if needed is not None:
        if value.lower() != needed.lower():
            raise Refused(f"table.hudi: {name} is {value!r}, and exactly once needs {needed!r}: take it out")
        return
    if not _is_obeyed(name, properties):
        raise Refused(f"table.hudi: {name} would have no effect ({_why_ignored(name)}): take it out")
    _check_lock(name, value)


def _is_obeyed(name: str, properties: Mapping[str, str]) -> bool:
    if name.startswith(OBEYED):
        return True
    clustering = any(given.startswith("hoodie.clustering.") for given in properties)
    return clustering and name.startswith(OBEYED_WHILE_CLUSTERING)


def _why_ignored(name: str) -> str:
    for prefix, why in IGNORED.items():
        if name.startswith(prefix):
            return why
    return "Hudi's write client does not read it when files are committed that others wrote"


def _check_lock(name: str, value: str) -> None:
    if name == "hoodie.write.lock.provider" and value.endswith(("InProcessLockProvider", "NoopLockProvider")):
        raise Refused(
            f"table.hudi: {name} is {value}, which another process does not see: "
            f"use {LOCK_PROVIDER} or another one that all writers of the table share"
        )
    if name == LEASE and not (value.isdigit() and int(value) >= LEASE_S):
        raise Refused(
            f"table.hudi: {name} is {value!r}: a driver's guardian ends it 20 s before its lock is over, so "
            f"that a shorter one ends drivers that do well; say {LEASE_S} or more"
        )
    if name == EXPIRE and not (value.isdigit() and int(value) >= 1):
        raise Refused(
            f"table.hudi: {name} is {value!r}: with 0 minutes a driver that is killed inside the lock "
            "blocks the table until somebody removes the file; say 1 or more"
        )
