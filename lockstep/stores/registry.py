"""A real schema registry as a process of one's own: for the demo, for tests, for trying out.

Apicurio's, which speaks Confluent's REST interface, too. Loopback only; it keeps what it is told in memory.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from control_topic.cache_folder import default_cache
from lockstep.errors import Failed
from lockstep.launch.jars import find_java
from lockstep.launch.local_server import HOST, LocalServer
from lockstep.launch.submit import find_spark_home

VERSION = "2.6.13.Final"
NAME = f"apicurio-registry-app-{VERSION}"
_IVY_MODULE = f"""\
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
SAID_CHARS_MAX = 600


class RegistryServerError(Failed):
    """The server did not start, ended by itself, or cannot be had: the sentence says what to do."""


class RegistryServer(LocalServer):
    """One server process; see `LocalServer`.

    Raises `lockstep.launch.jars.JarsError` where Java is missing.
    """

    kind = "schema registry"
    failure = RegistryServerError

    @property
    def url(self) -> str:
        """Where it speaks as Confluent's."""
        return f"http://{self.address}/apis/ccompat/v7"

    def _prepare(self) -> None:
        self._program = _program()

    def _launch(self) -> None:
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dquarkus.http.host={HOST}"]
        options += [f"-Dquarkus.http.port={self.port}", "-Dregistry.rest.artifact.deletion.enabled=true"]
        self._spawn([str(find_java()), *options, "-jar", str(self._program)])

    def _asker(self) -> Callable[[], bool]:
        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"{self.url}/subjects", timeout=ANSWER_S) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, OSError):
                return False

        return answers


def _program() -> Path:
    """Its jar, beside what it needs; downloaded once. The folder appears whole or not at all."""
    folder = default_cache() / NAME
    if not folder.is_dir():
        default_cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=default_cache(), prefix="resolving-") as scratch:
            made = _unpacked(Path(scratch))
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():  # no other process was first
                    raise
    return folder / f"{NAME}-runner.jar"


def _unpacked(scratch: Path) -> Path:
    module = scratch / "ivy.xml"
    module.write_text(_IVY_MODULE, encoding="utf-8")
    ivy = max((find_spark_home() / "jars").glob("ivy-*.jar"))
    command = [str(find_java()), "-jar", str(ivy), "-cache", f"{scratch}/cache", "-ivy", str(module)]
    command += ["-confs", "default", "-types", "tar.gz", "-retrieve", f"{scratch}/[artifact].[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise RegistryServerError(
            f"The schema registry {NAME} was not downloaded within {DOWNLOAD_S} s: check the network."
        ) from error
    if done.returncode:
        said = " ".join(done.stdout.split())[-SAID_CHARS_MAX:]
        raise RegistryServerError(
            f"The schema registry {NAME} could not be downloaded: check the network; Ivy ended with {said}"
        )
    with tarfile.open(scratch / "apicurio-registry-app.tar.gz") as archive:
        archive.extractall(scratch / "whole", filter="data")
    return scratch / "whole"
