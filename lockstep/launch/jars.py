"""The jars of real servers, resolved once with the Ivy that pyspark ships, and the Java to run them.

Each server runs in a JVM of its own: Kafka's Scala and Jackson clash with Spark's.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from control_topic.cache_folder import default_cache
from lockstep.errors import Failed
from lockstep.launch.submit import find_spark_home

KAFKA_VERSION = "4.1.0"
SLF4J_VERSION = "1.7.36"
"""The servers' jars name no logging backend; without one a server that refuses to start says nothing."""
HDFS_VERSION = "3.3.4"
"""Of Spark's own Hadoop."""

METASTORE_VERSION = "3.1.3"

JAVA_MAJOR_MIN, JAVA_MAJOR_MAX = 17, 22
"""Spark 3.5's Hadoop asks `Subject.getSubject`, which throws from Java 23 on (JDK-8296244)."""
JAVA_TIMEOUT_S = 30
RESOLVE_TIMEOUT_S = 900
LOCK_POLL_S = 0.2

_IVY_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="lockstep" module="{name}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


_ALONE = ' transitive="false"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What one server is made of."""

    title: str
    """For people."""
    name: str
    """Of its folder in the cache, with the version."""
    packages: tuple[str, ...]
    """`group:artifact:version`; what they need comes with them. With `:classifier`, it alone."""
    alone: bool = False
    """Nothing comes with them."""

    def ivy_module(self) -> str:
        lines = "\n".join(_dependency(*package.split(":"), alone=self.alone) for package in self.packages)
        return _IVY_MODULE.format(name=self.name, dependencies=lines)


def _dependency(group: str, artifact: str, version: str, classifier: str = "", *, alone: bool = False) -> str:
    named = f'org="{group}" name="{artifact}" rev="{version}" conf="default->default"'
    if not classifier:
        return f"    <dependency {named}{_ALONE * alone}/>"
    one = f'<artifact name="{artifact}" type="jar" ext="jar" m:classifier="{classifier}"/>'
    return f"    <dependency {named}{_ALONE}>{one}</dependency>"


def classified(packages: Sequence[str], cache_dir: Path | None = None) -> list[Path]:
    """The jars of `group:artifact:version:classifier`, each alone, as `resolve` has them."""
    found = []
    for package in packages:
        _, artifact, version, classifier = package.split(":")
        name = f"{artifact}-{version}-{classifier}"
        found += resolve(Bundle(title=name, name=name, packages=(package,)), cache_dir)
    return found


KAFKA = Bundle(
    title=f"Kafka {KAFKA_VERSION}",
    name=f"kafka-{KAFKA_VERSION}",
    packages=(f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", f"org.slf4j:slf4j-simple:{SLF4J_VERSION}"),
)
HDFS = Bundle(
    title=f"HDFS {HDFS_VERSION}",
    name=f"hdfs-{HDFS_VERSION}",
    packages=(
        f"org.apache.hadoop:hadoop-client-minicluster:{HDFS_VERSION}",
        f"org.slf4j:slf4j-reload4j:{SLF4J_VERSION}",
    ),
)


METASTORE = Bundle(
    title=f"Hive metastore {METASTORE_VERSION}",
    name=f"hive-standalone-metastore-{METASTORE_VERSION}",
    packages=(f"org.apache.hive:hive-standalone-metastore:{METASTORE_VERSION}",),
    alone=True,
)
"""What it needs is among Spark's own jars, in versions that run on this Java."""


class JarsError(Failed):
    """Java or the jars are not to be had: the sentence says what to do."""


def which_java() -> str | None:
    """The `java` of JAVA_HOME, or of PATH, as it would be started; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None)


def find_java() -> Path:
    """The `java` of JAVA_HOME, or of PATH. Raises `JarsError` where it is missing, too old or too new."""
    found = which_java()
    if found is None:
        home = os.environ.get("JAVA_HOME")
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        raise JarsError(
            f"Java {JAVA_MAJOR_MIN} or newer is needed and {where}:"
            " install it, or set JAVA_HOME to where it is."
        )
    major = _java_major(found)
    if major < JAVA_MAJOR_MIN:
        raise JarsError(
            f"{found} is Java {major} and Java {JAVA_MAJOR_MIN} or newer is needed:"
            " install it, or set JAVA_HOME to where it is."
        )
    if major > JAVA_MAJOR_MAX:
        raise JarsError(
            f"{found} is Java {major}, and Spark 3.5 runs on Java {JAVA_MAJOR_MIN} to {JAVA_MAJOR_MAX}: its "
            "Hadoop calls what newer ones refuse. Install one of those, and set JAVA_HOME to where it is."
        )
    return Path(found)


def _java_major(java: str) -> int:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JarsError(
            f"{java} -version did not answer ({error}): set JAVA_HOME to a Java that runs."
        ) from error
    # "17.0.15", "21-ea", and "1.8.0_412" for Java 8
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if match is None:
        raise JarsError(f"{java} -version does not say a version: set JAVA_HOME to a Java that runs.")
    return int(match.group(1))


def resolve(bundle: Bundle, cache_dir: Path | None = None) -> list[Path]:
    """The server's jars, sorted; downloaded where the cache does not hold them yet.

    The folder appears whole or not at all, and of several processes one downloads. Raises `JarsError`.
    """
    cache = cache_dir if cache_dir is not None else default_cache()
    target = cache / bundle.name
    if not target.is_dir():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with _locked(cache / f"{target.name}.lock"):
                if not target.is_dir():
                    _retrieve(bundle, cache, target)
        except OSError as error:
            raise JarsError(
                f"The cache {cache} cannot be written ({error}): set LOCKSTEP_CACHE to a folder that can."
            ) from error
    jars = sorted(target.glob("*.jar"))
    if not jars:
        raise JarsError(f"{target} holds no jars: remove it, so that they are downloaded again.")
    return jars


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + RESOLVE_TIMEOUT_S
    with path.open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise JarsError(
                        f"Another process has held {path} for {RESOLVE_TIMEOUT_S} s: end it, then try again."
                    ) from error
                time.sleep(LOCK_POLL_S)
        yield


def _ivy_jar() -> Path:
    home = find_spark_home()
    found = sorted((home / "jars").glob("ivy-*.jar"))
    if not found:
        raise JarsError(f"{home} holds no ivy-*.jar: install pyspark again.")
    return found[-1]


def _retrieve(bundle: Bundle, cache: Path, target: Path) -> None:
    java, ivy = find_java(), _ivy_jar()
    log = cache / f"{target.name}.resolve.log"
    with tempfile.TemporaryDirectory(dir=cache, prefix="resolving-") as scratch:
        module, jars = Path(scratch) / "ivy.xml", Path(scratch) / "jars"
        module.write_text(bundle.ivy_module(), encoding="utf-8")
        # Ivy's own cache has no lock, and Spark uses it too: this one is nobody else's.
        command = [str(java), "-jar", str(ivy), "-cache", f"{scratch}/cache", "-ivy", str(module)]
        command += ["-confs", "default", "-types", "jar", "bundle"]
        command += ["-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]
        try:
            with log.open("w") as output:
                status = subprocess.run(
                    command, stdout=output, stderr=subprocess.STDOUT, timeout=RESOLVE_TIMEOUT_S, check=False
                ).returncode
        except subprocess.TimeoutExpired:
            status = None
        if status != 0:
            how = f"ended with {status}" if status is not None else f"did not end in {RESOLVE_TIMEOUT_S} s"
            raise JarsError(
                f"{bundle.title} could not be downloaded, Ivy {how} and its output is in {log}:"
                " check the network (a proxy: JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=… -Dhttps.proxyPort=…'),"
                f" or put the jars of its own distribution into {target}."
            )
        jars.rename(target)
    log.unlink()
