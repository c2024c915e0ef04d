"""A real Hive metastore as a process of one's own: for tests, for trying out.

Loopback only, its database a folder, no security: never for names that somebody needs.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from lockstep.errors import Failed
from lockstep.launch.jars import METASTORE, find_java, resolve
from lockstep.launch.jvm import LATE_C2
from lockstep.launch.local_server import HOST, LocalServer
from lockstep.launch.submit import find_spark_home

HEAP_MB = 384
MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
EVENTS = "org.apache.hadoop.hive.metastore.events"
NEEDED = (
    *("HikariCP", "avro", "commons-", "curator", "datanucleus", "derby", "guava", "hadoop-client", "jackson"),
    *("javax.jdo", "jdo-api", "libfb303", "libthrift", "log4j", "metrics-", "slf4j", "jcl-over", "jul-to"),
    *("hive-storage-api", "json", "zookeeper", "transaction-api", "jta", "antlr", "ST4", "orc-", "protobuf"),
)
"""How the names of those of Spark's jars begin that it stands on."""
ASK_S = 1.0


def _site(settings: Mapping[str, str]) -> str:
    """As Hadoop has its settings."""
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>"])


class MetastoreError(Failed):
    """The server did not start, or ended by itself: the sentence says what to do."""


class MetastoreServer(LocalServer):
    """One server process; see `LocalServer`. `data_dir` holds `database`, `warehouse` and `metastore.log`.

    `jars`, `hadoop`: what it needs beside its own to reach a table's store, as it does to see that a table's
    folder is there. Raises `lockstep.launch.jars.JarsError` where Java or the jars are missing.
    """

    kind = "metastore"
    failure = MetastoreError

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        cache_dir: Path | None = None,
        jars: Sequence[Path] = (),
        hadoop: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data_dir, port=port)
        self._more, self._hadoop = tuple(jars), dict(hadoop or {})
        self._cache_dir = cache_dir
        self._java = ""
        self._jars: list[Path] = []

    @property
    def uri(self) -> str:
        return f"thrift://{self.address}"

    def stop(self, *, timeout_s: float = 0.0) -> None:
        """As a crash would end it: what it has acknowledged is in its database."""
        self.kill()

    def _prepare(self) -> None:
        self._java = str(find_java())
        beside = sorted((find_spark_home() / "jars").glob("*.jar"))
        self._jars = resolve(METASTORE, self._cache_dir)
        self._jars += [*self._more, *(jar for jar in beside if jar.name.startswith(NEEDED))]

    def _launch(self) -> None:
        data = self._data_dir
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={data / 'database'};create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "metastore.schema.verification": "false",
            "metastore.thrift.uris": self.uri,
            "metastore.thrift.bind.host": HOST,
            "metastore.warehouse.dir": (data / "warehouse").as_uri(),
            "metastore.event.db.notification.api.auth": "false",
            # Those that it names by default are in the rest of Hive.
            "metastore.task.threads.always": f"{EVENTS}.EventCleanerTask",
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        }
        (data / "metastore-site.xml").write_text(_site(settings), encoding="utf-8")
        core = data / "core-site.xml"
        core.touch(mode=0o600)
        core.write_text(_site(self._hadoop), encoding="utf-8")
        classpath = os.pathsep.join(map(str, [data, *self._jars]))
        command = [self._java, f"-Xmx{HEAP_MB}m", *LATE_C2.split(), f"-Dderby.system.home={data}"]
        self._spawn([*command, "-cp", classpath, MAIN, "-p", str(self.port)])

    def _asker(self) -> Callable[[], bool]:
        """Whether it listens, which it does once its database is made."""

        def answers() -> bool:
            try:
                with socket.create_connection((HOST, self.port), ASK_S):
                    return True
            except OSError:
                return False

        return answers
