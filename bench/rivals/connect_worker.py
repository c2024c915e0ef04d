"""A Kafka Connect worker in standalone mode: one JVM on loopback, spoken to by REST."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.rivals.maven_jars import resolve_connect
from bench.waiting import await_that, end, tail
from lockstep.errors import Failed
from lockstep.launch.jars import find_java
from lockstep.launch.local_server import HOST, PORT_ATTEMPTS_MAX, PORTS

START_S = 120.0
REST_S = 30.0
DELETE_S = 60.0
FLUSH_MS = 1_000
"""Of offset.flush.interval.ms, which is also how long an idle sink task blocks: with the default of a minute
it would answer the sink's coordinator once a minute."""


class ConnectWorker:
    """The worker's process. `objects`: with what the sink needs for tables on S3. Methods raise `Failed`."""

    def __init__(self, folder: Path, bootstrap_servers: str, *, heap: str, objects: bool = False) -> None:
        self._folder = folder
        self._bootstrap_servers = bootstrap_servers
        self._heap = heap
        self._objects = objects
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""
        # A proxy that the environment names is for other hosts.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> Path:
        return self._folder / "connect.log"

    def start(self) -> None:
        """Start and wait until it answers."""
        jars = resolve_connect(objects=self._objects)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._url = f"http://{HOST}:{_free_port()}"
        properties = self._folder / "worker.properties"
        properties.write_text(
            "".join(f"{name}={value}\n" for name, value in self._properties(jars.plugins).items()),
            encoding="utf-8",
        )
        command = [str(find_java()), f"-Xms{self._heap}", f"-Xmx{self._heap}", "-XX:+UseG1GC"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command += ["-cp", f"{jars.connect}/*", "org.apache.kafka.connect.cli.ConnectStandalone"]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, str(properties)],
                cwd=self._folder,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env=dict(os.environ),
            )
        await_that(
            "answer of Kafka Connect",
            lambda: self._answers(),
            timeout_s=START_S,
            process=self._process,
            log=self.log,
        )

    def close(self) -> None:
        if self._process is not None:
            end(self._process)
            self._process = None

    def __enter__(self) -> ConnectWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def post(self, name: str, config: Mapping[str, str]) -> None:
        """Start a connector."""
        self._call("POST", "/connectors", {"name": name, "config": dict(config)})

    def delete(self, name: str) -> None:
        """End a connector, and wait until it is gone."""
        self._call("DELETE", f"/connectors/{name}")
        await_that(
            f"end of the connector {name}",
            lambda: name not in self._call("GET", "/connectors"),
            timeout_s=DELETE_S,
            process=self._process,
            log=self.log,
        )

    def check(self, name: str) -> None:
        """Raises `Failed` where the worker, the connector or one of its tasks has failed."""
        if not self.running:
            raise Failed(f"Kafka Connect ended by itself.{tail(self.log)}")
        status = self._call("GET", f"/connectors/{name}/status")
        for part in (status["connector"], *status["tasks"]):
            if part["state"] == "FAILED":
                said = [line for line in part.get("trace", "").splitlines() if not line.startswith("\tat ")]
                raise Failed(f"The connector {name} failed: {' '.join(said) or 'it does not say why'}")

    def _answers(self) -> bool:
        with suppress(Failed):
            return isinstance(self._call("GET", "/connectors"), list)
        return False

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=REST_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")[:2_000]
            raise Failed(f"Kafka Connect refused {method} {path}: {error.code} {said}") from error
        except OSError as error:
            raise Failed(f"Kafka Connect at {self._url} does not answer: {error}.{tail(self.log)}") from error
        return json.loads(text) if text else None

    def _properties(self, plugins: Path) -> dict[str, str]:
        return {
            "bootstrap.servers": self._bootstrap_servers,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": str(self._folder / "standalone.offsets"),
            "offset.flush.interval.ms": str(FLUSH_MS),
            "plugin.path": str(plugins),
            "plugin.discovery": "service_load",
            "listeners": self._url,
            "connector.client.config.override.policy": "All",
        }


def _free_port() -> int:
    for candidate in random.sample(PORTS, PORT_ATTEMPTS_MAX):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, candidate))
            return candidate
    raise Failed(f"{PORT_ATTEMPTS_MAX} ports on {HOST} were all taken: end what uses them.")
