"""First figures: `lockstep run --until latest` against Structured Streaming on the same topic, in turns.

    python -m bench.compare --records 4000000 --rounds 2

The window of both: from the job's own start (session up, Hudi loaded) to everything committed. Lockstep's
window so includes joining the group, the claim, the table's first commit and all transactions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench.records import SCHEMA, produce
from lockstep.broker import Broker
from lockstep.submit import HUDI_PACKAGE, environment, find_spark_home

KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7"
PARTITIONS = 4
TIMEOUT_S = 900


def lockstep(folder: Path, broker: Broker, topic: str, number: int, interval: str) -> dict[str, float]:
    """One run; rows and seconds from the driver's own log."""
    config = folder / f"lockstep-{number}.toml"
    config.write_text(
        f"""
[pipeline]
id = "bench-{number}"
workers = 2
[source]
bootstrap_servers = "{broker.bootstrap_servers}"
topics = ["{topic}"]
[record]
schema = "{SCHEMA}"
[table]
path = "file://{folder}/lockstep-{number}"
name = "events"
key = ["event_id"]
partition_by = "day"
[transaction]
interval = "{interval}"
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "lockstep.cli", "run", "-c", str(config), "--until", "latest"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    log = done.stdout + done.stderr
    commits = re.findall(r"^(\S+ \S+) .*committed instant .*?([\d,]+) by this run$", log, re.M)
    began = re.search(r"^(\S+ \S+) .*lockstep\.run: pipeline", log, re.M)
    if done.returncode != 0 or not commits or began is None:
        raise SystemExit(f"lockstep run failed ({done.returncode}):\n{log[-4000:]}")
    when = [datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f") for text in (began.group(1), commits[-1][0])]
    rows = [int(count.replace(",", "")) for _, count in commits]
    first = datetime.strptime(commits[0][0], "%Y-%m-%d %H:%M:%S,%f")
    return {
        "rows": rows[-1],
        "seconds": (when[1] - when[0]).total_seconds(),
        "commits": len(commits),
        "until_first_commit_seconds": (first - when[0]).total_seconds(),
    }


def structured_streaming(folder: Path, broker: Broker, topic: str, number: int) -> dict[str, float]:
    """One run; rows and seconds as the job itself measured them."""
    home = find_spark_home()
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "6g"]
    command += ["--packages", f"{HUDI_PACKAGE},{KAFKA_PACKAGE}"]
    for name, value in {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.pyspark.python": sys.executable,
    }.items():
        command += ["--conf", f"{name}={value}"]
    job = Path(__file__).with_name("structured_streaming.py")
    command += [str(job), topic, broker.bootstrap_servers, f"{folder}/streaming-{number}"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=environment(os.environ, spark_home=home),
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise SystemExit(f"structured streaming failed ({done.returncode}):\n{done.stderr[-4000:]}")
    measured: dict[str, float] = json.loads(lines[-1])
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--interval", default="5s")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as name:
        folder = Path(name)
        with Broker(folder / "broker") as broker:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            admin.create_topics([NewTopic("events", PARTITIONS)])["events"].result(30)
            began = time.monotonic()
            size_bytes = produce(
                broker.bootstrap_servers, "events", records=given.records, partitions=PARTITIONS
            )
            print(
                f"{given.records:,} records, {size_bytes / given.records:.0f} bytes each, produced in "
                f"{time.monotonic() - began:.0f} s",
                flush=True,
            )
            rates: dict[str, list[float]] = {"lockstep": [], "streaming": []}
            for number in range(given.rounds):
                for who in rates:
                    if who == "lockstep":
                        result = lockstep(folder, broker, "events", number, given.interval)
                    else:
                        result = structured_streaming(folder, broker, "events", number)
                    if result["rows"] != given.records:
                        raise SystemExit(f"{who} wrote {result['rows']} rows of {given.records}")
                    rates[who].append(result["rows"] / result["seconds"])
                    print(f"round {number} {who:9} {rates[who][-1]:>9,.0f} rows/s  {result}", flush=True)
            ratios = [a / b for a, b in zip(rates["lockstep"], rates["streaming"], strict=True)]
            print(
                f"ratio lockstep / structured streaming: min {min(ratios):.2f} median "
                f"{statistics.median(ratios):.2f} max {max(ratios):.2f}"
            )


if __name__ == "__main__":
    main()
