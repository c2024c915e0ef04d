"""One more data node of an HDFS, in a process of its own, so that it can die by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lockstep.launch.jvm import LATE_C2
from lockstep.launch.local_server import HOST, LocalServer, free_port
from lockstep.stores.hdfs import HdfsServer, HdfsServerError

HEAP_MB = 256
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


class DataNode(LocalServer):
    """One process; see `LocalServer`. `data_dir` holds `data` and `data-node.log`."""

    kind = "data-node"
    failure = HdfsServerError

    def __init__(self, data_dir: Path, hdfs: HdfsServer) -> None:
        super().__init__(data_dir)
        self._hdfs = hdfs

    def stop(self, *, timeout_s: float = 0.0) -> None:
        self.kill()

    def _launch(self) -> None:
        properties = {
            "fs.defaultFS": self._hdfs.url,
            "dfs.datanode.data.dir": f"file://{self._data_dir}/data",
            "dfs.datanode.hostname": HOST,
            "dfs.datanode.address": f"{HOST}:{self.port}",
            "dfs.datanode.ipc.address": f"{HOST}:{free_port(HdfsServerError)}",
            "dfs.datanode.http.address": f"{HOST}:{free_port(HdfsServerError)}",
        }
        java, classpath = self._hdfs.java
        command = [java, f"-Xmx{HEAP_MB}m", *LATE_C2.split(), "-cp", classpath, DATA_NODE]
        for name, value in properties.items():
            command += ["-D", f"{name}={value}"]
        self._spawn(command)

    def _asker(self) -> Callable[[], bool]:
        """Whether the name node knows it beside its own."""
        live = f"Live datanodes ({self._hdfs.data_nodes + 1})"
        return lambda: live in self._hdfs.administer("-report", "-live")
