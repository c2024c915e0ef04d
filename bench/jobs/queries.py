"""Calls a procedure for tables, then asks each the same, in turns, in one JVM. Run by spark-submit.

One argument: a JSON file that says what to do, as `bench/queries.py` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
    sys.path.pop(0)  # this folder's names must not hide others'

import json
import time
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    tables: dict[str, str] = task["tables"]
    result: dict[str, Any] = {"call_s": {}, "digests": {}, "runs": []}
    for name, call in task["calls"].items():
        began = time.monotonic()
        spark.sql(call).collect()
        result["call_s"][name] = time.monotonic() - began
    for number in range(-task["warm_up"], task["rounds"]):
        for name in sorted(tables, reverse=number % 2 == 1):
            began = time.monotonic()
            answer = _ask(spark, tables[name], task["query"])
            taken_s = time.monotonic() - began
            result["runs"].append({"table": name, "round": number, "seconds": taken_s, "answer": answer})
    for name, path in tables.items():
        result["digests"][name] = _ask(spark, path, task["digest"])
    Path(task["result"]).write_text(json.dumps(result), encoding="utf-8")


def _ask(spark: SparkSession, path: str, query: str) -> list[Any]:
    """The one row of the answer. The table is opened anew, so that listing its files is inside."""
    spark.read.format("hudi").load(path).createOrReplaceTempView("asked")
    (row,) = spark.sql(query).collect()
    return list(row)


if __name__ == "__main__":
    main()
