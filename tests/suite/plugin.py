"""`make test`: the tests in a few processes, their progress, and a summary.

Used as `python -m pytest -p tests.suite.plugin -n 3 --tier test …`. Without `-n` it only selects tests. It
ends and names processes that a test left running, and counts them as an error.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.workermanage import WorkerController

from tests.suite import selection, timing, took
from tests.suite.busy import BusyLoops
from tests.suite.errands import Errand
from tests.suite.leftovers import MARK, Process, sweep
from tests.suite.member import CPU_S, LANES, Member, cpu_s
from tests.suite.plan import Lane, Test
from tests.suite.progress import Progress, readable
from tests.suite.scheduler import Scheduler
from tests.suite.stderr_log import StderrLog
from tests.suite.tiers import file_of, without_parameters

STDERR = Path("build", "test-stderr.log")
"""Receives what the processes and their children write outside of tests: librdkafka, Java, Python itself."""
STDERR_SHOWN = 60
NOT_RUN_SHOWN = 200
"""Number of tests that are named one by one; of more, their files are named."""
LINE_EVERY_S = 20.0
REWRITE_EVERY_S = 1.0
PATIENCE_S = float(os.environ.get("LOCKSTEP_TESTS_PATIENCE_S", "15"))
ERRAND_MAX_S = 900.0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite", "tests side by side")
    group.addoption("--before-parts", action="append", default=[], help="a command that real parts need")
    group.addoption("--beside", action="append", default=[], help="a command that has to succeed, too")
    group.addoption("--stop-after", type=float, metavar="S", help="start no test after S seconds")
    group.addoption("--busy", type=int, default=0, metavar="N", help="run N busy loops at the same time")
    group.addoption("--profile", action="store_true", help="print times by process, file and test")
    group.addoption("--record-as", metavar="NAME", help="with RECORD=1, keep the times as NAME's")
    selection.add_options(group)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Member(config), "lockstep-member")
    elif config.getoption("numprocesses"):
        config.pluginmanager.register(Conductor(config), "lockstep-conductor")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    selection.select(config, items)


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
        self._timing = timing.Timing()
        self._busy = BusyLoops(0)
        self._stderr = StderrLog(config.rootpath / STDERR)
        self._ended = False
        self._errands: list[Errand] = []
        self._preparing: Errand | None = None
        self._failed: list[str] = []
        self._skipped: set[str] = set()
        self._passed: set[str] = set()
        self._crashed = False
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
        if self._config.getoption("tier"):
            selection.recorded_bugs()  # xdist does not show the usage error of a process
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing is left behind
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, signal.default_int_handler)
        self._busy = BusyLoops(self._config.getoption("busy"))
        for option in ("before_parts", "beside"):
            for command in self._config.getoption(option):
                try:
                    self._errands.append(Errand(command))
                except (OSError, ValueError) as error:
                    raise pytest.UsageError(f"{command} cannot be started: {error}") from error
                if option == "before_parts":
                    self._preparing = self._errands[-1]
        self._stderr.divert()

    def pytest_xdist_make_scheduler(self) -> Scheduler:
        self._stderr.restore()
        self._scheduler = Scheduler(
            *(self._processes, self._describe, self._parts_ready, self._time_is_up),
            shuffled_by=self._config.getoption("slice") or "",
        )
        return self._scheduler

    def _time_is_up(self) -> bool:
        limit_s: float | None = self._config.getoption("stop_after")
        return limit_s is not None and time.monotonic() - self._began > limit_s

    def _describe(self, nodeids: Sequence[str]) -> list[Test]:
        known = took.read()
        tests = [
            took.described(file_of(nodeid), Lane(lane), together, known)
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
        if report.nodeid in self._numbers:
            process = report.node.gateway.id if hasattr(report, "node") else ""
            self._timing.add(process, report.nodeid, report.duration, last=report.when == "teardown")
        if report.skipped:
            self._skipped.add(without_parameters(report.nodeid))
        elif report.passed and report.when == "call":
            self._passed.add(without_parameters(report.nodeid))
        if report.failed:
            self._say(f"FAILED {report.nodeid} ({report.when})")
            self._failed.append(report.nodeid)
            self._crashed |= "crashed while running" in str(report.longrepr)
            if len(self._failed) == self._config.getoption("maxfail"):
                self._stop(f"stopping after {len(self._failed)} failures")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

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

    def pytest_testnodedown(self, node: WorkerController) -> None:
        self._timing.cpu[node.gateway.id] = getattr(node, "workeroutput", {}).get(CPU_S, 0.0)

    # --- at the end -----------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """After xdist has ended its processes."""
        self._over.set()
        loops_s, left = self._end_processes(PATIENCE_S if exitstatus == 0 else 0.0)
        if exitstatus == 0 and left:
            lines = (f"{process.pid}: {process.command[:500]}" for process in left)
            self._error("the end", "processes were left behind:\n" + "\n".join(lines))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif (
            exitstatus == 0
            and self._scheduler is not None
            and self._scheduler.not_run
            and not self._timing.count
        ):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        self._used_s = cpu_s() - loops_s
        self._wall_s = time.monotonic() - self._began
        if session.exitstatus == 0:
            self._record()

    def _record(self) -> None:
        """Keep the times of a run that passed. Busy loops and a selection would give other ones."""
        if self._scheduler is None or self._scheduler.plan is None or self._config.getoption("busy"):
            return
        seconds = {self._numbers[nodeid]: one for nodeid, one in self._timing.by_test.items()}
        took.write(self._scheduler.plan.tests, seconds)
        name = self._config.getoption("record_as")
        if name and not self._scheduler.not_run and not selection.narrowed(self._config):
            timing.write(name, self._timing.figures(self._wall_s, self._used_s))

    def pytest_unconfigure(self) -> None:
        """End what `pytest_sessionstart` started, if it was interrupted: then no session finishes."""
        self._stderr.restore()
        if not self._ended:
            self._end_processes(0.0)

    def _end_processes(self, patience_s: float) -> tuple[float, list[Process]]:
        """Return the CPU time of the busy loops in seconds, and the processes that tests left behind."""
        loops_s = self._busy.close()
        for errand in self._errands:
            errand.close()
        left = sweep(self._run, patience_s=patience_s)
        shutil.rmtree(self._lanes.parent, ignore_errors=True)
        self._ended = True
        return loops_s, left

    def pytest_terminal_summary(self) -> None:
        """Times, tests that did not run, and how to run again what failed."""
        write = self._reporter.write_line
        if self._config.getoption("profile"):
            self._reporter.section("times")
            for line in self._timing.lines(self._wall_s):
                write(line)
        write(f"{readable(self._wall_s)}, {self._used_s / 60:.1f} CPU minutes")
        if self._scheduler is not None and self._scheduler.not_run:
            names = [self._scheduler.collection[number] for number in self._scheduler.not_run]
            self._reporter.section(f"time was up: {len(names):,} tests did not run")
            if len(names) > NOT_RUN_SHOWN:
                counts = Counter(map(file_of, names))
                names = [f"{file}: {count:,}" for file, count in counts.items()]
            for name in names:
                write(name)
        if bugs := selection.bugs_of(self._skipped - self._passed):
            self._reporter.section(f"tests of {len(bugs)} seeded bugs were skipped")
            for bug in bugs:
                write(bug)
        if self._failed:
            self._reporter.section("to run again what failed")
            pytest_ = shlex.join([os.path.relpath(sys.executable), "-m", "pytest"])
            for nodeid in dict.fromkeys(self._failed):
                write(f"{pytest_} {shlex.quote(nodeid)}")
        if self._crashed:
            self._reporter.section(f"the end of {STDERR}")
            for line in self._stderr.lines()[-STDERR_SHOWN:]:
                write(line)

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
