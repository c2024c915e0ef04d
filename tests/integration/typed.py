"""A table of every type that a format has: through log blocks, base files and services, by each reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from participant.records.port import RecordSpec
from tests.data_files import data_files
from tests.integration.test_types import comparable
from tests.integration.test_upserts import Record, Upserts

IDS = ("r0", "r1", "r2")
MODES = ("upsert", "insert")
LOCAL_TIME = "TIMESTAMP_NTZ"


def parted(columns: Mapping[str, Any], ddl: Mapping[str, str], *, local_times: bool) -> dict[str, Any]:
    """Those with a time without a zone, or all others: the reader without a JVM ends at the former.

    Columns by which rows are found are in both.
    """
    return {
        name: one
        for name, one in columns.items()
        if not name.startswith("c") or (LOCAL_TIME in ddl[name]) == local_times
    }


class Typed:
    """Three rows, which hold `wanted` beside their `id`."""

    def __init__(
        self, spark: SparkSession, path: Path, spec: RecordSpec, mode: str, *, ddl: Mapping[str, str]
    ) -> None:
        plain = {} if mode == "upsert" else {"ordering_field": "", "bucket_count": 0}
        written = ", ".join(f"{name} {kind}" for name, kind in ddl.items())
        self.table = Upserts(spark, path, record=spec, ddl=written, mode=mode, **plain)
        self._spark, self._path, self._mode, self._ddl = spark, path, mode, ddl
        self._without_jvm = not any(LOCAL_TIME in kind for kind in ddl.values())

    def check(self, records: Sequence[Record], wanted: Mapping[str, Any]) -> None:
        """As they are written, as a service has written them anew, and where others stand above them."""
        self.table.run(records)
        self._by_spark(wanted)
        if self._mode == "upsert":
            assert self.table.logs()
        else:
            files = data_files(self._path)
            read = [row for one in files for row in pq.read_table(one, columns=list(self._ddl)).to_pylist()]
            self._compare(read, wanted)
            self._by_hudi(wanted)
        self._serve()
        self._by_spark(wanted)
        self._by_hudi(wanted)
        if self._mode == "upsert":
            self.table.run(records)  # log blocks on top of base files
            self._by_spark(wanted)
            self._by_hudi(wanted)

    def ids(self) -> list[str]:
        """Of the rows that Spark finds."""
        return sorted(str(row["id"]) for row in self._read())

    def _serve(self) -> None:
        """Let Hudi write the files anew, as Spark SQL does it."""
        at = f"op => 'scheduleandexecute', path => '{self._path}'"
        options, kind = ", options => 'hoodie.compact.inline.max.delta.commits=1'", "compaction"
        if self._mode == "insert":
            options, kind = "", "clustering"
        assert self._spark.sql(f"call run_{kind}({at}{options})").collect()
        done = "commit" if kind == "compaction" else "replacecommit"
        assert list(self._path.glob(f".hoodie/timeline/*_*.{done}"))

    def _read(self) -> list[dict[str, Any]]:
        self._spark.catalog.clearCache()
        frame = self._spark.read.format("hudi").load(str(self._path)).select(*self._ddl)
        return [row for batch in frame._collect_as_arrow() for row in batch.to_pylist()]

    def _by_spark(self, wanted: Mapping[str, Any]) -> None:
        """By either of its readers of parquet."""
        setting = "spark.sql.parquet.enableVectorizedReader"
        for vectorized in ("false", "true"):
            self._spark.conf.set(setting, vectorized)
            try:
                self._compare(self._read(), wanted)
            finally:
                self._spark.conf.unset(setting)

    def _by_hudi(self, wanted: Mapping[str, Any]) -> None:
        if self._without_jvm:
            batches = HudiTableBuilder.from_base_uri(str(self._path)).build().read()
            self._compare([row for one in batches for row in pa.record_batch(one).to_pylist()], wanted)

    def _compare(self, found: list[dict[str, Any]], wanted: Mapping[str, Any]) -> None:
        assert sorted(row["id"] for row in found) == list(IDS)
        for row in found:
            for name, value in wanted.items():
                if name != "id":
                    assert comparable(row[name]) == comparable(value), (name, self._ddl[name])
