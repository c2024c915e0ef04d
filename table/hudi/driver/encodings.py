"""Encodings of file names in the processes of a run.

A JVM and Python take the encoding of file names from the locale. In the POSIX locale a JVM spells the folder
`München` with question marks: Hudi then finds no file in it, and compactions and clusterings never complete.
Only file systems of the machine are affected; other stores encode their names themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from table.errors import Refused
from table.port import TableSpec
from table.store.location import FILE, Location

PROPERTY = "sun.jnu.encoding"
QUERY = f"java_method('java.lang.System', 'getProperty', '{PROPERTY}')"
"""An expression that executors evaluate: Spark does not fold it, since a method may be nondeterministic."""
UTF_8 = ("UTF-8", "UTF8")
ADVICE = "Start Spark, and the cluster's workers, in a UTF-8 locale such as LC_ALL=C.UTF-8"


def check_encodings(spark: SparkSession, spec: TableSpec) -> None:
    """Raise `Refused` if a process of this Spark cannot spell the table's folders."""
    if is_spelled_locally(spec):
        refuse_others(spec.path, _encodings(spark))


def is_spelled_locally(spec: TableSpec) -> bool:
    """Whether a process needs UTF-8 for file names: table partitions may have any characters."""
    where = Location.parse(spec.path)
    return where.scheme == FILE and (bool(spec.partition_fields) or not spec.path.isascii())


def refuse_others(path: str, encodings: Iterable[tuple[str, str]]) -> None:
    """Raise `Refused` for the first process with another encoding. `encodings`: process, encoding."""
    for process, encoding in encodings:
        if encoding.upper() not in UTF_8:
            raise Refused(
                f"table {path}: {process} encodes file names in {encoding}, which cannot spell every table "
                f"partition. {ADVICE}"
            )


def _encodings(spark: SparkSession) -> Iterator[tuple[str, str]]:
    jvm: Any = spark._jvm
    yield "the driver's JVM", str(jvm.java.lang.System.getProperty(PROPERTY))
    yield "the driver's Python", sys.getfilesystemencoding()
    context = spark.sparkContext
    if str(context.master).startswith("local["):  # executors are the driver's JVM
        return
    slots = max(context.defaultParallelism, 1)
    for row in spark.range(0, slots, 1, slots).selectExpr(QUERY).collect():
        yield "an executor's JVM", str(row[0])
    names = context.parallelize(range(slots), slots).map(lambda _: sys.getfilesystemencoding()).collect()
    yield from (("an executor's Python", name) for name in names)
