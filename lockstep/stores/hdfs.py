"""A real HDFS (a name node and a data node) as a process of one's own: for tests, for trying out.

Loopback only, no replication, no security: never for data that somebody needs. The jars are Hadoop's own,
which start such a cluster in one JVM.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from lockstep.errors import Failed
from lockstep.launch.jars import HDFS, find_java, resolve
from lockstep.launch.jvm import LATE_C2
from lockstep.launch.local_server import HOST, LocalServer, free_port
from table.store.hdfs.settings import HdfsSettings

HEAP_MB = 512
MANAGER = "org.apache.hadoop.test.MiniDFSClusterManager"
ADMINISTRATOR = "org.apache.hadoop.hdfs.tools.DFSAdmin"
ADMINISTRATOR_S = 60
PATIENCE_S = 10.0
SAFE_MODE_S = 2
"""A name node that was restarted waits so long for more blocks once it has all."""
_LOG4J = """\
log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1} %m%n
"""


class HdfsServerError(Failed):
    """The server did not start, or ended by itself: the sentence says what to do."""


class HdfsServer(LocalServer):
    """One server process; see `LocalServer`. Whoever starts it may do everything; others obey permissions.

    `data_dir` holds `data` and `hdfs.log`. Raises `lockstep.launch.jars.JarsError` where Java or the jars are
    missing.
    """

    kind = "hdfs"
    failure = HdfsServerError

    def __init__(
        self, data_dir: Path, *, port: int = 0, cache_dir: Path | None = None, data_nodes: int = 1
    ) -> None:
        """`data_nodes`: and so many copies of each block, unless who writes it wants others."""
        super().__init__(data_dir, port=port)
        self.data_nodes = data_nodes
        self._cache_dir = cache_dir
        self._java = ""
        self._jars: list[Path] = []
        self._http_port = 0

    @property
    def url(self) -> str:
        return f"hdfs://{self.address}"

    @property
    def settings(self) -> HdfsSettings:
        """How a store reaches it."""
        return HdfsSettings()

    def stop(self, *, timeout_s: float = 0.0) -> None:
        """As a crash would end it: what it has acknowledged is on disks."""
        self.kill()

    def administer(self, *arguments: str) -> str:
        """What Hadoop's own `hdfs dfsadmin` says to these. Raises `HdfsServerError` where it fails."""
        command = [self._java, *LATE_C2.split(), "-cp", self._classpath(), ADMINISTRATOR, "-fs", self.url]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=ADMINISTRATOR_S, check=False
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise HdfsServerError(
                f"dfsadmin {' '.join(arguments)} on {self.address}: {said[-1] if said else 'it failed'}"
            )
        return done.stdout

    @property
    def java(self) -> tuple[str, str]:
        """Once it is started: the program, and its class path."""
        return self._java, self._classpath()

    def _classpath(self) -> str:
        return os.pathsep.join(map(str, [self._data_dir, *self._jars]))

    def _prepare(self) -> None:
        self._java = str(find_java())
        self._jars = resolve(HDFS, self._cache_dir)

    def _launch(self) -> None:
        (self._data_dir / "log4j.properties").write_text(_LOG4J, encoding="utf-8")
        data = self._data_dir / "data"
        self._http_port = self._http_port or free_port(HdfsServerError)
        properties = {
            "hdfs.minidfs.basedir": data,
            "dfs.namenode.rpc-bind-host": HOST,
            "dfs.datanode.hostname": HOST,
            # Else a close is answered half a second later, when the file's last block has been reported.
            "dfs.namenode.file.close.num-committed-allowed": 1,
            "dfs.namenode.safemode.extension": 1_000 * SAFE_MODE_S,
            "dfs.namenode.lease-recheck-interval-ms": 500,
        }
        command = [self._java, f"-Xmx{HEAP_MB}m", *LATE_C2.split(), "-cp", self._classpath(), MANAGER]
        command += [
            "-nnport",
            str(self.port),
            "-httpport",
            str(self._http_port),
            "-datanodes",
            str(self.data_nodes),
        ]
        command += [] if data.exists() else ["-format"]
        for name, value in properties.items():
            command += ["-D", f"{name}={value}"]
        self._spawn(command)

    def _asker(self) -> Callable[[], bool]:
        """Whether it takes a file, which needs both of its nodes."""
        from table.store.hdfs.store import HdfsStore
        from table.store.location import HDFS as SCHEME
        from table.store.location import Location

        store = HdfsStore(Location(SCHEME, self.address, "/started"), HdfsSettings(patience_s=PATIENCE_S))

        def answers() -> bool:
            try:
                store.make_folder("")
                store.put("at", b"1")
            except OSError:
                return False
            return True

        return answers
