"""How Hadoop's own client reaches the HDFS that this library reaches. It is in Spark's own jars.

Of the cluster's configuration it takes all but which file system is the default one: paths without a scheme
that the application has elsewhere are to mean what they meant.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from table.port import SparkNeeds
from table.store.connectors import Connector, HadoopSettings, Tuning
from table.store.hdfs.settings import HdfsSettings
from table.store.security import FILES
from table.store.settings import StoreSettings

TUNING: Mapping[str, str] = {
    "ipc.client.connect.timeout": "5000",
    "ipc.client.connect.max.retries": "3",
    "ipc.client.connect.max.retries.on.timeouts": "2",
    "ipc.client.rpc-timeout.ms": "10000",
    "dfs.client.failover.max.attempts": "6",
    "dfs.client.failover.sleep.max.millis": "5000",
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
}
"""Where nobody has said otherwise. A name node that is away or stands still fails what is asked of it sooner
than a guardian ends who holds the table lock for it: the commit fails, and not the run. A file whose last
block is not reported yet is asked for again soon: Hudi closes a dozen small ones for each commit."""


def hdfs_settings(settings: StoreSettings, _authority: str) -> HadoopSettings:
    assert isinstance(settings, HdfsSettings)
    folder = settings.config_folder
    return HadoopSettings(
        plain={},
        resources=tuple(posixpath.join(folder, name) for name in FILES) if folder else (),
        tuning=tuple(Tuning(asked=name, name=name, value=value) for name, value in TUNING.items()),
    )


HDFS_CONNECTOR = Connector(needs=SparkNeeds(), settings=hdfs_settings)
