"""The jars of the rivals, resolved once with Maven into a cache; offline afterwards.

`mvn` (Apache Maven 3) must be on the PATH the first time. Nothing else of the bench or of Lockstep needs it.
Maven's own repository is a temporary one: in its usual place, what it leaves there (poms without their jars)
would mislead spark-submit's Ivy, which looks there first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from control_topic.cache_folder import default_cache
from lockstep.errors import Failed
from lockstep.launch.jars import KAFKA_VERSION, SLF4J_VERSION

ICEBERG_VERSION = "1.10.0"
EVENTS_VERSION = "1.10.1"
"""Of iceberg-kafka-connect-events: 1.10.0 was never published, the sink of 1.10.0 works with this one."""
HADOOP_VERSION = "3.4.1"
RESOLVE_TIMEOUT_S = 900

Artifact = tuple[str, str, str]
"""Group, name, version."""

_ICEBERG = "org.apache.iceberg"
SINK: Sequence[Artifact] = (
    (_ICEBERG, "iceberg-kafka-connect", ICEBERG_VERSION),
    (_ICEBERG, "iceberg-kafka-connect-events", EVENTS_VERSION),
    (_ICEBERG, "iceberg-core", ICEBERG_VERSION),
    (_ICEBERG, "iceberg-data", ICEBERG_VERSION),
    (_ICEBERG, "iceberg-parquet", ICEBERG_VERSION),
    (_ICEBERG, "iceberg-orc", ICEBERG_VERSION),
    ("org.apache.hadoop", "hadoop-client-api", HADOOP_VERSION),
    ("org.apache.hadoop", "hadoop-client-runtime", HADOOP_VERSION),
)
SQLITE_VERSION = "3.50.3.0"
ON_OBJECTS: Sequence[Artifact] = (
    (_ICEBERG, "iceberg-aws", ICEBERG_VERSION),
    (_ICEBERG, "iceberg-aws-bundle", ICEBERG_VERSION),
    ("org.xerial", "sqlite-jdbc", SQLITE_VERSION),
)
"""What the sink needs besides for tables on S3, and for their catalog."""
PINNED: Sequence[Artifact] = (
    (_ICEBERG, "iceberg-kafka-connect-events", EVENTS_VERSION),
    *((_ICEBERG, f"iceberg-{name}", ICEBERG_VERSION) for name in ("api", "core", "common", "bundled-guava")),
)
"""The newer events jar asks for newer ones of these."""
CONNECT: Sequence[Artifact] = (
    ("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    ("org.apache.kafka", "connect-json", KAFKA_VERSION),
    ("org.slf4j", "slf4j-simple", SLF4J_VERSION),
)
SPARK_KAFKA_VERSION = "3.5.7"
SPARK_KAFKA: Sequence[Artifact] = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.12", SPARK_KAFKA_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.12", SPARK_KAFKA_VERSION),
    ("org.apache.kafka", "kafka-clients", "3.4.1"),
    ("org.apache.commons", "commons-pool2", "2.11.1"),
)
"""What Spark itself does not bring along."""
SPARK_AVRO: Sequence[Artifact] = (("org.apache.spark", "spark-avro_2.12", "3.5.9"),)
"""Likewise, of `from_avro`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectJars:
    """`connect`: the worker's class path folder. `plugins`: holds the sink's folder, for `plugin.path`."""

    connect: Path
    plugins: Path


def resolve_connect(cache_dir: Path | None = None, *, objects: bool = False) -> ConnectJars:
    """Both folders of jars, downloaded where the cache does not hold them. Raises `Failed`.

    `objects`: with `ON_OBJECTS`.
    """
    cache = cache_dir if cache_dir is not None else default_cache()
    plugins = cache / f"iceberg-connect-{'s3-' if objects else ''}{ICEBERG_VERSION}"
    connect = cache / f"kafka-connect-{KAFKA_VERSION}"
    _ensure(plugins / "iceberg", (*SINK, *ON_OBJECTS) if objects else SINK, PINNED)
    _ensure(connect, CONNECT, ())
    return ConnectJars(connect=connect, plugins=plugins)


def resolve_spark_kafka(cache_dir: Path | None = None) -> list[Path]:
    """The jars of Spark's Kafka source, downloaded where the cache does not hold them. Raises `Failed`."""
    cache = cache_dir if cache_dir is not None else default_cache()
    folder = cache / f"spark-kafka-{SPARK_KAFKA_VERSION}"
    _ensure(folder, SPARK_KAFKA, (), transitive=False)
    return sorted(folder.glob("*.jar"))


def resolve_spark_avro(cache_dir: Path | None = None) -> list[Path]:
    """Likewise the jar of Spark's reader of Avro. Raises `Failed`."""
    cache = cache_dir if cache_dir is not None else default_cache()
    folder = cache / f"spark-avro-{SPARK_AVRO[0][2]}"
    _ensure(folder, SPARK_AVRO, (), transitive=False)
    return sorted(folder.glob("*.jar"))


def pom(artifacts: Sequence[Artifact], pinned: Sequence[Artifact]) -> str:
    """A Maven project that is nothing but these dependencies."""
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>lockstep</groupId><artifactId>bench</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencyManagement><dependencies>{_dependencies(pinned)}</dependencies></dependencyManagement>"
        f"<dependencies>{_dependencies(artifacts)}</dependencies></project>\n"
    )


def _dependencies(artifacts: Sequence[Artifact]) -> str:
    return "".join(
        f"<dependency><groupId>{escape(group)}</groupId><artifactId>{escape(name)}</artifactId>"
        f"<version>{escape(version)}</version></dependency>"
        for group, name, version in artifacts
    )


def _ensure(
    target: Path, artifacts: Sequence[Artifact], pinned: Sequence[Artifact], *, transitive: bool = True
) -> None:
    """The folder appears whole or not at all."""
    if any(target.glob("*.jar")):
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise Failed(
            f"The jars of {artifacts[0][1]} {artifacts[0][2]} are not in {target} and there is no mvn on the "
            "PATH to fetch them: install Apache Maven 3, or leave that rival out."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="resolving-") as scratch:
        project, jars = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        project.write_text(pom(artifacts, pinned), encoding="utf-8")
        command = [maven, "-q", "-B", "-f", str(project), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        command += [f"-DexcludeTransitive={str(not transitive).lower()}"]
        command += [f"-Dmaven.repo.local={scratch}/repository"]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=RESOLVE_TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
                env=dict(os.environ),
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(
                f"Maven did not fetch {artifacts[0][1]} within {RESOLVE_TIMEOUT_S} s: check the network."
            ) from error
        if done.returncode != 0 or not any(jars.glob("*.jar")):
            said = (done.stdout + done.stderr).strip()[-600:]
            raise Failed(f"Maven could not fetch {artifacts[0][1]} {artifacts[0][2]}: {said}")
        if not target.exists():
            jars.rename(target)
