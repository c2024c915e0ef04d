"""Hudi's write clients with a clock at their metadata table: jvm/TimedJavaWriteClient.java and its like.

Hudi writes its metadata table in the middle of `commitStats`, between our check and the completed instant,
and tells nobody how long that takes. Its clients have one method for it, which these override; and they leave
markers alone that are looked after elsewhere (table/hudi/upkeep/markers.py).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import reduce
from pathlib import PurePosixPath
from typing import Any

from table.errors import Refused
from table.hudi.driver.asking import Packages
from table.hudi.driver.compiled import java_class

log = logging.getLogger(__name__)

JAVA_CLIENT = "org.apache.hudi.client.HoodieJavaWriteClient"
SPARK_CLIENT = "org.apache.hudi.client.SparkRDDWriteClient"
TIMED: Mapping[str, str] = {
    JAVA_CLIENT: "TimedJavaWriteClient.java",
    SPARK_CLIENT: "TimedSparkWriteClient.java",
}
"""Of which client which class stands in for it: its source, in jvm/, which has its name."""
MISFIT = "how long Hudi's metadata table takes in a commit is not known, and counts as `write`"


class TimedClients:
    """Makes write clients. `jvm`: Py4J's own view, in which classes come to be."""

    def __init__(self, jvm: Any, gateway: Any) -> None:
        self._jvm = jvm
        self._gateway = gateway
        self._times = False
        """Whether the last client that was made is ours."""

    def make(self, client: str, context: Any, config: Any) -> Any:
        """A write client that is a `client`; Hudi's own where ours does not fit it, which is logged."""
        source = TIMED[client]
        name = f"lockstep.hudi.{PurePosixPath(source).stem}"
        try:
            java_class(self._jvm, self._gateway, name=name, source=source, beside=client, misfit=MISFIT)
        except Refused as error:
            log.warning("%s", error)
            name = client
        self._times = name != client
        found: Any = reduce(getattr, name.split("."), Packages(self._jvm))
        return found(context, config)

    def leave_markers(self, client: Any, instant: str) -> None:
        """In the commit of this instant the client leaves its markers alone, where it can; empty: in none."""
        if self._times:
            client.leaveMarkers(instant)

    def metadata_ms(self, client: Any, instant: str) -> int | None:
        """How long the metadata table took in the commit of this instant, which was this client's last one.

        In whole milliseconds, rounded down; None where there is no such table, or nobody knows.
        """
        took_ms = int(client.metadataMillis(instant)) if self._times else -1
        return took_ms if took_ms >= 0 else None
