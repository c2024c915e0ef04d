"""Runs in a locale other than UTF-8 are refused where file names need more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from table.errors import Refused
from table.hudi.driver import encodings
from table.hudi.driver.encodings import check_encodings, is_spelled_locally
from table.port import TableSpec

PARTITIONED: dict[str, Any] = {"partition_fields": ("region",)}


def spec(path: str, **changes: Any) -> TableSpec:
    return TableSpec(path=path, name="t", mode="insert", ddl="id STRING, region STRING", **changes)


class Spark:
    """A driver whose JVM has this encoding, and executors with these."""

    def __init__(self, driver: str, executors: tuple[str, ...] = ()) -> None:
        self._jvm = SimpleNamespace(
            java=SimpleNamespace(
                lang=SimpleNamespace(System=SimpleNamespace(getProperty=lambda _name: driver))
            )
        )
        mapped = SimpleNamespace(collect=lambda: ["utf-8"] * len(executors))
        self.sparkContext = SimpleNamespace(
            master="spark://cluster:7077" if executors else "local[2]",
            defaultParallelism=len(executors),
            parallelize=lambda *_: SimpleNamespace(map=lambda _one: mapped),
        )
        self._rows = [(name,) for name in executors]

    def range(self, *_: int) -> Any:
        return SimpleNamespace(selectExpr=lambda _query: SimpleNamespace(collect=lambda: self._rows))


def check(spark: Any, asked: TableSpec) -> None:
    check_encodings(spark, asked)


@pytest.mark.parametrize("encoding", ["ANSI_X3.4-1968", "ISO-8859-1", "Cp1252"])
def test_a_jvm_with_another_encoding_is_refused_where_table_partitions_are_folders_of_the_machine(
    encoding: str,
) -> None:
    with pytest.raises(
        Refused, match=f"the driver's JVM encodes file names in {encoding}, .*LC_ALL=C.UTF-8$"
    ):
        check(Spark(encoding), spec("file:///lake/t", **PARTITIONED))
    with pytest.raises(Refused, match="an executor's JVM"):
        check(Spark("UTF-8", ("UTF-8", encoding)), spec("file:///lake/t", **PARTITIONED))
    check(Spark("UTF-8", ("UTF-8", "UTF8")), spec("file:///lake/t", **PARTITIONED))


def test_python_with_another_encoding_is_refused_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings.sys, "getfilesystemencoding", lambda: "iso8859-1")
    with pytest.raises(Refused, match="the driver's Python encodes file names in iso8859-1"):
        check(Spark("UTF-8"), spec("/lake/t", **PARTITIONED))


def test_no_encoding_is_asked_for_where_no_file_name_needs_it() -> None:
    assert is_spelled_locally(spec("/lake/t", **PARTITIONED))
    assert is_spelled_locally(spec("/see/ü"))
    for asked in (
        spec("/lake/t"),
        spec("s3a://bucket/lake", **PARTITIONED),
        spec("hdfs://node:9000/lake", **PARTITIONED),
    ):
        assert not is_spelled_locally(asked)
        check(Spark("ANSI_X3.4-1968"), asked)
