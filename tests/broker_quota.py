"""A broker that gives a client less than it could take."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.brokers.local import KAFKA, Broker
from lockstep.launch.jars import find_java, resolve

DEADLINE_S = 60.0


@contextmanager
def slowed(broker: Broker, client_id: str, *, bytes_per_s: int) -> Iterator[None]:
    """Whoever calls itself so is answered with no more, until the end of the `with`."""
    _alter(broker, client_id, "--add-config", f"consumer_byte_rate={bytes_per_s}")
    try:
        yield
    finally:
        _alter(broker, client_id, "--delete-config", "consumer_byte_rate")


def _alter(broker: Broker, client_id: str, *change: str) -> None:
    classpath = os.pathsep.join(map(str, resolve(KAFKA, None)))
    command = [str(find_java()), "-XX:TieredStopAtLevel=1", "-cp", classpath, "kafka.admin.ConfigCommand"]
    command += ["--bootstrap-server", broker.bootstrap_servers, "--alter", *change]
    command += ["--entity-type", "clients", "--entity-name", client_id]
    subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=True)
