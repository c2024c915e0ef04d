"""`python -m tests.faults.snapshot TABLE FILE [ENDPOINT]`: an upsert table's rows, as Spark SQL says.

By its snapshot query. The file gets a JSON list of [region, id, amount, ts]. `ENDPOINT`: of the server
that the table is on. S3 is reached as anybody would; what stands for Google's and Azure's storage as Lockstep
reaches it, since Hadoop's connector for Azure knows no address of another server.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from table.hudi.driver.reach import reach
from table.store.connectors import store_needs
from table.store.location import AZURE, GOOGLE, Location
from table.store.objects.settings import AccountKey, Anonymous, ObjectSettings
from tests.azure.server import KEY
from tests.faults.spark_sql import session

CREDENTIALS = {GOOGLE: Anonymous(), AZURE: AccountKey(KEY)}


def main() -> None:
    table, answer, *endpoint = sys.argv[1:]
    location = Location.parse(table)
    if location.scheme in CREDENTIALS:
        spark = session(needs=store_needs(table))
        reach(spark, location, ObjectSettings(endpoint=endpoint[0], credentials=CREDENTIALS[location.scheme]))
    else:
        spark = session(s3=endpoint[0] if endpoint else "")
    try:
        spark.sql(f"create table t using hudi location '{table}'")
        rows = spark.sql("select region, id, amount, ts from t").collect()
        Path(answer).write_text(json.dumps([list(row) for row in rows]), encoding="utf-8")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
