"""The tests side by side: what `make test` says, how it ends, and that nothing is left behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import await_that
from tests.suite import plugin
from tests.suite.leftovers import MARK, marked
from tests.suite.selection import bugs_of, recorded_bugs
from tests.suite.stderr_log import StderrLog

ROOT = Path(__file__).resolve().parents[3]
LONG_S = 600
DEADLINE_S = 120

PASS = "def test_passes(): pass\n"
FAIL = "def test_fails(): assert False, 'for a reason'\n"
LONG = f"import subprocess\ndef test_long(): subprocess.run(['sleep', '{LONG_S}'])\n"
LEAVE = """
import subprocess
def test_leaves():
    subprocess.Popen(["sleep", "600"], start_new_session=True)
"""
WAIT = """
import os, subprocess
def test_waits():
    one = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open({pids!r} + ".new", "w") as file:
        file.write(str(one.pid))
    os.rename({pids!r} + ".new", {pids!r})
    one.wait()
"""
DIE = "import os\ndef test_dies(): os._exit(3)\n"


def command(folder: Path, *options: str) -> list[str]:
    """Plays the tests in this folder as `make test` does."""
    return [
        *(sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-p", "tests.suite.plugin"),
        *("-n", "2", "--maxfail=1"),
        *("-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder), *options, str(folder)),
    ]


def environment() -> dict[str, str]:
    ours = ("PYTEST", "RECORD", MARK)
    known = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**known, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def play(folder: Path, files: dict[str, str], *options: str) -> tuple[int, str]:
    """The tests in these files; the exit code and what was said."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    done = subprocess.run(
        command(folder, *options),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.returncode, done.stdout


def alive(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())  # empty once it is only waited for
    except OSError:
        return False


def test_all_that_pass_are_counted_in_the_last_line(tmp_path: Path) -> None:
    files = {"a": PASS * 1, "b": PASS, "c": "import pytest\ndef test_x(): pytest.skip('no reason')\n"}
    code, said = play(tmp_path, files, "--beside", "true", "--before-parts", "true")
    assert code == 0, said
    assert re.search(r"2 passed, 1 skipped in [\d.]+s", said.splitlines()[-1])
    assert "3 tests: 3 compute, 0 share a Spark, 0 start real parts; 2 processes" in said


def test_the_first_failure_ends_it_while_others_still_run(tmp_path: Path) -> None:
    began = time.monotonic()
    code, said = play(tmp_path, {"a": LONG, "b": FAIL})
    assert time.monotonic() - began < LONG_S / 2
    assert code == 1
    assert "FAILED test_b.py::test_fails (call)" in said
    assert "for a reason" in said
    assert "1 failed" in said.splitlines()[-1]


def test_a_process_that_dies_is_a_failure_of_what_it_played(tmp_path: Path) -> None:
    code, said = play(tmp_path, {"a": DIE})
    assert code == 1
    assert "crashed while running 'test_a.py::test_dies'" in said


def test_a_process_that_is_left_behind_is_named_ended_and_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_TESTS_PATIENCE_S", "0.5")
    code, said = play(tmp_path, {"a": LEAVE})
    assert code == 1
    left = re.search(r"(\d+): sleep 600", said)
    assert left and not alive(int(left[1]))
    assert "1 passed, 1 error" in said.splitlines()[-1]


def test_a_run_that_is_asked_to_end_leaves_no_process_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    (tmp_path / "test_a.py").write_text(WAIT.format(pids=str(pids)))
    with subprocess.Popen(command(tmp_path), env=environment(), stdout=subprocess.PIPE) as process:
        left = await_that("processes", lambda: pids.read_text().split() if pids.exists() else None)
        process.terminate()
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert not [pid for pid in left if alive(int(pid))]


SLOW = "import time\ndef test_slow(): time.sleep(2)\n"
MANY = "import pytest\n@pytest.mark.parametrize('n', range(5))\ndef test_many(n): pass\n"
NOISE = "import atexit, os\natexit.register(os.write, 2, b'a line of librdkafka\\n')\n"


def test_once_the_time_is_up_no_test_starts_and_those_left_are_named(tmp_path: Path) -> None:
    code, said = play(tmp_path, {"a": MANY, "b": MANY}, "--stop-after", "0")
    assert code == pytest.ExitCode.NO_TESTS_COLLECTED, "a run without a single test is no success"
    assert "time was up: 10 tests did not run" in said
    names = {f"test_{file}.py::test_many[{n}]" for file in "ab" for n in range(5)}
    assert names <= set(said.splitlines())


def test_a_failure_is_followed_by_the_command_that_repeats_it(tmp_path: Path) -> None:
    _, said = play(tmp_path, {"a": FAIL})
    assert any(line.endswith("-m pytest test_a.py::test_fails") for line in said.splitlines()), said


def test_what_processes_write_outside_of_tests_is_kept_in_a_file(tmp_path: Path) -> None:
    code, said = play(tmp_path, {"a": NOISE + PASS})
    assert code == 0 and "librdkafka" not in said, said
    assert "a line of librdkafka" in (tmp_path / "build" / "test-stderr.log").read_text()


def test_the_end_of_that_file_is_shown_where_a_process_died(tmp_path: Path) -> None:
    _, said = play(tmp_path, {"a": "import os\ndef test_dies(): os.abort()\n"}, "-s")
    assert "the end of build/test-stderr.log" in said and "Aborted" in said, said


def test_busy_loops_run_at_the_same_time_and_are_neither_left_behind_nor_counted(tmp_path: Path) -> None:
    code, said = play(tmp_path, {"a": SLOW}, "--busy", "2", "--profile")
    assert code == 0, said
    used = re.search(r"([\d.]+) CPU minutes", said)
    assert used and float(used[1]) < 0.05, "two loops for more than two seconds are 0.07 minutes"
    assert re.search(r"gw\d +1 ", said) and "longest files" in said


@pytest.mark.parametrize("option", ["--beside", "--before-parts"])
def test_what_runs_beside_the_tests_has_to_succeed(tmp_path: Path, option: str) -> None:
    complaint = tmp_path / "complaint"
    complaint.write_text("echo this is wrong; exit 2")
    parts = "import pytest\n@pytest.fixture\ndef broker(): pass\ndef test_x(broker): pass\n"
    code, said = play(tmp_path, {"a": PASS, "b": parts}, option, f"bash {complaint}")
    assert code == 1
    assert "this is wrong" in said
    assert "1 error" in said.splitlines()[-1]


def test_a_process_is_known_by_its_mark_and_not_one_that_has_ended() -> None:
    run = f"test-{os.getpid()}"
    with subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: run}) as process:
        # Popen returns when the exec has closed its pipe, and the kernel shows the new environment later.
        found = await_that("process of this mark", lambda: marked(run))
        assert [(one.pid, one.command) for one in found] == [(process.pid, "sleep 60")]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert marked(run) == []


INTERRUPTED = """
import pytest
@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        raise KeyboardInterrupt
"""


def test_a_run_that_is_interrupted_while_processes_start_leaves_none_behind(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(INTERRUPTED)
    errand = f"sleep {LONG_S}.{os.getpid()}"
    code, said = play(tmp_path, {"a": PASS}, "--beside", errand)
    assert code == 2, said
    commands = [folder / "cmdline" for folder in Path("/proc").glob("[0-9]*")]
    assert not [one for one in commands if errand.encode() in read(one).replace(b"\0", b" ")]


def read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def test_a_command_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    code, said = play(tmp_path, {"a": PASS}, "--beside", "true", "--beside", "no-such-command")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "no-such-command cannot be started" in said and "Traceback" not in said


def test_a_file_that_cannot_be_imported_is_followed_by_a_command_too(tmp_path: Path) -> None:
    code, said = play(tmp_path, {"a": PASS, "b": "import no_such_module\n"})
    assert code == 2
    assert any(line.endswith("-m pytest test_b.py") for line in said.splitlines()), said


def test_without_a_place_for_the_log_the_tests_run_and_its_end_is_shown(tmp_path: Path) -> None:
    (tmp_path / "build").write_text("a file")
    code, said = play(tmp_path, {"a": "import os\ndef test_dies(): os.abort()\n"}, "-s")
    assert code == 1
    assert "Aborted" in said.partition("the end of build/test-stderr.log")[2], said


def test_a_second_run_does_not_overwrite_the_log_of_the_first(tmp_path: Path) -> None:
    first, second = StderrLog(tmp_path / "build" / "log"), StderrLog(tmp_path / "build" / "log")
    for log, line in ((first, b"first\n"), (second, b"second\n")):
        log.divert()
        os.write(2, line)
        log.restore()
    assert (first.lines(), second.lines()) == (["first"], ["second"])


def recorder(monkeypatch: pytest.MonkeyPatch, **options: object) -> tuple[list[str], Any]:
    """The names under which a conductor keeps times, and a conductor whose tests all passed."""
    names: list[str] = []
    monkeypatch.setattr(plugin.timing, "write", lambda name, _figures: names.append(name))
    monkeypatch.setattr(plugin.took, "write", lambda *_: None)
    known = {"tx": [], "busy": 0, "record_as": "test"} | options
    config: Any = SimpleNamespace(
        getoption=lambda name, default=None: known.get(name, default),
        rootpath=ROOT,
        invocation_params=SimpleNamespace(dir=ROOT),
        args=["tests"],
    )
    one = plugin.Conductor(config)
    shutil.rmtree(one._lanes.parent)
    one._scheduler = SimpleNamespace(plan=SimpleNamespace(tests=[]), not_run=[])  # type: ignore[assignment]
    one._timing.add("gw0", "tests/test_a.py::test_a", 1.0, last=True)
    one._numbers = {"tests/test_a.py::test_a": 0}
    one._config.args = list(options.get("args", ["tests"]))  # type: ignore[call-overload]
    return names, one


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, ["test"]),
        ({"busy": 8}, []),
        ({"keyword": "a"}, []),
        ({"args": ["tests/unit"]}, []),
    ],
)
def test_times_of_a_selection_or_of_a_busy_machine_are_not_kept(
    options: dict[str, object], kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, "")
    names, one = recorder(monkeypatch, **options)
    one._wall_s = one._used_s = 1.0
    one._record()
    assert names == kept


def test_times_of_a_run_that_left_a_process_behind_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "")
    names, one = recorder(monkeypatch)
    monkeypatch.setattr(plugin, "sweep", lambda *_, **__: [plugin.Process(1, "sleep")])
    monkeypatch.setattr(one, "_error", lambda *_: None)
    session: Any = SimpleNamespace(exitstatus=0)
    one.pytest_sessionfinish(session, 0)
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED and names == []


def test_seeded_bugs_whose_tests_were_skipped_are_named(tmp_path: Path) -> None:
    test = next(test for tests in recorded_bugs().values() for test in tests)
    file, _, name = test.partition("::")
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(f"import pytest\ndef {name}(): pytest.skip('no tool')\n")
    code, said = play(tmp_path, {})
    assert code == 0
    _, _, named = said.partition("seeded bugs were skipped")
    assert set(bugs_of([test])) <= set(named.splitlines()), said
