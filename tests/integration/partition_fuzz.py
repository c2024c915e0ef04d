"""Tables laid out by chance, of values by chance: what Spark's INSERT, MERGE and DELETE, and readers, make of
them.

`play` makes one table from a seed, and says what was found wrong. Longer than the tests play it:

    python -m tests.integration.partition_fuzz --seeds 100 [--first 1000]
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hudi import HudiReadOptions, HudiTable
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from table.errors import Contradiction
from table.hudi.driver.java import THROWN
from table.partitioners.expressions import TablePartitions, parse
from table.schema import parse_ddl
from tests.integration.laid import Laid
from tests.integration.test_foreign_writers import TOLD, Foreign

HIVE = "hoodie.datasource.write.hive_style_partitioning"
CODED = "hoodie.datasource.write.partitionpath.urlencode"
PLAIN: dict[str, str] = {
    "text": "STRING",
    "other": "STRING",
    "n": "INT",
    "big": "BIGINT",
    "ok": "BOOLEAN",
    "day": "DATE",
    "price": "DECIMAL(12,3)",
    "huge": "DECIMAL(38,0)",
    "at": "TIMESTAMP",
}
"""Fields."""
AS_THEY_ARE = tuple(name for name in PLAIN if name != "at")
"""Those by which a table may be partitioned."""
DDL = ", ".join(f"{name} {kind}" for name, kind in {"id": "STRING", **PLAIN, "ts": "BIGINT"}.items())
BERLIN = "from_utc_timestamp(at, 'Europe/Berlin')"
YORK = "from_utc_timestamp(at, 'America/New_York')"
MADE: dict[str, str] = {
    "day(at)": "date_format(at, 'yyyy-MM-dd')",
    "year(day)": "date_format(day, 'yyyy')",
    'month(at, "America/New_York")': f"date_format({YORK}, 'yyyy-MM')",
    "minutes(20, at)": "concat(date_format(at, 'yyyy-MM-dd-HH-'),"
    " lpad(minute(at) - minute(at) % 20, 2, '0'))",
    "format(at, \"d.M.yyyy 'h' H, m\") as odd": "date_format(at, \"d.M.yyyy 'h' H, m\")",
    'format(at, "yyyy/MM/dd HH:mm:ss") as coded': "date_format(at, 'yyyy/MM/dd HH:mm:ss')",
    "day(epoch_us(big)) as days": "if(big between -62135596800000000 and 253402300799999999,"
    " date_format(timestamp_micros(big), 'yyyy-MM-dd'), null)",
    'hour(at, "Europe/Berlin")': f"date_format({BERLIN}, 'yyyy-MM-dd-HH')",
    'format(at, "yyyy.MM") as month': "date_format(at, 'yyyy.MM')",
    "bucket(4, text)": "pmod(hash(text), 4)",
    "bucket(3, big)": "pmod(hash(big), 3)",
    "truncate(2, text)": "left(text, 2)",
    "truncate(1000, n)": "n - pmod(n, 1000)",
    "truncate(7, big)": "big - pmod(big, 7)",
}
"""Functions by which it may be partitioned -> the same in Spark SQL, in UTC."""
TEXTS = (
    *(
        "",
        "eu",
        "EU",
        "a b",
        " lead",
        "trail ",
        "  ",
        "ü ß",
        "e\u0301",
        "é",
        "😀",
        "\u202e",
        "\u2028",
        "\u0085",
    ),
    *("%41", "50%", "%", "a%2Fb", "%zz", "x=y", "=", "a=", "a/b", "/", "..", ".", ".hid", "_under", "-"),
    *("~", "a:b", "\t", "\n", "\r", "\x7f", "\x01", "null", "NULL", "__HIVE_DEFAULT_PARTITION__", "__null__"),
    *("default", "true", "1", "01", "1.0", "1e3", "1d", "2026-01-01", "2026-01-01 00:00:00", "0x1", "NaN"),
    *(
        "x" * 200,
        "ü" * 100,
        "x" * 201,
        "*",
        "?",
        "[a]",
        "{a,b}",
        "#",
        "'",
        '"',
        "\\",
        "|",
        "^",
        "$",
        "&",
        ";",
    ),
    *("a,b", "+", "@", "!", "`", "<>", "(x)", "{id}", "a\\b", "a'b", "_hoodie", ".hoodie", "part-0.parquet"),
)
TIMES = (
    *(
        "0001-01-01T00:00:00",
        "1582-10-10T12:00:00",
        "1899-12-31T23:59:59.999999",
        "1969-12-31T23:59:59.999999",
    ),
    *("1970-01-01T00:00:00", "2026-03-29T00:59:59", "2026-03-29T01:00:00", "2026-10-25T00:30:00"),
    *("2026-10-25T01:30:00", "2038-01-19T03:14:08", "9999-12-30T00:00:00.000001"),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROWS = 30
REFUSED = re.compile(r"as coded: .*urlencode")
"""What a new table is told that cannot be laid out so."""
SHOWN_MAX = 6
"""Of findings of a kind, in the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a table is laid out."""

    partition_by: tuple[str, ...]
    hive_style: bool
    url_encode: bool
    key_fields: tuple[str, ...]
    metadata: bool = True
    """Whether files are listed by the metadata table, or by what lies in folders."""
    mode: str = "insert"

    @property
    def fields(self) -> tuple[str, ...]:
        return TablePartitions.of(self.partition_by).partition_fields


def shape_of(chance: random.Random, *, kinds: Sequence[str] = (*AS_THEY_ARE, *MADE)) -> Shape:
    by = tuple(chance.sample(list(kinds), chance.choice((1, 1, 2, 3))))
    return Shape(
        partition_by=by,
        hive_style=chance.random() < 0.5,
        url_encode=chance.random() < 0.5,
        key_fields=chance.choice((("id",), (), ("id", "n"))),
        metadata=chance.random() < 0.5,
    )


def rows_of(chance: random.Random) -> list[dict[str, Any]]:
    """Few values of each field, so that many rows share a table partition."""

    def values(made: Any, count: int = 5) -> list[Any]:
        return [made() for _ in range(count)]

    def time() -> datetime:
        if chance.random() < 0.6:
            return datetime.fromisoformat(chance.choice(TIMES)).replace(tzinfo=UTC)
        return EPOCH + timedelta(microseconds=chance.randint(-(10**15), 10**16))

    def number(bits: int) -> int:
        return chance.choice(
            (0, 1, -1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, chance.getrandbits(bits - 1))
        )

    def decimal(digits: int, scale: int) -> Decimal:
        most = 10**digits - 1
        text = chance.choice((0, 1, -1, most, -most, chance.randint(-most, most), 500, 1_000))
        return Decimal(f"{text}e-{scale}")

    pools = {
        "text": values(lambda: chance.choice(TEXTS), 12),
        "other": values(lambda: chance.choice(TEXTS)),
        "n": values(lambda: number(32)),
        "big": values(lambda: number(64)),
        "ok": [True, False],
        "day": values(lambda: time().date()),
        "price": values(lambda: decimal(12, 3)),
        "huge": values(lambda: decimal(38, 0)),
        "at": values(time),
    }
    return [
        {
            "id": f"k{number}",
            **{name: chance.choice(pool) if chance.random() > 0.08 else None for name, pool in pools.items()},
            "ts": number,
        }
        for number in range(ROWS)
    ]


class Played:
    """One table, and what was found wrong with it."""

    def __init__(self, spark: SparkSession, folder: Path, shape: Shape, rows: list[dict[str, Any]]) -> None:
        self.shape, self.rows, self.found = shape, rows, Counter[str]()
        self.listed: list[str] = []
        partitions = TablePartitions.of(shape.partition_by)
        listing = {"hoodie.metadata.enable": str(shape.metadata).lower()}
        styles = {HIVE: str(shape.hive_style).lower(), CODED: str(shape.url_encode).lower()}
        self.table = Laid(
            spark,
            folder / "t",
            mode=shape.mode,
            ddl=DDL,
            key_fields=shape.key_fields,
            partition_fields=partitions.partition_fields,
            partition_terms=partitions.partition_terms,
            ordering_field="ts" if shape.mode == "upsert" else "",
            bucket_count=2 if shape.mode == "upsert" else 0,
            kafka_columns=False,
            properties={**styles, **listing},
        )
        self.foreign = Foreign(spark, folder / "t", folder, {**TOLD, **listing})
        self.session: SparkSession = self.foreign._session
        self.session.conf.set("spark.sql.session.timeZone", "UTC")
        # Hudi does not say in files that it writes by which calendar their days are
        self.session.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")

    def close(self) -> None:
        self.foreign.close()
        self.table.table.close()

    def wrong(self, kind: str, detail: object) -> None:
        self.found[kind] += 1
        if self.found[kind] <= SHOWN_MAX:
            self.listed.append(f"{self.shape}: {kind}: {detail!r}")

    # --- what is done -------------------------------------------------------------------------------

    def ours(self) -> list[dict[str, Any]]:
        """Those that were not refused."""
        self.table.run(pa.Table.from_pylist(self.rows, schema=parse_ddl(DDL)))
        return [row for place, row in enumerate(self.rows) if place not in self.table.refused]

    def frame(self, rows: Sequence[dict[str, Any]], prefix: str) -> DataFrame:
        """As Spark writes them, with the columns that functions make."""
        listed = [(prefix + row["id"][1:], *list(row.values())[1:]) for row in rows]
        frame = self.session.createDataFrame(listed, DDL).coalesce(1)
        for text in self.shape.partition_by:
            if text in MADE:
                frame = frame.withColumn(parse(text).column, F.expr(MADE[text]))
        return frame

    def sql(self, text: str, given: DataFrame) -> None:
        given.createOrReplaceTempView("given")
        columns = ", ".join(self.columns())
        self.foreign.run(text.format(t="{t}", columns=columns))

    def columns(self) -> list[str]:
        return ["id", *PLAIN, "ts", *(one for one in self.shape.fields if one not in PLAIN)]

    def scan(self) -> DataFrame:
        self.session.catalog.clearCache()
        return self.session.read.format("hudi").load(str(self.table.path))

    def spelled(self, frame: DataFrame) -> DataFrame:
        """With microseconds for times: Python makes none of the first day of the year 1."""
        return frame.withColumn("at", F.expr("unix_micros(cast(at as timestamp))"))

    def seen(self) -> dict[str, Any]:
        """id -> its row, as a query without a filter has it."""
        return {row["id"]: row for row in self.spelled(self.scan()).collect()}

    # --- what is looked at --------------------------------------------------------------------------

    def look_at_rows(self, kept: Sequence[dict[str, Any]], seen: dict[str, Any], prefix: str) -> None:
        """Spark's row of the same values is in the same folder, and shows the same."""
        for row in kept:
            number = row["id"][1:]
            one, other = seen.get(f"k{number}"), seen.get(prefix + number)
            if one is None or other is None:
                self.wrong("a row is missing", (row["id"], one is None, other is None))
                continue
            if one["_hoodie_partition_path"] != other["_hoodie_partition_path"]:
                paths = one["_hoodie_partition_path"], other["_hoodie_partition_path"]
                self.wrong(f"{prefix}: another folder", paths)
            for name in (*PLAIN, *self.shape.fields):
                if one[name] != other[name]:
                    self.wrong(f"{prefix}: {name} shows another value", (one[name], other[name]))
                if name in PLAIN and not self.is_shown(row[name], one[name]):
                    self.wrong(f"{name} is not what was written", (row[name], one[name]))

    def is_shown(self, written: Any, shown: Any) -> bool:
        if isinstance(written, datetime):
            return bool(shown == (written - EPOCH) // timedelta(microseconds=1))
        return bool(written == shown) or (written == "" and shown is None)

    def look_at_filters(self, seen: dict[str, Any]) -> None:
        """A filter by a partition field finds what a query without one has."""
        asked: list[tuple[str, Column, Any, int]] = []
        for name in self.shape.fields:
            values = list(dict.fromkeys(row[name] for row in seen.values()))
            column = F.col(name)
            for value in values:
                wanted = sum(row[name] == value for row in seen.values())
                one = column.isNull() if value is None else column == literal(name, value)
                asked.append((name, one, value, wanted))
                self.look_without_jvm(name, value, wanted)
            some = sorted(value for value in values if value is not None)[::2]
            wanted = sum(row[name] in some for row in seen.values())
            several = column.isin([literal(name, value) for value in some])
            asked.append((name, several & (F.col("ts") >= 0), some, wanted))
            if some:
                middle = some[len(some) // 2]
                wanted = sum(row[name] is not None and row[name] >= middle for row in seen.values())
                asked.append((name, column >= literal(name, middle), middle, wanted))
        self.count(asked)

    def count(self, asked: Sequence[tuple[str, Column, Any, int]]) -> None:
        """All filters in one job: each is a scan of its own, with what it prunes."""
        scan, rows = self.scan(), None
        for place, (_, condition, _, _) in enumerate(asked):
            found = scan.where(condition).agg(F.lit(place), F.count("*"))
            rows = found if rows is None else rows.union(found)
        assert rows is not None
        counted = {row[0]: row[1] for row in rows.collect()}
        for place, (name, _, of, wanted) in enumerate(asked):
            if counted[place] != wanted:
                self.wrong(f"{name}: a filter finds others", (of, counted[place], wanted))

    def look_without_jvm(self, name: str, value: Any, wanted: int) -> None:
        """By the `hudi` reader."""
        if value is None:
            return
        text = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            options = HudiReadOptions(filters=[(name, "=", text)])
            counted = sum(
                pa.record_batch(one).num_rows for one in HudiTable(str(self.table.path)).read(options)
            )
        except Exception as error:  # noqa: BLE001 - whatever a reader of others raises is a finding
            self.wrong(f"{name}: the reader without a JVM fails", (value, str(error)[:200]))
            return
        if counted != wanted:
            self.wrong(f"{name}: the reader without a JVM finds others", (value, counted, wanted))

    def look_at_all_without_jvm(self, seen: dict[str, Any]) -> None:
        try:
            rows = [
                row
                for batch in HudiTable(str(self.table.path)).read(HudiReadOptions())
                for row in pa.record_batch(batch).to_pylist()
            ]
        except Exception as error:  # noqa: BLE001 - as above
            self.wrong("the reader without a JVM fails", str(error)[:200])
            return
        if sorted(row["id"] for row in rows) != sorted(seen):
            self.wrong("the reader without a JVM sees other rows", (len(rows), len(seen)))


def literal(name: str, value: Any) -> Column:
    """As `Played.seen` shows it, in a filter."""
    return F.timestamp_micros(F.lit(value)) if name == "at" else F.lit(value)


def play(spark: SparkSession, folder: Path, seed: int, **changes: Any) -> list[str]:
    """What was found wrong, of a table of this seed."""
    chance = random.Random(seed)
    shape = changes.pop("shape", None) or shape_of(chance, **changes)
    try:
        one = Played(spark, folder, shape, rows_of(chance))
    except Contradiction as refused:
        return [] if REFUSED.search(str(refused)) else [f"{shape}: it is refused: {refused}"]
    try:
        kept = one.ours()
        _statements(one, kept)
    except (PySparkException, *THROWN) as error:
        one.wrong("Spark fails", str(error)[:600])
    finally:
        one.close()
    return one.listed


def _statements(one: Played, kept: Sequence[dict[str, Any]]) -> None:
    one.sql("insert into {t} ({columns}) select {columns} from given", one.frame(kept, "s"))
    seen = one.seen()
    one.look_at_rows(kept, seen, "s")
    one.look_at_all_without_jvm(seen)
    one.look_at_filters(seen)
    new, old = kept[:10], [row for row in kept[10:] if row["n"] is not None][:3]
    keyed = " and t.n = s.n" if "n" in one.shape.key_fields else ""
    values = ", ".join(f"s.{name}" for name in one.columns())
    one.sql(
        f"merge into {{t}} t using given s on t.id = s.id{keyed}"
        " when matched then update set id = s.id"
        f" when not matched then insert ({{columns}}) values ({values})",
        one.frame(new, "m").union(one.frame(old, "k")),
    )
    merged = one.seen()
    one.look_at_rows(new, merged, "m")
    one.look_at_rows(old, merged, "s")
    if set(merged) != set(seen) | {f"m{row['id'][1:]}" for row in new}:
        one.wrong("MERGE leaves others", sorted(set(merged) ^ set(seen)))
    gone = {row["id"] for row in kept[::3]}
    if gone:
        one.foreign.run(f"delete from {{t}} where id in ({', '.join(map(repr, sorted(gone)))})")
    left = one.seen()
    if set(left) != set(merged) - gone:
        one.wrong("DELETE takes others", sorted(set(merged) ^ set(left)))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--seeds", type=int, default=20)
    asked.add_argument("--first", type=int, default=0)
    options = asked.parse_args()
    from tests.integration.conftest import local_spark

    spark = local_spark()
    for seed in range(options.first, options.first + options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            found = play(spark, Path(folder), seed)
        sys.stdout.write("\n  ".join([f"seed {seed}: {len(found)} findings", *found]) + "\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
