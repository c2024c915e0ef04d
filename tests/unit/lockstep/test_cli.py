"""The command line's frame: commands, errors, exit codes, output."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from lockstep import cli
from lockstep.commands.options import standard_options
from lockstep.errors import (
    EXIT_INTERRUPTED,
    ConfigError,
    Failed,
    Halted,
    LockstepError,
    NotExact,
    Superseded,
)
from lockstep.output import (
    ConsoleOutput,
    JsonOutput,
    Output,
    readable_count,
    readable_duration,
    readable_size,
    table,
)
from table.errors import Refused

PIPELINE = """
[pipeline]
id = "events"
[source]
bootstrap_servers = "127.0.0.1:1"
topics = ["events"]
[record]
schema = "event_id STRING"
[table]
path = "file:///data/lake/events"
name = "events"
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    return path


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[Output], object]], None]]:
    """Makes `lockstep probe` do something."""

    def install(body: Callable[[Output], object]) -> None:
        @click.command("probe")
        @standard_options
        def command(output: Output) -> object:
            return body(output)

        monkeypatch.setitem(sys.modules, "lockstep.commands.probe", type(sys)("lockstep.commands.probe"))
        monkeypatch.setattr(sys.modules["lockstep.commands.probe"], "command", command, raising=False)
        monkeypatch.setitem(cli.COMMANDS, "probe", ("lockstep.commands.probe", "A probe."))

    yield install


def raising(error: BaseException) -> Callable[[Output], object]:
    def body(output: Output) -> object:
        raise error

    return body


# --- commands ---------------------------------------------------------------------------------


def test_the_help_lists_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in ("run", "demo", "broker", "events", "status", "offsets", "verify", "validate"):
        assert f"\n  {name} " in shown
    for meaning in ("well", "failed", "usage or configuration", "halted", "not exact", "superseded"):
        assert meaning in shown


@pytest.mark.parametrize("name", ["run", "broker", "events"])
def test_every_command_has_help_output_and_log_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("--output [text|json]", "--verbose", "--quiet", "--debug"))


def test_an_unknown_command_or_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["evnts"]) == 2
    assert "did you mean events?" in capsys.readouterr().err
    assert cli.run(["events", "--nope"]) == 2
    assert cli.run(["events"]) == 2
    assert "Missing option '-c'" in capsys.readouterr().err


def test_looking_at_the_control_topic_loads_neither_spark_nor_arrow() -> None:
    code = (
        "import sys\n"
        "from lockstep import cli\n"
        "assert cli.run(['events', '--help']) == 0\n"
        "heavy = {'pyspark', 'pyarrow', 'sqlglot', 'grpc', 'hudi'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, timeout=60)


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Failed("it did not"), 1),
        (ConfigError("it is wrong"), 2),
        (Halted("it halted"), 3),
        (NotExact("it is not"), 4),
        (Superseded("it is"), 5),
        (Refused("the table says no"), 1),
    ],
)
def test_an_error_is_a_sentence_on_stderr_and_an_exit_code(
    error: Exception,
    code: int,
    probe: Callable[[Callable[[Output], object]], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    probe(raising(error))
    assert cli.run(["probe"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"error: {error}\n"


def test_the_errors_are_one_flat_tree() -> None:
    for error in LockstepError.__subclasses__():
        if error.__module__ == "lockstep.errors":
            assert error.__bases__ == (LockstepError,)
            assert error.__doc__


def test_an_unexpected_error_shows_its_trace_only_with_debug(
    probe: Callable[[Callable[[Output], object]], None], capfd: pytest.CaptureFixture[str]
) -> None:
    probe(raising(KeyError("lost")))
    assert cli.run(["probe"]) == 1
    shown = capfd.readouterr().err
    assert shown == "error: unexpected: KeyError: 'lost'; --debug shows where it came from\n"
    assert cli.run(["probe", "--debug"]) == 1
    assert "Traceback" in capfd.readouterr().err


def test_ctrl_c_ends_quietly(
    probe: Callable[[Callable[[Output], object]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    probe(raising(KeyboardInterrupt()))
    assert cli.run(["probe"]) == EXIT_INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_a_command_may_return_its_exit_code(probe: Callable[[Callable[[Output], object]], None]) -> None:
    probe(lambda _: 4)
    assert cli.run(["probe"]) == 4
    probe(lambda _: None)
    assert cli.run(["probe"]) == 0


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, click\n"
        "from lockstep import cli\n"
        "from lockstep.commands.options import standard_options\n"
        "@click.command()\n"
        "@standard_options\n"
        "def command(output):\n"
        "    for number in range(100_000):\n"
        "        output.line({'number': number}, str(number))\n"
        "sys.modules['many'] = type(sys)('many')\n"
        "sys.modules['many'].command = command\n"
        "cli.COMMANDS['many'] = ('many', '')\n"
        "sys.exit(cli.run(['many', *sys.argv[1:]]))\n",
        encoding="utf-8",
    )
    for form in ("text", "json"):
        process = subprocess.Popen(
            [sys.executable, str(script), "--output", form],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


# --- the commands' own ------------------------------------------------------------------------


def test_a_configuration_error_ends_a_command_before_anything_is_asked(
    pipeline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["events", "-c", str(pipeline), "--set", "transaction.intervall=5s"]) == 2
    assert (
        "transaction.intervall: not a setting; did you mean transaction.interval?" in capsys.readouterr().err
    )
    assert cli.run(["run", "-c", "nowhere.toml"]) == 2
    assert "nowhere.toml cannot be read" in capsys.readouterr().err


def test_the_command_of_a_run_can_be_printed_for_people_and_for_programs(
    pipeline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "-c", str(pipeline), "--until", "latest", "--set", "transaction.interval=5s"]
    assert cli.run([*arguments, "--print-command"]) == 0
    text = capsys.readouterr().out
    assert cli.run([*arguments, "--print-command", "--output", "json"]) == 0
    words = json.loads(capsys.readouterr().out)["command"]
    shell = subprocess.run(
        ["bash", "-c", "printf '%s\\0' " + text], stdout=subprocess.PIPE, check=True, text=True, timeout=60
    )
    assert shell.stdout.rstrip("\0").split("\0") == words
    assert "--exit-code-file" not in words
    assert words[words.index("--until") + 1] == "latest"


# --- output -----------------------------------------------------------------------------------


def test_the_json_form_is_one_document_or_lines_and_no_notes() -> None:
    stream = io.StringIO()
    output = JsonOutput(stream)
    output.note("for people")
    output.document({"a": "é"}, "text")
    assert json.loads(stream.getvalue()) == {"a": "é"}
    stream.truncate(0)
    stream.seek(0)
    output.line({"n": 1}, "one")
    output.line({"n": 2}, lambda: "two")
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [{"n": 1}, {"n": 2}]


def test_the_text_form_is_plain_and_unfolded_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    output = ConsoleOutput(stream)
    output.line({}, "[bold]" + "x" * 300)
    output.document({}, table(["name", "rows"], [["a", 1], ["b [x]", 10]], right=["rows"]))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[bold]" + "x" * 300
    assert [line.rstrip() for line in lines[1:]] == ["name   rows", "a         1", "b [x]    10"]
    assert "\x1b" not in stream.getvalue()


def test_quantities_are_readable() -> None:
    assert [readable_size(n) for n in (0, 999, 1_000, 18_240_000, 99_960_000, 2_500_000_000, 4 * 10**15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "18.2 MB",
        "100 MB",
        "2.5 GB",
        "4,000.0 TB",
    ]
    assert [readable_duration(ms) for ms in (12, 3_400, 59_960, 125_000, 3_720_000, 273_600_000)] == [
        "12 ms",
        "3.4 s",
        "1 m 00 s",
        "2 m 05 s",
        "1 h 02 m",
        "3 d 04 h",
    ]
    assert readable_count(1_000_000) == "1,000,000"
