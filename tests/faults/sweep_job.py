"""The spark-submit entry of one sweep without grace time, for a table that nobody writes to at the moment.

Waiting for a run's own sweep takes minutes, and a scenario's verdict needs no more than that it removes
everything. What the grace time is good for is tested where runs are long.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click
from pyspark.sql import SparkSession

from lockstep.config import load
from table.hudi.table import HudiTable


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.option("-c", "--config", "path", type=click.Path(path_type=Path), required=True)
@click.option("--set", "sets", multiple=True)
def main(path: Path, sets: tuple[str, ...]) -> None:
    spark = SparkSession.builder.appName("lockstep-sweep").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        config = load(path, sets=sets)
        spec = replace(config.table_spec(), sweep_share=1.0)  # a killed worker of a small table leaves more
        table = HudiTable(spark, spec, config.pipeline.id)
        table.open()
        sys.stderr.write(f"removed {table.sweep(grace_ms=0).removed} files\n")
        table.close()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
