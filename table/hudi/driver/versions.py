"""Versions of Hudi on the driver's class path.

A cloud's image has a Hudi of its own in Spark's jars/, and a JVM takes a class from the first jar that has
it: another version than the one that was asked for then writes the table. Source of a version: the
pom.properties of hudi-common, which Maven puts into each of Hudi's bundles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError

from table.errors import Refused
from table.hudi.driver.asking import elements

SUPPORTED = "1.2"
CLASS_FILE = "org/apache/hudi/common/table/HoodieTableMetaClient.class"
POM = "META-INF/maven/org.apache.hudi/hudi-common/pom.properties"
UNKNOWN = "unknown"


class HudiJar(NamedTuple):
    """A jar with Hudi's classes, and its version or `UNKNOWN`."""

    path: str
    version: str


def check_versions(jvm: Any) -> None:
    """Raise `Refused` where the driver's class path has another Hudi than the supported one."""
    refuse_others(list(hudi_jars(jvm)))


def hudi_jars(jvm: Any) -> Iterator[HudiJar]:
    """Yield the jars with Hudi's classes, the one whose classes are used first."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for found in elements(jvm.java.util.Collections.list(loader.getResources(CLASS_FILE))):
        place = str(found.toString()).removesuffix(CLASS_FILE)
        path = place.removesuffix("!/").removeprefix("jar:").removeprefix("file:")
        yield HudiJar(path, _version(jvm, place))


def refuse_others(jars: Sequence[HudiJar]) -> None:
    """Raise `Refused` for jars of several versions, and for one of an unsupported version."""
    told = ", ".join(f"{jar.version} in {jar.path}" for jar in jars)
    if len({jar.version for jar in jars}) > 1:
        raise Refused(
            f"Spark has several versions of Hudi on its class path: {told}. The first one counts. Remove the "
            f"image's own, so that {SUPPORTED} alone is left"
        )
    version = jars[0].version if jars else UNKNOWN
    if version != UNKNOWN and not version.startswith(f"{SUPPORTED}."):
        raise Refused(f"Spark has Hudi {told}. Lockstep writes with Hudi {SUPPORTED}: give Spark that one")


def _version(jvm: Any, place: str) -> str:
    properties = jvm.java.util.Properties()
    try:
        stream = jvm.java.net.URL(f"{place}{POM}").openStream()
    except Py4JJavaError:  # built without Maven's files
        return UNKNOWN
    try:
        properties.load(stream)
    finally:
        stream.close()
    return str(properties.getProperty("version") or UNKNOWN)
