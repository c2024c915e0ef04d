"""`python -m bench.growing`: what it costs that each commit grows the newest file group, as Hudi itself does.

Spark inserts the same rows twice, commit by commit: into a table whose small files are grown until they have
the target's size, Hudi's default, and into one where every commit makes a file of its own. What commits have
written is the size of all files; what is kept is what a reader of the last commit reads. Figures are kept as
bench-growing.json.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.lookups import spark_here
from bench.place import typed
from table.hudi.files.base_file import parse_file_name
from tests import evidence

NAME = "bench-growing"
MB = 1_000_000
ROW_BYTES = 45
"""In a file, about: an id by chance does not get smaller."""
TABLES = ("grown", "a file each")


def options(name: str, target_bytes: int) -> dict[str, str]:
    """Of Spark's writer of Hudi tables."""
    small_bytes = target_bytes * 8 // 10 if name == TABLES[0] else 0
    return {
        "hoodie.table.name": "events",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.recordkey.field": "event_id",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.parquet.max.file.size": str(target_bytes),
        "hoodie.parquet.small.file.limit": str(small_bytes),
        "hoodie.copyonwrite.record.size.estimate": str(ROW_BYTES),
        "hoodie.insert.shuffle.parallelism": "1",
        "hoodie.metadata.enable": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
    }


def rows(spark: SparkSession, number: int, count: int) -> DataFrame:
    """Those of one commit."""
    ids = spark.range(number * count, (number + 1) * count, numPartitions=1)
    return ids.select(
        f.sha2(f.col("id").cast("string"), 256).substr(1, 32).alias("event_id"),
        (f.col("id") * 7_919 % 250_000).alias("user_id"),
        (f.col("id") % 20_000 / 100).alias("amount"),
        f.timestamp_millis(f.col("id") + 1_767_225_600_000).alias("ts"),
    )


def files_of(folder: Path) -> Iterator[tuple[str, str, int]]:
    """(file group, instant, bytes) of each base file."""
    for path in folder.glob("*.parquet"):
        parsed = parse_file_name(path.name)
        assert parsed is not None, f"{path.name} is no base file"
        group, _, instant = parsed
        yield group, instant, path.stat().st_size


def grow(spark: SparkSession, folder: Path, name: str, *, commits: int, count: int, target: int) -> Any:
    """Write it, and say what it took."""
    seconds = []
    for number in range(commits):
        began_s = time.monotonic()
        made = rows(spark, number, count).write.format("hudi").options(**options(name, target))
        made.mode("append").save(folder.as_uri())
        seconds.append(time.monotonic() - began_s)
    newest: dict[str, tuple[str, int]] = {}
    written_bytes = 0
    for group, instant, size_bytes in files_of(folder):
        written_bytes += size_bytes
        newest[group] = max(newest.get(group, ("", 0)), (instant, size_bytes))
    assert spark.read.format("hudi").load(folder.as_uri()).count() == commits * count
    kept_bytes = sum(size_bytes for _, size_bytes in newest.values())
    return {
        "table": name,
        "files": len(newest),
        "kept_bytes": kept_bytes,
        "written_bytes": written_bytes,
        "written_per_kept": round(written_bytes / kept_bytes, 2),
        "commit_first_s": round(statistics.median(seconds[1:4]), 2),
        "commit_last_s": round(statistics.median(seconds[-5:]), 2),
        "seconds": round(sum(seconds), 1),
    }


@click.command(help=(__doc__ or "").partition("\n\n")[0])
@click.option("--commits", default=40, show_default=True, type=click.IntRange(min=8))
@click.option("--commit-mb", default=1.0, show_default=True, help="What a commit brings, in files, about.")
@click.option("--target-mb", default=32.0, show_default=True, help="Of a file.")
def main(commits: int, commit_mb: float, target_mb: float) -> None:
    """As the command line says."""
    spark = spark_here()
    count, target_bytes = int(commit_mb * MB / ROW_BYTES), int(target_mb * MB)
    with TemporaryDirectory() as base:
        each = [
            grow(spark, Path(base) / str(place), name, commits=commits, count=count, target=target_bytes)
            for place, name in enumerate(TABLES)
        ]
    spark.stop()
    for one in each:
        print(one)
    figures = {"commits": commits, "rows_a_commit": count, "target_bytes": target_bytes, "each": each}
    path = evidence.write(NAME, command=typed("bench.growing"), passed=True, figures=figures)
    print(f"The figures are in {path}.")


if __name__ == "__main__":
    main()
