"""`make test`: the tests side by side in a few processes, and what it says while they run.

Used as `python -m pytest -p tests.suite.plugin -n 3 …`; without `-n` it does nothing. The first failure ends
it at once. Processes that are left behind are ended, named, and an error.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.workermanage import WorkerController

from tests.suite import took
from tests.suite.errands import Errand
from tests.suite.leftovers import MARK, sweep
from tests.suite.plan import Lane, Test, lane_of
from tests.suite.progress import Progress
from tests.suite.scheduler import Scheduler

LANES = "lockstep_lanes"
"""Where a process writes each test's lane, and its group, for the one that gives the tests out."""
LINE_EVERY_S = 20.0
REWRITE_EVERY_S = 1.0
PATIENCE_S = float(os.environ.get("LOCKSTEP_TESTS_PATIENCE_S", "15"))
ERRAND_MAX_S = 900.0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite", "tests side by side")
    group.addoption("--before-parts", action="append", default=[], help="a command that real parts need")
    group.addoption("--beside", action="append", default=[], help="a command that has to succeed, too")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Member(config), "lockstep-member")
    elif config.getoption("numprocesses"):
        config.pluginmanager.register(Conductor(config), "lockstep-conductor")


class Member:
    """In each process that plays tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._lanes = Path(config.workerinput[LANES])  # type: ignore[attr-defined]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        lanes = [(_lane(item), _together(item)) for item in session.items]
        mine = self._lanes.with_suffix(f".{os.getpid()}")
        mine.write_text(json.dumps(lanes), encoding="utf-8")
        mine.replace(self._lanes)


def _lane(item: pytest.Item) -> Lane:
    file, fixtures = item.nodeid.partition("::")[0], getattr(item, "fixturenames", ())
    return lane_of(file, fixtures, {marker.name for marker in item.iter_markers()})


def _together(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker is not None else ""


class Conductor:
    """In the process that gives the tests out and reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._run = uuid.uuid4().hex
        self._processes = len(config.getoption("tx"))
        self._lanes = Path(tempfile.mkdtemp(prefix="lockstep-suite-")) / "lanes.json"
        self._scheduler: Scheduler | None = None
        self._progress: Progress | None = None
        self._numbers: dict[str, int] = {}
        self._seconds: dict[int, float] = {}
        self._errands: list[Errand] = []
        self._preparing: Errand | None = None
        self._failures = 0
        self._began = time.monotonic()
        self._over = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)
        os.environ[MARK] = self._run

    # --- setting up -----------------------------------------------------------------------------------

    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput[LANES] = str(self._lanes)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing is left behind
        for option in ("before_parts", "beside"):
            for command in self._config.getoption(option):
                self._errands.append(Errand(command))
                if option == "before_parts":
                    self._preparing = self._errands[-1]

    def pytest_xdist_make_scheduler(self) -> Scheduler:
        self._scheduler = Scheduler(self._processes, self._describe, self._parts_ready)
        return self._scheduler

    def _describe(self, nodeids: Sequence[str]) -> list[Test]:
        known = took.read()
        tests = [
            took.described(nodeid.partition("::")[0], Lane(lane), together, known)
            for nodeid, (lane, together) in zip(nodeids, json.loads(self._lanes.read_text()), strict=True)
        ]
        self._numbers = {nodeid: number for number, nodeid in enumerate(nodeids)}
        self._progress = Progress(tests)
        self._say(f"{self._progress.parts()}; {self._processes} processes")
        self._teller.start()
        return tests

    def _parts_ready(self, wait: bool) -> bool:
        if self._preparing is not None and wait:
            self._preparing.wait(ERRAND_MAX_S)
        self._look_after_errands()
        return self._preparing is None or self._preparing.done

    # --- while they run -------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        try:
            result = yield
            for errand in self._errands:
                errand.wait(ERRAND_MAX_S)
            self._look_after_errands()
            if self._progress is not None:
                self._say(self._progress.line(time.monotonic() - self._began, ()))
            return result
        finally:
            self._over.set()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, tuple[str, str, Any], tuple[str, str, Any]]:
        """No letter for each test: the line of progress counts them, and failures are named at once."""
        category, _letter, word = yield
        return category, "", "" if category == "passed" else word

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        number = self._numbers.get(report.nodeid)
        if number is not None:
            self._seconds[number] = self._seconds.get(number, 0.0) + report.duration
        if report.failed:
            self._say(f"FAILED {report.nodeid} ({report.when})")
            self._failures += 1
            if self._failures == self._config.getoption("maxfail"):
                self._stop(f"stopping after {self._failures} failures")

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self._progress is not None and nodeid in self._numbers:
            self._progress.done(self._numbers[nodeid])

    def _look_after_errands(self) -> None:
        for errand in self._errands:
            if failure := errand.failure():
                self._errands.remove(errand)
                self._error(errand.command, failure)
                self._stop(f"{errand.command} failed")

    def _stop(self, why: str) -> None:
        """Now, whatever the processes are playing: they are told to end, and ended where they do not."""
        self._session.shouldfail = why
        raise pytest.Session.Failed(why)

    # --- at the end -----------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """After xdist has ended its processes."""
        self._over.set()
        for errand in self._errands:
            errand.close()
        left = sweep(self._run, patience_s=PATIENCE_S if exitstatus == 0 else 0.0)
        shutil.rmtree(self._lanes.parent, ignore_errors=True)
        if exitstatus == 0 and left:
            lines = (f"{process.pid}: {process.command[:500]}" for process in left)
            self._error("the end", "processes were left behind:\n" + "\n".join(lines))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif exitstatus == 0 and self._scheduler is not None and self._scheduler.plan is not None:
            took.write(self._scheduler.plan.tests, self._seconds)

    def _error(self, where: str, text: str) -> None:
        """Shown and counted with the errors of tests."""
        report = pytest.TestReport(
            nodeid=where,
            location=(where, None, where),
            keywords={},
            outcome="failed",
            longrepr=text,
            when="setup",
        )
        self._reporter.stats.setdefault("error", []).append(report)

    # --- what it says ---------------------------------------------------------------------------------

    @property
    def _reporter(self) -> pytest.TerminalReporter:
        reporter: pytest.TerminalReporter = self._config.pluginmanager.getplugin("terminalreporter")
        return reporter

    def _tell(self) -> None:
        terminal = self._reporter.isatty
        while not self._over.wait(REWRITE_EVERY_S if terminal else LINE_EVERY_S):
            assert self._progress is not None and self._scheduler is not None
            line = self._progress.line(time.monotonic() - self._began, self._scheduler.playing())
            if terminal:
                width = shutil.get_terminal_size().columns
                self._reporter._tw.write(f"\r\x1b[2K{line[: width - 1]}", flush=True)
            else:
                self._say(line)

    def _say(self, line: str) -> None:
        if self._reporter.isatty:
            self._reporter._tw.write("\r\x1b[2K")
        self._reporter.write_line(line)
        self._reporter.flush()
