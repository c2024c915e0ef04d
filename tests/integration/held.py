"""The driver's connector to a bucket of its own, which tests tell that the table's lock is held."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from lockstep.stores.local import S3Server
from table.hudi.driver.connector import NAME, SETTING, connector, known_by_lock
from table.hudi.driver.reach import reach
from table.store.location import Location, store_at
from table.store.port import Store
from tests.s3_proxy import S3Proxy

TIMELINE = ".hoodie/metadata/.hoodie/timeline"


class Held:
    """A bucket of its own, and the driver's connector to it, which is told of the table's lock by us."""

    def __init__(self, spark: SparkSession, s3: S3Server, proxy: S3Proxy) -> None:
        bucket = f"known-{uuid.uuid4().hex[:12]}"
        s3.make_bucket(bucket)
        self.path = f"s3a://{bucket}/lake/events"
        self.proxy = proxy
        self.others: Store = store_at(self.path, settings=s3.settings)
        self.jvm: Any = spark._jvm
        connector(self.jvm, spark.sparkContext._gateway)
        settings = replace(s3.settings, endpoint=proxy.endpoint)
        reached = reach(spark, Location.parse(self.path), settings)
        conf = self.jvm.org.apache.hadoop.conf.Configuration(reached)
        conf.set(SETTING, NAME)
        for name, value in (("attempts.maximum", "1"), ("retry.limit", "1"), ("retry.interval", "10ms")):
            conf.set(f"fs.s3a.bucket.{bucket}.{name}", value)
        self.connector = self.jvm.org.apache.hadoop.fs.Path(self.path).getFileSystem(conf)
        self.locks = self.jvm.java.util.concurrent.ConcurrentHashMap()
        known_by_lock(self.jvm, taken=None, held=self.locks, here=True)

    def take(self) -> None:
        self.locks.put(self.path, self.jvm.java.lang.Object())

    def give_back(self) -> None:
        self.locks.remove(self.path)

    def at(self, path: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.path}/{path}")

    def names(self, folder: str) -> set[str]:
        return {str(one.getPath().getName()) for one in self.connector.listStatus(self.at(folder))}

    def make(self, path: str, content: bytes = b"made") -> None:
        made = self.connector.create(self.at(path), False)
        made.write(content)
        made.close()

    @contextmanager
    def asking(self, requests: int) -> Iterator[None]:
        """Inside so many are asked for."""
        before = self.proxy.counts.total()
        yield
        assert self.proxy.counts.total() - before == requests
