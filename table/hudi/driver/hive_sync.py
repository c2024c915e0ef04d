"""A Hive metastore is kept up to date by Hudi's own tool, in the driver's JVM.

The tool makes the database and the table where they are missing, adds columns and table partitions, and says
in the table's properties how far it is. Of a table with log files it makes two more names, as Hudi does
everywhere: `_ro` and `_rt`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Any

from pyspark.sql import SparkSession

from table.catalog import CALL_S, CatalogSpec
from table.errors import Refused, Unavailable
from table.hudi.driver.asking import Packages
from table.hudi.driver.compiled import java_class
from table.hudi.driver.java import FAILED, sentence

log = logging.getLogger(__name__)

EXTRACTOR, SOURCE = "lockstep.hudi.PartitionValues", "PartitionValues.java"
TOOL = "org.apache.hudi.hive.HiveSyncTool"
NOT_PARTITIONED = "org.apache.hudi.hive.NonPartitionedExtractor"
NEEDED = "org.apache.hadoop.hive.conf.HiveConf"
PATIENCE = {
    "hive.metastore.client.socket.timeout": f"{CALL_S}s",
    "hive.metastore.connect.retries": "1",
    "hive.metastore.failure.retries": "1",
    "hive.metastore.client.connect.retry.delay": "1s",
}
"""Whoever asked is told soon, and tries again by himself."""
VIEWS = ("", "_ro", "_rt")
"""Endings of the names that a table may have in the metastore."""
ONE_AT_A_TIME = threading.Lock()
"""The extractor's layout is static in the JVM."""


class HiveSync:
    """See `table.catalog.Catalog`."""

    def __init__(self, spark: SparkSession, spec: CatalogSpec) -> None:
        self._spark, self._spec = spark, spec
        self._repaired = False

    def sync(self) -> None:
        try:
            with ONE_AT_A_TIME:
                self._sync()
        except FAILED as error:
            raise Unavailable(self._said("could not be brought up to date", error)) from error

    def look(self) -> str:
        """Raises `Refused` where this Spark has no Hive."""
        jvm, database = self._jvm(), self._spec.database
        try:
            client = jvm.org.apache.hudi.hive.util.IMetaStoreClientUtil.getMSC(self._hive_conf(jvm))
            with contextlib.closing(client):
                there = bool(client.getAllDatabases().contains(database.lower()))
                table = there and bool(client.tableExists(database, self._spec.table))
        except FAILED as error:
            raise Unavailable(self._said("could not be asked", error)) from error
        what = "is there" if table else "is not there yet; the run makes it"
        return f"{self._spec.uris} answers; the table {database}.{self._spec.table} {what}"

    def _sync(self) -> None:
        jvm, spec = self._jvm(), self._spec
        conf = self._conf(jvm)
        hudi = jvm.org.apache.hudi
        meta = (
            hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(hudi.hadoop.fs.HadoopFSUtils.getStorageConf(conf))
            .setBasePath(spec.path)
            .build()
        )
        properties = jvm.java.util.Properties()
        for name, value in self._properties(meta.getTableConfig()).items():
            properties.setProperty(name, value)
        self._use_layout(jvm, meta.getTableConfig())
        tool = hudi.hive.HiveSyncTool(properties, conf, hudi.common.util.Option.of(meta))
        try:
            tool.syncHoodieTable()
        finally:
            tool.close()

    def _properties(self, table: Any) -> dict[str, str]:
        """As the table is laid out that is there. `table`: Hudi's `HoodieTableConfig`."""
        spec = self._spec
        if "Timestamp" in str(table.getKeyGeneratorClassName()):
            raise Refused(
                f"table {spec.path}: its key generator makes folders of times, which a metastore would take "
                "for the fields' values: leave hooks.hive out"
            )
        fields = _fields(table.getPartitionFields())
        return {
            "hoodie.datasource.meta.sync.base.path": spec.path,
            "hoodie.datasource.hive_sync.mode": "hms",
            "hoodie.datasource.hive_sync.metastore.uris": spec.uris,
            "hoodie.datasource.hive_sync.database": spec.database,
            "hoodie.datasource.hive_sync.table": spec.table,
            "hoodie.datasource.hive_sync.auto_create_database": "true",
            "hoodie.datasource.hive_sync.support_timestamp": "true",
            "hoodie.datasource.hive_sync.partition_fields": ",".join(fields),
            "hoodie.datasource.hive_sync.partition_extractor_class": EXTRACTOR if fields else NOT_PARTITIONED,
            "hoodie.meta.sync.decode_partition": "false",  # the extractor has decoded values
        }

    def _use_layout(self, jvm: Any, table: Any) -> None:
        """Compile the extractor and set its layout. Once, replace values of former releases."""
        fields, spec = _fields(table.getPartitionFields()), self._spec
        if not fields:
            return
        values = compile_extractor(self._spark)
        names = jvm.java.util.ArrayList()
        for field in fields:
            names.add(field)
        is_encoded = is_true(table.getUrlEncodePartitioning())
        values.use(names, is_true(table.getHiveStylePartitioningEnable()), is_encoded)
        if is_encoded and not self._repaired:
            for view in VIEWS:
                self._repair(jvm, values, f"{spec.table}{view}")
        self._repaired = True

    def _repair(self, jvm: Any, values: Any, table: str) -> None:
        spec = self._spec
        client = jvm.org.apache.hudi.hive.util.IMetaStoreClientUtil.getMSC(self._hive_conf(jvm))
        with contextlib.closing(client):
            if not client.tableExists(spec.database, table):
                return
            repaired = int(values.repair(client, spec.database, table, spec.path))
        if repaired:
            log.info("Decoded partition values in the metastore: table=%s partitions=%d", table, repaired)

    def _jvm(self) -> Any:
        jvm = Packages(self._spark._jvm)
        try:
            loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
            jvm.java.lang.Class.forName(NEEDED, False, loader)
        except FAILED as error:
            raise Refused(
                f"this Spark has no classes of Hive ({NEEDED}): take one that was built with Hive, as "
                "PySpark's own is, or leave hooks.hive out"
            ) from error
        return jvm

    def _conf(self, jvm: Any) -> Any:
        """A copy: what is said here of the metastore is nobody else's."""
        conf = jvm.org.apache.hadoop.conf.Configuration(self._spark.sparkContext._jsc.hadoopConfiguration())
        for name, value in PATIENCE.items():
            conf.set(name, value)
        return conf

    def _hive_conf(self, jvm: Any) -> Any:
        conf = self._conf(jvm)
        conf.set("hive.metastore.uris", self._spec.uris)
        return jvm.org.apache.hudi.hive.HiveSyncConfig(jvm.java.util.Properties(), conf).getHiveConf()

    def _said(self, what: str, error: BaseException) -> str:
        return f"the metastore at {self._spec.uris} {what}: {sentence(error)}"


def compile_extractor(spark: SparkSession) -> Any:
    """Return the extractor's class. Raises `Refused` if it does not fit this Hudi."""
    misfit = "the extractor of partition values does not fit this Hudi"
    gateway = spark.sparkContext._gateway
    java_class(spark._jvm, gateway, name=EXTRACTOR, source=SOURCE, beside=TOOL, misfit=misfit)
    jvm: Any = spark._jvm
    return jvm.lockstep.hudi.PartitionValues


def is_true(value: Any) -> bool:
    """Hudi's `HoodieTableConfig` has text for some and a boolean for others."""
    return str(value).lower() == "true"


def _fields(option: Any) -> list[str]:
    """Out of Java's array, if there is one."""
    array = option.get() if option.isPresent() else ()
    return [str(array[at]) for at in range(len(array))]
