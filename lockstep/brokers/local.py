"""A real single-node Kafka broker (KRaft) as a process of one's own: for the demo, for tests, for trying out.

Loopback only, no security, no replication: never for data that somebody needs.
"""

from __future__ import annotations

import base64
import logging
import os
import subprocess
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lockstep.errors import Failed
from lockstep.launch.jars import KAFKA, find_java, resolve
from lockstep.launch.jvm import LATE_C2
from lockstep.launch.local_server import HOST, LocalServer, free_port

FORMAT_TIMEOUT_S = 180.0
METADATA_TIMEOUT_S = 1.0

_QUIET = logging.getLogger("lockstep.broker.starting")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False  # librdkafka complains about every refused connection until the broker is up


class BrokerError(Failed):
    """The broker did not start, or ended by itself: the sentence says what to do."""


class Broker(LocalServer):
    """One broker process; see `LocalServer`.

    `data_dir` holds the log folders, `server.properties` and `broker.log`. `properties`: Kafka's own, which
    count before ours. Methods raise `BrokerError`, and `lockstep.launch.jars.JarsError` where Java or the
    jars are missing.
    """

    kind = "broker"
    failure = BrokerError

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        cache_dir: Path | None = None,
        heap_mb: int = 1024,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data_dir, port=port)
        self._properties = properties or {}
        self._cache_dir = cache_dir
        self._heap_mb = heap_mb
        self._java = ""
        self._classpath = ""

    @property
    def bootstrap_servers(self) -> str:
        return self.address

    @property
    def folder(self) -> Path:
        """Its data folder, with the source partitions' logs in `logs`."""
        return self._data_dir

    def _prepare(self) -> None:
        self._java = str(find_java())
        self._classpath = os.pathsep.join(map(str, resolve(KAFKA, self._cache_dir)))

    def _launch(self) -> None:
        java, classpath = self._java, self._classpath
        properties = self._data_dir / "server.properties"
        ours = _server_properties(self.port, free_port(BrokerError), self._data_dir)
        lines = (f"{name}={value}" for name, value in {**ours, **self._properties}.items())
        properties.write_text("\n".join([*lines, ""]), encoding="utf-8")
        if not (self._data_dir / "logs" / "meta.properties").exists():
            self._format(java, classpath, properties)
        logging_options = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        logging_options += ["-Dorg.slf4j.simpleLogger.showDateTime=true"]
        logging_options += ["-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS"]
        command = [java, f"-Xmx{self._heap_mb}m", *LATE_C2.split(), *logging_options, "-cp", classpath]
        self._spawn([*command, "kafka.Kafka", str(properties)])

    def _format(self, java: str, classpath: str, properties: Path) -> None:
        command = [java, "-XX:TieredStopAtLevel=1", "-cp", classpath, "kafka.tools.StorageTool", "format"]
        command += ["--ignore-formatted", "--cluster-id", self._cluster_id(), "--config", str(properties)]
        try:
            with self.log_file.open("ab") as output:
                subprocess.run(command, stdout=output, stderr=output, timeout=FORMAT_TIMEOUT_S, check=True)
        except subprocess.SubprocessError as error:
            raise BrokerError(
                f"The broker's storage in {self._data_dir} could not be formatted; {self._last_words()}."
                " Correct that, or give another --data folder."
            ) from error

    def _cluster_id(self) -> str:
        """A new one: each broker is a cluster of its own."""
        return base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")

    def _asker(self) -> Callable[[], bool]:
        client = AdminClient(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "reconnect.backoff.max.ms": 200,
                # A connection made just before the broker takes any must not be waited for its usual 30 s.
                "socket.connection.setup.timeout.ms": 2_000,
                "api.version.request.timeout.ms": 2_000,
                "socket.timeout.ms": 2_000,
                "log_level": 0,
            },
            logger=_QUIET,
        )

        def answers() -> bool:
            try:
                return bool(client.list_topics(timeout=METADATA_TIMEOUT_S).brokers)
            except KafkaException:  # refused or timed out: it is still starting
                return False

        return answers


def _server_properties(port: int, controller_port: int, data_dir: Path) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data_dir / "logs").replace("\\", "/"),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # Long enough that workers which join within milliseconds share the empty group's first generation.
        "group.initial.rebalance.delay.ms": "250",
        "group.min.session.timeout.ms": "1000",
        # After a kill the controller, the same process, waits this long before it takes the broker back.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
