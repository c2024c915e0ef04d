"""The classes of the driver's JVM in one file, parsed and verified once, which later JVMs map into memory.

Spark and Hudi load many thousands of them. JEP 350 (dynamic archives, Java 13 and newer): a JVM that is told
so writes what it has loaded when it ends, and another of the same Java with the same class path starts from
it. Nothing depends on the file: a JVM to which it does not fit loads its classes as ever, and says nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from control_topic.cache_folder import default_cache
from lockstep.launch.jars import which_java
from lockstep.launch.submit import JAVA_OPTIONS, find_spark_home

FOLDER = "classes"
OWN = ("-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-Xshare:")
"""Whoever gives one of these options has something else in mind."""
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
CHECKED = "-XX:+VerifySharedSpaces"
"""The checksums are compared at the start, which takes no time that could be measured."""


class ClassArchive:
    """The archive for this Java, this Spark and these jars of Hudi's, made or not.

    Its name says for what it was made, and its size: a JVM would crash on one that is cut off. Java is not
    started for it. Raises `OSError` where one of them cannot be looked at.
    """

    def __init__(self, java: Path, jars: Sequence[Path], spark_home: Path) -> None:
        files = (java.resolve(), *sorted((spark_home / "jars").glob("*.jar")), *jars)
        stats = [(path, path.stat()) for path in files]
        fit = "\n".join(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats)
        self.folder = default_cache() / FOLDER
        self._spark = _digest(str(spark_home))
        self._name = f"{self._spark}-{_digest(fit)}"

    def find(self) -> Path | None:
        """The file, None where it is still to be made."""
        whole = (path for path in self.folder.glob(f"{self._name}-*.jsa") if path == self._named(path))
        return next(whole, None)

    def keep(self, made: Path) -> Path:
        """Move a file, made in this very folder, to where it is found; durably, as it must not be cut off."""
        with made.open("rb") as file:
            os.fsync(file.fileno())
        return made.replace(self._named(made))

    def others(self, found: Path) -> list[Path]:
        """What the same Spark has beside it: for jars or a Java that it had before, or cut off."""
        return sorted(path for path in self.folder.glob(f"{self._spark}-*.jsa") if path != found)

    def _named(self, path: Path) -> Path:
        return self.folder / f"{self._name}-{path.stat().st_size}.jsa"


def options_to_make(archive: Path) -> str:
    """Options of a JVM that writes the archive when it ends."""
    return f'"-XX:ArchiveClassesAtExit={archive}" {SILENT}'


def options_to_use(jars: Sequence[Path], conf: Mapping[str, str]) -> str:
    """Options of a driver's JVM that starts from its archive; empty where there is none."""
    java = which_java()
    if not jars or java is None or any(option in conf.get(JAVA_OPTIONS, "") for option in OWN):
        return ""
    try:
        archive = ClassArchive(Path(java), jars, find_spark_home()).find()
    except OSError:
        return ""  # the start itself says what is wrong with Java or the jars
    return f'"-XX:SharedArchiveFile={archive}" {CHECKED} {SILENT}' if archive is not None else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
