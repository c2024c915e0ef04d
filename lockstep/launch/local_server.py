"""A server as a process of one's own, on loopback: for the demo, for tests, for trying out.

It has a folder for its data, which no other server may use meanwhile, and a log in it. It is started and
stopped, killed, frozen and thawed; it never outlives the process that started it.
"""

from __future__ import annotations

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
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, ClassVar, Self, TypeVar

from lockstep.errors import Failed

REAPER = Path(__file__).with_name("reaper.py")
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 20.0
STILL_POLL_S = 0.001
ANSWER_POLL_S = 0.1
FOREGROUND_POLL_S = 0.1
LOG_TAIL_BYTES = 256 * 1024
HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)
PORT_ATTEMPTS_MAX = 100
NOTHING_ELSE: Mapping[str, str] = {}

log = logging.getLogger(__name__)

Server = TypeVar("Server", bound="LocalServer")


class LocalServer:
    """One server process. The port, once chosen, and the data folder stay the same over restarts."""

    kind: ClassVar[str] = "server"
    """What people call it."""
    failure: ClassVar[type[Failed]] = Failed
    """What is raised where it does not start, or ended by itself."""

    def __init__(self, data_dir: Path, *, port: int = 0) -> None:
        self._data_dir = data_dir.resolve()
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._folder_lock: IO[bytes] | None = None
        self._log_start = 0  # where this run's lines begin in the log
        self.port = port

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The server's own process id; 0 while it does not run."""
        return self._pid if self.running else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def folder(self) -> Path:
        """Its data folder."""
        return self._data_dir

    @property
    def log_file(self) -> Path:
        return self._data_dir / f"{self.kind}.log"

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start, on the same data as before where there is any, and wait until it answers."""
        if self.running:
            raise self.failure(f"The {self.kind} on {self.address} runs already.")
        self._prepare()
        self._claim_folder()
        try:
            self.port = self.port or free_port(self.failure)
            self._refuse_taken()
            self._launch()
            self._await_answer(timeout_s)
        except BaseException:
            self.kill()
            raise

    def _prepare(self) -> None:
        """Find what it is started with. Raises what is missing."""

    def _launch(self) -> None:
        """Spawn it on `port`."""
        raise NotImplementedError

    def _asker(self) -> Callable[[], bool]:
        """What says whether it answers, and is asked until it does."""
        raise NotImplementedError

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End it in order; by force where that takes longer than `timeout_s`."""
        if self.running:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            if not self.wait(timeout_s):
                log.warning(
                    "The %s on %s did not end within %.0f s and is killed.",
                    *(self.kind, self.address, timeout_s),
                )
        self.kill()

    def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        if self.running:
            self._signal(signal.SIGKILL)
            if not self.wait(STOP_TIMEOUT_S):
                raise self.failure(
                    f"The {self.kind}'s process {self._pid} cannot be killed: see what holds it."
                )
        self._release_folder()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay, and nothing answers once this returns."""
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while not _stands_still(self._pid):  # its threads stop one by one
            if time.monotonic() > deadline:
                raise self.failure(
                    f"The {self.kind}'s process {self._pid} cannot be stopped: see what holds it."
                )
            time.sleep(STILL_POLL_S)

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

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- for those that launch it ---------------------------------------------------------------------

    def _spawn(self, command: list[str], environment: Mapping[str, str] = NOTHING_ELSE) -> None:
        """`environment`: what it has beside ours."""
        with self.log_file.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-I", str(REAPER), str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **environment},
                start_new_session=True,  # a Ctrl-C in the terminal is this process's to handle
            )
        self._process = process
        assert process.stdout is not None
        with process.stdout as line:
            self._pid = int(line.readline() or 0)
        if self._pid == 0:
            process.wait(STOP_TIMEOUT_S)
            raise self.failure(f"The {self.kind}'s process could not be started; {self._last_words()}.")

    def _await_answer(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        answers = self._asker()
        while True:
            self._refuse_ended()
            if answers():
                return
            if time.monotonic() > deadline:
                raise self._unanswered(timeout_s)
            time.sleep(ANSWER_POLL_S)

    def _refuse_ended(self) -> None:
        """While it is waited for."""
        if not self.running:
            raise self.failure(
                f"The {self.kind} on {self.address} ended before it answered; {self._last_words()}."
                f" Its whole log is {self.log_file}."
            )

    def _unanswered(self, timeout_s: float) -> Failed:
        return self.failure(
            f"The {self.kind} on {self.address} did not answer within {timeout_s:.0f} s;"
            f" {self._last_words()}. Its whole log is {self.log_file}."
        )

    def _signal(self, number: signal.Signals) -> None:
        if not self.running:
            raise self.failure(f"The {self.kind} on {self.address} does not run.")
        os.kill(self._pid, number)

    def _claim_folder(self) -> None:
        if self._folder_lock is not None:  # this server's still, since it ended by itself
            return
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            lock = (self._data_dir / f"{self.kind}.lock").open("wb")
        except OSError as error:
            raise self.failure(
                f"The folder {self._data_dir} cannot be written ({error.strerror}): give another as --data."
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise self.failure(
                f"The folder {self._data_dir} is in use by another {self.kind}: end that one,"
                " or give another --data folder."
            ) from error
        self._folder_lock = lock
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0

    def _release_folder(self) -> None:
        if self._folder_lock is not None:
            self._folder_lock.close()
            self._folder_lock = None

    def _refuse_taken(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, self.port))
            except OSError as error:
                raise self.failure(
                    f"Port {self.port} on {HOST} cannot be had ({error.strerror}): end what uses it,"
                    " or give another --port."
                ) from error

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


def _stands_still(pid: int) -> bool:
    """Whether none of its threads runs, after proc(5)."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            stat = (task / "stat").read_text(encoding="utf-8", errors="replace")
            if stat[stat.rindex(")") + 2] not in "TtZX":
                return False
    return True


def free_port(failure: type[Failed] = Failed) -> int:
    """A port that nobody listens on, outside the range that the kernel gives to outgoing connections.

    Inside it, a client that retries while the server is down can be given the very port as its own, and
    is then connected to itself. Nobody else who asks here gets it as long as this process lives: a server
    takes seconds until it listens.
    """
    for candidate in random.sample(PORTS, PORT_ATTEMPTS_MAX):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, candidate))
            _spoken_for.append(_claim(candidate))
            return candidate
    raise failure(f"{PORT_ATTEMPTS_MAX} ports on {HOST} were all taken: give one as --port.")


_spoken_for: list[socket.socket] = []
"""What says so of ports that were given to somebody in this process."""


def _claim(port: int) -> socket.socket:
    """Raises `OSError` where another process has. A name of the kernel's own, which goes with the process."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0lockstep-port-{port}")
    except OSError:
        claim.close()
        raise
    return claim


def run_in_foreground(server: Server, on_ready: Callable[[Server], None]) -> None:
    """Run it until SIGINT or SIGTERM; a second one ends it at once. Only from the main thread.

    `on_ready` is called once it answers. Raises the server's own failure where it ends by itself.
    """
    asked = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set() and (pid := server.pid):
            os.kill(pid, signal.SIGKILL)  # the main thread is waiting for its end already
        asked.set()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.start()
        on_ready(server)
        while not asked.wait(FOREGROUND_POLL_S):
            if not server.running:
                raise server.failure(
                    f"The {server.kind} on {server.address} ended by itself; its log is {server.log_file}."
                )
    finally:
        server.stop()
        for number, handler in previous.items():
            signal.signal(number, handler)
