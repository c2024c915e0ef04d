"""`python -m tests.faults.snapshot TABLE FILE [ENDPOINT]`: an upsert table's rows, as Spark SQL says.

By its snapshot query. The file gets a JSON list of [region, id, amount, ts]. `ENDPOINT`: of the S3 server
that the table is on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.faults.spark_sql import session


def main() -> None:
    table, answer, *endpoint = sys.argv[1:]
    spark = session(s3=endpoint[0] if endpoint else "")
    try:
        spark.sql(f"create table t using hudi location '{table}'")
        rows = spark.sql("select region, id, amount, ts from t").collect()
        Path(answer).write_text(json.dumps([list(row) for row in rows]), encoding="utf-8")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
