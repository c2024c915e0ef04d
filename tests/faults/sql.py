"""`python -m tests.faults.sql STATEMENT…`: somebody who knows nothing of Lockstep says this to Spark SQL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.faults.spark_sql import session

SAY_S = 300.0


def say(folder: Path, *statements: str) -> None:
    """In a process of its own, whose log is left in the folder."""
    log = folder / "sql.log"
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "tests.faults.sql", *statements],
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SAY_S,
            check=False,
        ).returncode
    assert done == 0, f"Spark SQL refused: {log.read_text()[-4_000:]}"


def main() -> None:
    spark = session()
    try:
        for statement in sys.argv[1:]:
            spark.sql(statement).collect()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
