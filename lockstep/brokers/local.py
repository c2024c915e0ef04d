"""A real single-node Kafka broker (KRaft) as a process of one's own: for the demo, for tests, for trying out.

Loopback only, no security, no replication: never for data that somebody needs.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lockstep.errors import Failed
from lockstep.launch.jars import find_java, resolve_kafka
from lockstep.launch.jvm import LATE_C2

REAPER = Path(__file__).parents[1] / "launch" / "reaper.py"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
FORMAT_TIMEOUT_S = 60.0
POLL_S = 0.1
METADATA_TIMEOUT_S = 1.0
LOG_TAIL_BYTES = 256 * 1024
HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)
PORT_ATTEMPTS_MAX = 100

log = logging.getLogger(__name__)
_QUIET = logging.getLogger("lockstep.broker.starting")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False  # librdkafka complains about every refused connection until the broker is up


class BrokerError(Failed):
    """The broker did not start, or ended by itself: the sentence says what to do."""


class Broker:
    """One broker process. The port, once chosen, and the data folder stay the same over restarts.

    `data_dir` holds the log folders, `server.properties` and `broker.log`. `properties`: Kafka's own, which
    count before ours. The process never outlives this one. Methods raise `BrokerError`, and
    `lockstep.launch.jars.JarsError` where Java or the jars are missing.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        cache_dir: Path | None = None,
        heap_mb: int = 1024,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._data_dir = data_dir.resolve()
        self._properties = properties or {}
        self._cache_dir = cache_dir
        self._heap_mb = heap_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._folder_lock: IO[bytes] | None = None
        self._log_start = 0  # where this run's lines begin in the log
        self.port = port

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's own process id; 0 while it does not run."""
        return self._pid if self.running else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def folder(self) -> Path:
        """Its data folder, with the source partitions' logs in `logs`."""
        return self._data_dir

    @property
    def log_file(self) -> Path:
        return self._data_dir / "broker.log"

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start, on the same data as before where there is any, and wait until it answers."""
        if self.running:
            raise BrokerError(f"The broker on {self.bootstrap_servers} runs already.")
        java = str(find_java())
        classpath = os.pathsep.join(map(str, resolve_kafka(self._cache_dir)))
        self._claim_folder()
        try:
            self._start(java, classpath, timeout_s)
        except BaseException:
            self.kill()
            raise

    def _start(self, java: str, classpath: str, timeout_s: float) -> None:
        self.port = self.port or _free_port()
        _refuse_taken(self.port)
        properties = self._data_dir / "server.properties"
        ours = _server_properties(self.port, _free_port(), self._data_dir)
        lines = (f"{name}={value}" for name, value in {**ours, **self._properties}.items())
        properties.write_text("\n".join([*lines, ""]), encoding="utf-8")
        if not (self._data_dir / "logs" / "meta.properties").exists():
            self._format(java, classpath, properties)
        logging_options = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        logging_options += ["-Dorg.slf4j.simpleLogger.showDateTime=true"]
        logging_options += ["-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS"]
        command = [java, f"-Xmx{self._heap_mb}m", *LATE_C2.split(), *logging_options, "-cp", classpath]
        self._spawn([*command, "kafka.Kafka", str(properties)])
        self._await_answer(timeout_s)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End it in order; by force where that takes longer than `timeout_s`."""
        if self.running:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            if not self.wait(timeout_s):
                log.warning(
                    "The broker on %s did not end within %.0f s and is killed.",
                    self.bootstrap_servers,
                    timeout_s,
                )
        self.kill()

    def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        if self.running:
            self._signal(signal.SIGKILL)
            if not self.wait(STOP_TIMEOUT_S):
                raise BrokerError(f"The broker's process {self._pid} cannot be killed: see what holds it.")
        self._release_folder()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended within `timeout_s`."""
        if self._process is not None:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return False
        return True

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

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

    def _spawn(self, command: list[str]) -> None:
        reaper = [
            sys.executable,
            "-I",
            str(Path(__file__).parents[1] / "launch" / "reaper.py"),
            str(os.getpid()),
        ]
        with self.log_file.open("ab") as output:
            process = subprocess.Popen(
                reaper + command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,  # a Ctrl-C in the terminal is this process's to handle
            )
        self._process = process
        assert process.stdout is not None
        with process.stdout as line:
            self._pid = int(line.readline() or 0)
        if self._pid == 0:
            process.wait(STOP_TIMEOUT_S)
            raise BrokerError(f"The broker's process could not be started; {self._last_words()}.")

    def _await_answer(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
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
        while True:
            if not self.running:
                raise BrokerError(
                    f"The broker on {self.bootstrap_servers} ended before it answered; {self._last_words()}."
                    f" Its whole log is {self.log_file}."
                )
            with contextlib.suppress(KafkaException):  # refused or timed out: it is still starting
                if client.list_topics(timeout=METADATA_TIMEOUT_S).brokers:
                    return
            if time.monotonic() > deadline:
                raise BrokerError(
                    f"The broker on {self.bootstrap_servers} did not answer within {timeout_s:.0f} s;"
                    f" {self._last_words()}. Its whole log is {self.log_file}."
                )
            time.sleep(POLL_S)

    def _signal(self, number: signal.Signals) -> None:
        if not self.running:
            raise BrokerError(f"The broker on {self.bootstrap_servers} does not run.")
        os.kill(self._pid, number)

    def _claim_folder(self) -> None:
        if self._folder_lock is not None:  # this broker's still, since it ended by itself
            return
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            lock = (self._data_dir / "broker.lock").open("wb")
        except OSError as error:
            raise BrokerError(
                f"The folder {self._data_dir} cannot be written ({error.strerror}): give another as --data."
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise BrokerError(
                f"The folder {self._data_dir} is in use by another broker: end that one,"
                " or give another --data folder."
            ) from error
        self._folder_lock = lock
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0

    def _release_folder(self) -> None:
        if self._folder_lock is not None:
            self._folder_lock.close()
            self._folder_lock = None

    def _last_words(self) -> str:
        """The last error in this run's log, else its last line."""
        try:
            with self.log_file.open("rb") as said:
                said.seek(max(self._log_start, self.log_file.stat().st_size - LOG_TAIL_BYTES))
                lines = said.read().decode("utf-8", "replace").splitlines()
        except OSError:
            lines = []
        telling = [s for s in (line.strip() for line in lines) if s and not s.startswith("at ")]
        errors = [s for s in telling if " ERROR " in s or "Exception" in s]
        last = (errors or telling or [""])[-1]
        return f"it last said: {last[:300]}" if last else "it said nothing"


def run_in_foreground(
    port: int, data_dir: Path, on_ready: Callable[[Broker], None], *, cache_dir: Path | None = None
) -> None:
    """Run a broker until SIGINT or SIGTERM; a second one ends it at once. Only from the main thread.

    `on_ready` is called once it answers. Raises `BrokerError` where it ends by itself.
    """
    asked = threading.Event()
    broker = Broker(data_dir, port=port, cache_dir=cache_dir)

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set() and (pid := broker.pid):
            os.kill(pid, signal.SIGKILL)  # the main thread is waiting for its end already
        asked.set()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        broker.start()
        on_ready(broker)
        while not asked.wait(POLL_S):
            if not broker.running:
                raise BrokerError(
                    f"The broker on {broker.bootstrap_servers} ended by itself; its log is {broker.log_file}."
                )
    finally:
        broker.stop()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _free_port() -> int:
    """A port that nobody listens on, outside the range that the kernel gives to outgoing connections.

    Inside it, a client that retries while the broker is down can be given the very port as its own, and
    is then connected to itself.
    """
    for candidate in random.sample(PORTS, PORT_ATTEMPTS_MAX):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, candidate))
            return candidate
    raise BrokerError(f"{PORT_ATTEMPTS_MAX} ports on {HOST} were all taken: give one as --port.")


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise BrokerError(
                f"Port {port} on {HOST} cannot be had ({error.strerror}): end what uses it,"
                " or give another --port."
            ) from error


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
