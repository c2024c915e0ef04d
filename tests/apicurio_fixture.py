"""A real schema registry for the whole test session: Apicurio's, which speaks Confluent's REST, too."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from control_topic.cache_folder import default_cache
from lockstep.launch.jars import find_java, find_spark_home
from lockstep.launch.local_server import HOST, LocalServer

VERSION = "2.6.13.Final"
NAME = f"apicurio-registry-app-{VERSION}"
IVY_MODULE = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="lockstep" module="apicurio"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" conf="default->default"
                transitive="false">
      <artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
DOWNLOAD_S, ANSWER_S = 600, 2.0


def program() -> Path:
    """Its jar, beside what it needs; downloaded once. The folder appears whole or not at all."""
    folder = default_cache() / NAME
    if not folder.is_dir():
        default_cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=default_cache(), prefix="resolving-") as scratch:
            made = _unpacked(Path(scratch))
            try:
                made.rename(folder)
            except OSError:
                assert folder.is_dir()  # another process was first
    return folder / f"{NAME}-runner.jar"


def _unpacked(scratch: Path) -> Path:
    module = scratch / "ivy.xml"
    module.write_text(IVY_MODULE, encoding="utf-8")
    ivy = max((find_spark_home() / "jars").glob("ivy-*.jar"))
    command = [str(find_java()), "-jar", str(ivy), "-cache", f"{scratch}/cache", "-ivy", str(module)]
    command += ["-confs", "default", "-types", "tar.gz", "-retrieve", f"{scratch}/[artifact].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False)
    assert done.returncode == 0, done.stdout[-2_000:]
    with tarfile.open(scratch / "apicurio-registry-app.tar.gz") as archive:
        archive.extractall(scratch / "whole", filter="data")
    return scratch / "whole"


class Apicurio(LocalServer):
    """It keeps what it has in memory."""

    kind: ClassVar[str] = "schema registry"

    @property
    def url(self) -> str:
        """Where it speaks as Confluent's."""
        return f"http://{self.address}/apis/ccompat/v7"

    def _launch(self) -> None:
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dquarkus.http.host={HOST}"]
        options += [f"-Dquarkus.http.port={self.port}", "-Dregistry.rest.artifact.deletion.enabled=true"]
        self._spawn([str(find_java()), *options, "-jar", str(program())])

    def _asker(self) -> Callable[[], bool]:
        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"{self.url}/subjects", timeout=ANSWER_S) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, OSError):
                return False

        return answers


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """Started when first asked for."""
    with Apicurio(tmp_path_factory.mktemp("apicurio")) as running:
        yield running
