"""The Java side of one Hudi table: its meta client, its write client, and how values get across Py4J.

Hudi has write clients for several engines. Its Java client does in one thread what the Spark client runs as a
dozen Spark jobs of one small task each, and commits in a third of the time; it is taken wherever it is on the
class path and can keep up the indexes that the table has. Both write the same table.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, reduce
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from table.hudi.definition import Definition
from table.hudi.driver.asking import Packages, elements, texts
from table.hudi.driver.callbacks import start_callbacks
from table.hudi.driver.fence import Fence
from table.hudi.driver.java import FAILED, THROWN
from table.hudi.driver.table_lock import lock_of
from table.hudi.driver.timed import JAVA_CLIENT, SPARK_CLIENT, TimedClients
from table.hudi.driver.uncaught import say_uncaught
from table.hudi.generators import KEY_GENERATORS, key_generator
from table.hudi.layout import META_FOLDER
from table.hudi.modes import INDEX_TYPE, MODES, merge_mode
from table.hudi.properties import HIVE_STYLE, LOSSY_PARTITIONS, READ_BUFFER_BYTES, URL_ENCODE, merge
from table.port import UPSERT, TableSpec
from table.store.location import Location, store_at
from table.store.settings import StoreSettings

log = logging.getLogger(__name__)

LOCAL_FILE_SYSTEM = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
"""Sets permissions by itself; Hadoop's own starts `chmod` for every file that is created."""
SPARK_ONLY = (
    "hoodie.clustering.inline",
    "hoodie.clustering.schedule.",
    "hoodie.layout.optimize.",
    "hoodie.metadata.index.",
    "hoodie.table.services.",
)
"""Properties of what the Java client does not have: services within the commit, further indexes."""
SLOWER = "Hudi's Spark client commits, in three times the time of its Java client: %s"
FILES_INDEX = "files"
"""What a metadata table holds at least. Other indexes are the Spark client's, which also drops those that the
configuration does not have; another writer may make one at any time."""


class Session:
    """`path`: plain and absolute, or an address. `storage`: how its store is reached. `meta` is there after
    `load`; `client` after `start`.
    """

    def __init__(self, spark: SparkSession, path: str, storage: StoreSettings | None = None) -> None:
        self.spark = spark
        self.path = path
        self.store = store_at(path, settings=storage)
        self.base_path = str(
            Location.parse(path)
        )  # spelled out, whatever the cluster's default file system is
        self.jvm = Packages(spark._jvm)
        self.hudi = self.jvm.org.apache.hudi
        self.meta: Any = None
        self.client: Any = None
        self._clients = TimedClients(spark._jvm, spark.sparkContext._gateway)
        self.fence: Fence  # whoever completes or rolls back has set it
        self.begun_with = ""  # the table's columns as a compaction or clustering was begun
        self.lock = lock_of(spark, path, self.base_path, self.store, storage=storage, jvm_pid=self.jvm_pid())
        start_callbacks(spark.sparkContext._gateway)

    def jvm_pid(self) -> int:
        return int(self.jvm.java.lang.ProcessHandle.current().pid())

    def create(self, spec: TableSpec, schema: str) -> None:
        """Make an empty table as `spec` says."""
        builder = (
            self.hudi.common.table.HoodieTableMetaClient.newTableBuilder()
            .setTableType(MODES[spec.mode].table_type)
            .setTableName(spec.name)
            .setTableCreateSchema(schema)  # what lets an empty table be read
            .setCommitTimezone(
                self.hudi.common.model.HoodieTimelineTimeZone.UTC
            )  # summer time ends each year
            .setKeyGeneratorClassProp(KEY_GENERATORS[key_generator(spec)])
            .setHiveStylePartitioningEnable(spec.properties.get(HIVE_STYLE, "false") == "true")
            .setUrlEncodePartitioning(spec.properties.get(URL_ENCODE, "false") == "true")
        )
        if spec.key_fields:
            builder = builder.setRecordKeyFields(",".join(spec.key_fields))
        if spec.partition_fields:
            builder = builder.setPartitionFields(",".join(spec.partition_fields))
        if spec.mode == UPSERT:
            modes = self.hudi.common.config.RecordMergeMode
            builder = builder.setRecordMergeMode(modes.valueOf(merge_mode(spec.ordering_field)))
            if spec.ordering_field:
                builder = builder.setOrderingFields(spec.ordering_field)
        builder.initTable(self._storage_conf, self.base_path)

    def keep(self, properties: Mapping[str, str]) -> None:
        """Add to the properties of the table, as it was loaded, those that other writers must know."""
        java = self.jvm.java.util.Properties()
        for name, value in properties.items():
            java.setProperty(name, value)
        self.hudi.common.table.HoodieTableConfig.update(self.meta.getStorage(), self.meta.getMetaPath(), java)

    def recover_properties(self) -> None:
        """Take the backup of the table's properties for them, as Hudi does before it rewrites them again."""
        folder = self.hudi.storage.StoragePath(self.base_path, META_FOLDER)
        storage = self.hudi.storage.HoodieStorageUtils.getStorage(folder, self._storage_conf)
        self.hudi.common.table.HoodieTableConfig.recover(storage, folder)

    def is_untouched(self) -> bool:
        """Whether nobody has begun to write to the table, as it was loaded."""
        return bool(self.meta.getActiveTimeline().empty())

    def load(self) -> Definition:
        """Read the table's properties and schema anew."""
        self._intern_schemas()
        self.meta = (
            self.hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(self._storage_conf)
            .setBasePath(self.base_path)
            .setLoadActiveTimelineOnLoad(True)
            .build()
        )
        self.keep_zone()
        return Definition(
            properties=texts(self.hudi, self.meta.getTableConfig().propsMap()), schema=self.columns()
        )

    def columns(self) -> str:
        """The table's, in Avro, as its timeline was loaded last; empty where it has none.

        By the newest commit that may say them, as Hudi has it (`WriteOperationType.canUpdateSchema`).
        """
        newest = self.meta.getActiveTimeline().getLastCommitMetadataWithValidSchema(True)
        if not newest.isPresent():
            return self.columns_taken()
        schemas = self.hudi.common.schema
        said = schemas.HoodieSchema.parse(newest.get().getRight().getMetadata("schema"))
        return str(schemas.HoodieSchemaUtils.removeMetadataFields(said).toString())

    def columns_taken(self) -> str:
        """Those that Hudi and readers take for its columns: of whatever was completed last.

        That may be a compaction or a clustering, which says those that were there when it began.
        """
        found = self.hudi.common.table.TableSchemaResolver(self.meta).getTableSchemaIfPresent(False)
        return str(found.get().toString()) if found.isPresent() else ""

    def in_local_time(self) -> bool:
        """Whether the table's timeline is, as it was loaded: then an hour of its times comes twice."""
        zones = self.hudi.common.model.HoodieTimelineTimeZone
        return bool(self.meta.getTableConfig().getTimelineTimezone() == zones.LOCAL)

    def keep_zone(self) -> None:
        """From here on Hudi names instants in the time zone of this table's timeline.

        Opening a table does not do so, and a new JVM begins with its local time.
        """
        zone = self.meta.getTableConfig().getTimelineTimezone()
        self.hudi.common.table.timeline.HoodieInstantTimeGenerator.setCommitTimeZone(zone)

    def start(
        self, properties: Mapping[str, str], fixed: Mapping[str, str], mode: str, *, by_spark: bool = False
    ) -> None:
        """Start the write client. `by_spark`: the Spark client, which runs its work as Spark's jobs."""
        merged = merge(properties, fixed, mode, path=self.path)
        self.lock.use(properties, merged)
        say_uncaught(self.spark._jvm, self.spark.sparkContext._gateway)
        self._config = self.hudi.DataSourceUtils.createHoodieConfig(
            fixed["hoodie.avro.schema"],
            self.base_path,
            fixed["hoodie.table.name"],
            self.java_map(merged),
        )
        self._index = fixed.get(INDEX_TYPE, "")
        self._never_java = "it is asked for" if by_spark else self._why_never_java(properties)
        why_not = self._never_java or self._why_not_java_now()
        if why_not and not by_spark:
            log.warning(SLOWER, why_not)
        if lossy := [name for name in self._indexes() if name.startswith(LOSSY_PARTITIONS)]:
            log.warning("Readers may miss rows until the next commit removes: index=%s", ", ".join(lossy))
        self._connect(by_spark=bool(why_not))

    def choose_client(self) -> None:
        """Take the other write client where the table wants it. Not while an instant of ours is open.

        Where the Spark client is asked for, or nothing else is possible, it stays.
        """
        if self._never_java:
            return
        self.meta.reloadTableConfig()
        why_not = self._why_not_java_now()
        if bool(why_not) != self._by_spark:
            if why_not:
                log.warning(SLOWER, why_not)
            before = self.client
            self._connect(by_spark=bool(why_not))
            _end(before)

    def _connect(self, *, by_spark: bool) -> None:
        engines = self.hudi.client.common
        self._by_spark = by_spark
        if self._index:
            # The Java client knows no bucket index, and needs none to commit what others wrote. Not said
            # earlier: without the bucket index the configuration is refused.
            self._config.setValue(INDEX_TYPE, self._index if by_spark else "INMEMORY")
        if by_spark:
            context = engines.HoodieSparkEngineContext(self.spark.sparkContext._jsc)
            self.client = self._clients.make(SPARK_CLIENT, context, self._config)
        else:
            context = engines.HoodieJavaEngineContext(self._storage_conf)
            self.client = self._clients.make(JAVA_CLIENT, context, self._config)

    def table(self) -> Any:
        """The table as the write client sees it, loaded anew."""
        tables = self.hudi.table.HoodieSparkTable if self._by_spark else self.hudi.table.HoodieJavaTable
        return tables.create(self.client.getConfig(), self.client.getEngineContext())

    def _why_never_java(self, properties: Mapping[str, str]) -> str:
        """Why this run cannot have Hudi's Java client, whatever the table is like; empty where it can."""
        if not self._has_class(JAVA_CLIENT):
            return "hudi-java-client is not on the class path"
        asked = (
            name for name, value in properties.items() if name.startswith(SPARK_ONLY) and value != "false"
        )
        needs_spark = next(asked, "")
        return f"{needs_spark} needs it" if needs_spark else ""

    def _why_not_java_now(self) -> str:
        """Why the Java client cannot write the table as it was loaded last; empty where it can."""
        others = [name for name in self._indexes() if name != FILES_INDEX]
        return f"the table's metadata has the index {others[0]}" if others else ""

    def _indexes(self) -> list[str]:
        """Names of the metadata table's indexes, sorted."""
        return sorted(map(str, elements(self.meta.getTableConfig().getMetadataPartitions())))

    def _intern_schemas(self) -> None:
        """Initialise the class of the metadata table's records before anything reads such a record.

        Hudi 1.2.0 tells a record's generation by the identity of its schema, and interns those schemas in
        order of first use. A metadata table that is compacted first has its own copy interned, and from then
        on every commit of this Java process fails with an index out of bounds.
        """
        _ = self.hudi.metadata.HoodieMetadataPayload.SECONDARY_INDEX_RECORD_KEY_SEPARATOR

    def use_schema(self, schema: str) -> None:
        """What the next commits say of the table's columns, in Avro."""
        self._config.setSchema(schema)
        self.client.getConfig().setSchema(schema)

    def set_directly(self, name: str, value: str) -> None:
        """A property of the write client that it has now, which Hudi would set otherwise when it is made."""
        for config in (self.client.getConfig(), self.client.getTableServiceClient().getConfig()):
            config.setValue(name, value)

    def reload(self) -> Any:
        """The active timeline as it is now."""
        return self.meta.reloadActiveTimeline()

    def lock_lives_s(self) -> int:
        """How long it lives that nobody renews or gives back; 0: for ever."""
        return self.lock.lives_s(self.client.getConfig().getProps())

    def oldest(self) -> str:
        """The requested time of the oldest instant on the active timeline, empty where none is there."""
        first = self.reload().firstInstant()
        return str(first.get().requestedTime()) if first.isPresent() else ""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hudi's table lock, as its own write client takes it.

        Raises `ClockAhead` before it is taken.
        """
        self.lock.clock.check()
        manager = self.client.getTransactionManager()
        manager.beginStateChange(self.none(), self.none())
        try:
            self.lock.holder.check()
            yield
        finally:
            try:
                manager.endStateChange(self.none())
            except THROWN:
                self.let_go()
                raise

    def let_go(self) -> None:
        """Of the lock that Hudi could not give back. See `table.hudi.driver.table_lock`.

        With a JVM that is dead the lock has gone, or is its successor's to take over.
        """
        with contextlib.suppress(*FAILED):
            self.lock.let_go(self.client.getTransactionManager())

    def remove_pending(self, action: str, instant: str) -> None:
        """Take an instant off the timeline that is not complete, and never can be without these files."""
        states = self.hudi.common.table.timeline.HoodieInstant.State
        for state in (states.INFLIGHT, states.REQUESTED):
            opened = self.meta.createNewInstant(state, action, instant)
            self.meta.getActiveTimeline().deleteInstantFileIfExists(opened)

    def keep_alive(self, instant: str) -> None:
        """Let the instant's heartbeat beat: without it every LAZY cleaner takes its writer for dead.

        A commit that failed has stopped it, and would be refused when it is tried again. So would one whose
        heartbeat looks expired since the clock was set forth: its next beat may be a minute away. One whose
        first beat storage did not take has no time; Hudi takes it for started, and it never beats.
        """
        heart = self.client.getHeartbeatClient()
        begun = heart.getHeartbeat(instant)
        if begun is not None and (begun.getLastHeartbeatTime() is None or heart.isHeartbeatExpired(instant)):
            heart.stop(instant)
        heart.start(instant)

    def let_die(self, instant: str) -> None:
        self.client.getHeartbeatClient().stop(instant)

    def keeps_metadata(self) -> bool:
        """Whether the write client keeps a metadata table up, or makes one with its next commit."""
        return bool(self.client.getConfig().isMetadataTableEnabled())

    def has_metadata(self) -> bool:
        """Whether the table has a metadata table that the write client keeps up."""
        if not self.keeps_metadata():
            return False
        self.meta.reloadTableConfig()
        return bool(self.meta.getTableConfig().isMetadataTableAvailable())

    def leave_markers(self, instant: str) -> None:
        """In the commit of this instant Hudi leaves its markers alone; empty: in no commit."""
        self._clients.leave_markers(self.client, instant)

    def metadata_ms(self, instant: str) -> int | None:
        """How long the metadata table took in the commit of this instant, which was the last one."""
        return self._clients.metadata_ms(self.client, instant)

    def metadata_commits(self) -> int:
        """After how many commits Hudi compacts the metadata table: its own default, or as configured."""
        threshold = self.hudi.common.config.HoodieMetadataConfig.COMPACT_NUM_DELTA_COMMITS
        return int(self.client.getConfig().getIntOrDefault(threshold))

    def tend_metadata(self) -> None:
        """Compact, clean and archive the metadata table where that is due. Takes the table lock itself.

        It is what Hudi's own insert does before it writes. UNKNOWN starts no timer of Hudi's metrics.
        """
        self.client.initTable(self.hudi.common.model.WriteOperationType.UNKNOWN, self.none())

    def archive(self) -> int:
        """Move instants to the archived timeline that Hudi's settings keep no longer; how many.

        Under the table lock, whose holder is noted, as Hudi's own archiving does not do it.
        """
        with self.locked():
            table = self.table()
            version = table.getMetaClient().getTimelineLayoutVersion()
            archivers = self.hudi.client.timeline.TimelineArchivers
            archiver = archivers.getInstance(version, table.getConfig(), table)
            return int(archiver.archiveIfRequired(self.client.getEngineContext(), False))

    def archives_itself(self) -> bool:
        """Whether the configuration has Hudi archive within every commit."""
        return bool(self.client.getConfig().isAutoArchive())

    def close(self) -> None:
        """Stop the heartbeats, which are all that lives on.

        The client's own `close` also closes its lock provider, which deletes the lock file, whoever holds it.
        """
        client, self.client = self.client, None
        if client is not None:
            _end(client)

    def some(self, value: Any) -> Any:
        return self.hudi.common.util.Option.of(value)

    def none(self) -> Any:
        return self.hudi.common.util.Option.empty()

    def java_map(self, values: Mapping[str, str]) -> Any:
        made = self.jvm.java.util.HashMap()
        for name, value in values.items():
            made.put(name, value)
        return made

    def _has_class(self, name: str) -> bool:
        """Whether the driver's class path has it. Of a name that it does not have Py4J makes a package."""
        return isinstance(reduce(getattr, name.split("."), self.jvm), JavaClass)

    @cached_property
    def _storage_conf(self) -> Any:
        """Hadoop's settings for Hudi's files. Not Spark's own: there the file system is loaded already."""
        conf = self.jvm.org.apache.hadoop.conf.Configuration(
            self.spark.sparkContext._jsc.hadoopConfiguration()
        )
        if self._has_class(LOCAL_FILE_SYSTEM):
            conf.set("fs.file.impl", LOCAL_FILE_SYSTEM)
            conf.set("fs.file.impl.disable.cache", "true")
        # As large are Hudi's buffers for a block of the metadata table, of which it reads a few kilobytes.
        conf.set("fs.local.block.size", str(READ_BUFFER_BYTES))
        return self.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(conf)


def _end(client: Any) -> None:
    client.getHeartbeatClient().close()
    client.getTableServiceClient().getHeartbeatClient().close()
