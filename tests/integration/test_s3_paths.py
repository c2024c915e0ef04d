"""Tables in S3 at odd paths, by several spellings: one table to all, with real Spark and Hudi."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from lockstep.stores.local import S3Server
from table.hudi.driver.reach import reach
from table.kinds import HUDI, table_kind
from table.store.location import Location, store_at
from tests.integration import test_s3_table
from tests.integration.test_s3_table import Place, S3Driver
from tests.s3_proxy import S3Proxy

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3")]
opened = test_s3_table.opened

NAME = "täble-日本+=&;:~'()!$,@..d"


@pytest.fixture
def place(s3: S3Server) -> Iterator[Place]:
    with S3Proxy(s3.port) as proxy:
        made = Place(s3, proxy)
        made.path = f"{made.path}/{NAME}"
        made.direct = store_at(made.path, settings=s3.settings)
        yield made


def test_a_table_at_an_odd_path_is_the_same_to_all_who_read_it_however_it_is_spelled(
    opened: Callable[..., S3Driver], place: Place, spark: SparkSession, s3: S3Server
) -> None:
    first = opened()
    first.run("t1", 3)
    second = opened(path=f"{place.path.replace('s3a://', 's3://')}/")
    assert not second.layout.created, "another spelling is the same table"
    newest = second.table.newest()
    assert newest is not None and newest.transaction == "t1"
    second.run("t2", 2)
    rows = table_kind(HUDI).reader(place.path, s3.settings).rows()
    assert sum(len(batch) for file in rows.files for batch in file.batches) == 5
    reach(spark, Location.parse(place.path), place.settings)
    assert spark.read.format("hudi").load(place.path).count() == 5
