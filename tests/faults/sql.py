"""`python -m tests.faults.sql STATEMENT…`: somebody who knows nothing of Lockstep says this to Spark SQL."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.faults.apart import apart
from tests.faults.spark_sql import session


def say(folder: Path, *statements: str, environment: Mapping[str, str] | None = None) -> None:
    """What Spark answers is left in the folder. `environment`: what its process is given beside ours."""
    apart("tests.faults.sql", folder / "sql.log", *statements, environment=environment)


def main() -> None:
    spark = session()
    try:
        for statement in sys.argv[1:]:
            spark.sql(statement).collect()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
