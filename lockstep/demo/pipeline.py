"""The demo's pipeline: its configuration, its topic, and the process of `lockstep run`."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import lockstep
from lockstep.errors import EXIT_MEANINGS, Failed

log = logging.getLogger("lockstep.demo")

PIPELINE = "demo"
CONTROL_TOPIC = f"lockstep-control-{PIPELINE}"
PARTITIONS = 4
WORKERS = 2
CREATE_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 60.0
KILL_TIMEOUT_S = 15.0
WORDS_SHOWN = 12

REAPER = Path(lockstep.__file__).parent / "launch" / "reaper.py"


def write_config(folder: Path, bootstrap_servers: str, interval: str, *, topic: str, sections: str) -> Path:
    """pipeline.toml in `folder`. `sections`: [record], [table] and more, as TOML."""
    path = folder / "pipeline.toml"
    path.write_text(
        f"""\
[pipeline]
id = "{PIPELINE}"
workers = {WORKERS}

[source]
bootstrap_servers = "{bootstrap_servers}"
topics = ["{topic}"]

{sections}
[transaction]
interval = "{interval}"

[control]
topic = "{CONTROL_TOPIC}"
""",
        encoding="utf-8",
    )
    return path


def create_topic(bootstrap_servers: str, topic: str) -> None:
    """The source topic. Raises `Failed`."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers}, logger=log)
    wanted = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)
    try:
        admin.create_topics([wanted])[topic].result(CREATE_TIMEOUT_S)
    except KafkaException as error:
        raise Failed(f"topic {topic} could not be made on {bootstrap_servers}: {error}") from error


class Job:
    """`lockstep run` in a session of its own; it ends when this process does, however that ends.

    `log`: what it says.
    """

    def __init__(self, config_path: Path, log: Path) -> None:
        self._config_path = config_path
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def start(self) -> None:
        command = [sys.executable, "-m", "lockstep.cli", "run", "-c", str(self._config_path)]
        reaper = [sys.executable, "-I", str(REAPER), str(os.getpid())]
        with self.log.open("wb") as said:
            self._process = subprocess.Popen(
                reaper + command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,  # a Ctrl-C in the terminal is this process's to handle
            )
        assert self._process.stdout is not None
        with self._process.stdout as line:
            self._pid = _first_number(line)

    def check(self) -> None:
        """Raises `Failed` where it has ended by itself."""
        if self._process is None or (status := self._process.poll()) is None:
            return
        meaning = EXIT_MEANINGS.get(status, f"with {status}")
        raise Failed(f"the job ended ({meaning}) before everything was committed; {self.last_words()}")

    def stop(self) -> int:
        """Ask it to commit and leave (SIGTERM); its exit code. Raises `Failed` where it does not leave."""
        assert self._process is not None
        os.kill(self._pid, signal.SIGTERM)
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise Failed(
                f"the job did not leave within {STOP_TIMEOUT_S:.0f} s; {self.last_words()}"
            ) from error

    def close(self) -> None:
        """Whatever it takes: the second SIGTERM asks to leave at once, the third is passed on as SIGKILL."""
        if self._process is None or self._process.poll() is not None:
            return
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            os.kill(self._pid, number)
            try:
                self._process.wait(KILL_TIMEOUT_S)
                return
            except subprocess.TimeoutExpired:
                continue

    def last_words(self) -> str:
        lines = (
            self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        )
        telling = [line for line in lines if line.strip()][-WORDS_SHOWN:]
        said = "".join(f"\n    {line[:300]}" for line in telling)
        return f"its log is {self.log} and ends with:{said}" if said else "it said nothing"


def _first_number(line: IO[bytes]) -> int:
    text = line.readline().strip()
    if not text.isdigit():
        raise Failed("the job's process could not be started")
    return int(text)
