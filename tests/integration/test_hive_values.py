"""Values of table partitions in a real Hive metastore: as rows hold them, in every layout of folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from lockstep.stores.hive import MetastoreServer
from table.catalog import CatalogSpec
from table.hudi.driver.asking import elements
from table.hudi.driver.hive_sync import HiveSync, compile_extractor
from table.hudi.files.keys import UnsafePartition, escaped, partition_path
from table.hudi.upkeep.retention import Retention, request, take_out
from tests.integration.test_hive_sync import by_name, database
from tests.integration.test_upserts import Upserts

__all__ = ["database"]
pytestmark = pytest.mark.integration

REGIONS = (
    "text/html",
    "a=b",
    "10:30",
    "50%",
    "50%25",
    "München",
    "日本",
    "a b",
    "{x}",
    "'",
    '"',
    "\\",
    "#?*",
    "plain",
)


class Folders(NamedTuple):
    """The layout of a table's folders."""

    hive_style: bool
    url_encode: bool
    fields: tuple[str, ...]

    def folder(self, values: Sequence[str]) -> str:
        return "/".join(
            partition_path(value, field, hive_style=self.hive_style, url_encode=self.url_encode)
            for field, value in zip(self.fields, values, strict=True)
        )


LAYOUTS = [
    Folders(hive_style, url_encode, fields)
    for hive_style in (False, True)
    for url_encode in (False, True)
    for fields in (("region",), ("region", "day"), ("region", "day", "b"))
]


class Regions(Upserts):
    """An insert table whose table partitions are regions."""

    def __init__(self, spark: SparkSession, path: Path, layout: Folders) -> None:
        properties = {
            "hoodie.datasource.write.hive_style_partitioning": str(layout.hive_style).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": str(layout.url_encode).lower(),
        }
        self.folders = layout
        super().__init__(spark, path, mode="insert", ordering_field="", bucket_count=0, properties=properties)

    def write_all(self, regions: Sequence[str]) -> None:
        rows = [{"id": region, "region": region, "amount": 1, "ts": 1} for region in regions]
        self.run([(None, json.dumps(row).encode()) for row in rows])

    def take_out(self, regions: Sequence[str]) -> None:
        """As retention does."""
        session = Retention(self.spec, "changes").open(self.table._session_beside)
        instant = request(session, "changes")
        take_out(session, "changes", instant, {self.folders.folder([region]): None for region in regions})


class Names:
    """The table's partitions in the metastore, by Hive's own client."""

    def __init__(self, spark: SparkSession, uri: str, database: str) -> None:
        jvm: Any = spark._jvm
        conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
        conf.set("hive.metastore.uris", uri)
        self._client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)
        self._database = database

    def partitions(self) -> list[Any]:
        return elements(self._client.listPartitions(self._database, "t", -1))

    def values(self) -> list[str]:
        return sorted(str(value) for one in self.partitions() for value in elements(one.getValues()))

    def replace(self, values: Mapping[str, str]) -> None:
        """As a former release had them."""
        found = self.partitions()
        for one in found:
            (before,) = elements(one.getValues())
            self._client.dropPartition(self._database, "t", one.getValues(), False)
            one.getValues().set(0, values[before])
        for one in found:
            self._client.add_partition(one)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_partition_values_are_those_of_rows_also_in_the_name_by_which_hive_drops_one(
    spark: SparkSession, layout: Folders
) -> None:
    values = compile_extractor(spark)
    jvm: Any = spark._jvm
    fields = jvm.java.util.ArrayList()
    for field in layout.fields:
        fields.add(field)
    values.use(fields, layout.hive_style, layout.url_encode)
    properties = jvm.java.util.Properties()
    properties.setProperty("hoodie.datasource.hive_sync.partition_fields", ",".join(layout.fields))
    config = jvm.org.apache.hudi.hive.HiveSyncConfig(properties)
    naming = jvm.org.apache.hudi.hive.util.HivePartitionUtil.getPartitionClauseForDrop
    tried = 0
    for at, region in enumerate(REGIONS):
        row = [region, REGIONS[at - 1], REGIONS[at - 2]][: len(layout.fields)]
        try:
            folder = layout.folder(row)
        except UnsafePartition:
            continue
        tried += 1
        assert elements(values().extractPartitionValuesInPath(folder)) == row
        named = jvm.org.apache.hadoop.hive.metastore.Warehouse.makeSpecFromName(
            naming(folder, values(), config)
        )
        assert [str(named[field]) for field in layout.fields] == row
    assert tried >= (len(REGIONS) if layout.url_encode else 1)


def test_a_metastore_has_values_as_rows_hold_them(
    metastore: MetastoreServer, spark: SparkSession, tmp_path: Path, database: str
) -> None:
    writer = Regions(spark, tmp_path / "t", Folders(False, True, ("region",)))
    try:
        writer.write_all(REGIONS)
    finally:
        writer.table.close()
    spec = CatalogSpec(uris=metastore.uri, database=database, table="t", path=writer.spec.path)
    HiveSync(spark, spec).sync()
    assert Names(spark, metastore.uri, database).values() == sorted(REGIONS)


@pytest.mark.parametrize("hive_style", [False, True], ids=["plain", "hive style"])
def test_encoded_values_are_found_and_dropped_and_those_of_former_releases_are_replaced(
    metastore: MetastoreServer, spark: SparkSession, tmp_path: Path, database: str, hive_style: bool
) -> None:
    layout = Folders(hive_style, True, ("region",))
    writer = Regions(spark, tmp_path / "t", layout)
    names = Names(spark, metastore.uri, database)
    try:
        writer.write_all(REGIONS)
        spec = CatalogSpec(uris=metastore.uri, database=database, table="t", path=writer.spec.path)
        sync = HiveSync(spark, spec)
        sync.sync()
        assert names.values() == sorted(REGIONS)

        names.replace({region: escaped(region) for region in REGIONS})
        assert names.values() == sorted(map(escaped, REGIONS))
        sync = HiveSync(spark, spec)
        sync.sync()
        assert names.values() == sorted(REGIONS)

        gone = ("text/html", "50%25", "München")
        writer.take_out(gone)
        sync.sync()
        sync.sync()
        left = sorted(set(REGIONS) - set(gone))
        assert names.values() == left
    finally:
        writer.table.close()
    query = f"SELECT region, count(*) FROM {database}.t GROUP BY region ORDER BY region"
    assert sorted(by_name(metastore, query)) == [[region, 1] for region in left]
    query = f"SELECT count(*) FROM {database}.t WHERE region = '10:30'"
    assert by_name(metastore, query) == [[1]]
