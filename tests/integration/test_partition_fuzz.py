"""Tables laid out by chance: see `tests.integration.partition_fuzz`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.partition_fuzz import Shape, play

pytestmark = pytest.mark.integration

SHAPES = (
    Shape(partition_by=("text",), hive_style=False, url_encode=True, key_fields=("id",), metadata=False),
    Shape(partition_by=("other",), hive_style=True, url_encode=False, key_fields=("id",), metadata=False),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: "+".join(one.partition_by))
def test_what_spark_and_lockstep_write_of_the_same_is_found_in_the_same_folders(
    spark: SparkSession, tmp_path: Path, shape: Shape
) -> None:
    assert not play(spark, tmp_path, SHAPES.index(shape), shape=shape)
