"""Columns that Spark renames or drops by their ids: no commit of ours may have readers go by names again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lockstep.errors import EXIT_WELL
from tests.harness import SCHEMA, Pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SETTINGS = (
    "hoodie.schema.on.read.enable",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
)


@pytest.fixture
def by_ids(spark: SparkSession) -> Iterator[SparkSession]:
    for name in SETTINGS:
        spark.conf.set(name, "true")
    yield spark
    for name in SETTINGS:
        spark.conf.unset(name)


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("ALTER TABLE {t} RENAME COLUMN note TO remark", "column note was renamed to remark"),
        ("ALTER TABLE {t} DROP COLUMN amount", "column amount was dropped"),
        ("ALTER TABLE {t} ADD COLUMNS (more STRING)", ""),
    ],
    ids=["renamed", "dropped", "added"],
)
def test_a_table_whose_columns_were_changed_by_id_is_refused_unless_some_were_only_added(
    pipeline: Pipeline, by_ids: SparkSession, statement: str, refused: str
) -> None:
    pipeline.produce(100)
    assert pipeline.run_to_end().process.returncode == EXIT_WELL
    name = f"by_ids_{pipeline.id.replace('-', '_').replace('.', '_')}"
    by_ids.sql(f"CREATE TABLE {name} USING hudi LOCATION '{pipeline.place.address}'")
    by_ids.sql(statement.format(t=name))
    pipeline.produce(100)
    if not refused:
        pipeline.settings["record.schema"] = f"{SCHEMA}, more STRING"
    run = pipeline.run_to_end()
    if not refused:
        assert run.process.returncode == EXIT_WELL, run.text()
        return
    assert run.process.returncode != EXIT_WELL
    assert f"{refused} with Hudi's schema-on-read" in run.text()
    assert "Rewrite the table's rows with Spark into a new table" in run.text()
