"""What a table asks a real JVM for, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JavaClass
from py4j.protocol import REFL_GET_UNKNOWN_SUB_COMMAND_NAME, REFLECTION_COMMAND_NAME
from pyspark.sql import SparkSession

from table.hudi.driver.asking import Packages, elements, texts
from tests.integration.test_hudi_table import Driver

pytestmark = pytest.mark.integration

ASKS = REFLECTION_COMMAND_NAME + REFL_GET_UNKNOWN_SUB_COMMAND_NAME


@pytest.fixture
def asked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that the JVM is asked for, from here on."""
    names: list[str] = []
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    send = client.send_command

    def noted(command: str, *args: Any, **kwargs: Any) -> Any:
        if command.startswith(ASKS):
            names.append(command.removeprefix(ASKS).split("\n")[0])
        return send(command, *args, **kwargs)

    monkeypatch.setattr(client, "send_command", noted)
    return names


def test_a_package_and_a_class_are_asked_for_once(spark: SparkSession, asked: list[str]) -> None:
    jvm = Packages(spark._jvm)
    for _ in range(2):
        assert jvm.java.util.Collections.emptyList().size() == 0
        assert jvm.org.apache.hudi.common.util.Option.of("a").get() == "a"
    assert (
        len(asked)
        == len(set(asked))
        == len(["java", "util", "Collections", "org", "apache", "hudi", "common", "util", "Option"])
    )
    assert isinstance(jvm.java.util.Collections, JavaClass)
    assert not isinstance(jvm.org.apache.hudi.nowhere.Nothing, JavaClass)


def test_texts_come_over_as_they_are(spark: SparkSession) -> None:
    jvm = Packages(spark._jvm)
    said = {"lockstep.offsets": '{"a\\n": "\\u00e9"}', "": "", "ä\u2028\x00": "😀\r\n"}
    mapped = jvm.java.util.HashMap()
    for name, value in said.items():
        mapped.put(name, value)
    assert texts(jvm.org.apache.hudi, mapped) == said
    assert elements(jvm.java.util.TreeSet(mapped.keySet())) == sorted(said)


def test_a_transaction_asks_for_no_name_that_one_before_it_has_asked_for(
    spark: SparkSession, tmp_path: Path, asked: list[str]
) -> None:
    driver = Driver(spark, tmp_path / "t")
    driver.run("t1", 3)
    assert "org.apache.hudi.common.util.Option" in asked
    del asked[:]
    driver.run("t2", 3)
    driver.table.close()
    assert asked == []
