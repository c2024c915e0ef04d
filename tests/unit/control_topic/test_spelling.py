"""A line of a log does not grow with what it is about."""

from __future__ import annotations

import io
import json
import logging
import sys
from pathlib import Path

import pytest
from rich.text import Text

from control_topic.messages import Halt, Message
from control_topic.quiet import PlainFormatter, plain_logs
from control_topic.spelling import one_line, plain, short_line, some
from control_topic.transport import Received
from lockstep.output import ConsoleOutput, JsonOutput, table
from lockstep.watch import topic_lines
from table.hudi.files.durable import Files
from table.store.local import LocalStore


def test_a_short_list_is_spelled_out_and_of_a_long_one_the_beginning_and_a_number() -> None:
    assert some([]) == ""
    assert some([1, 2]) == "1, 2"
    assert some(range(6)) == "0, 1, 2, 3, 4, 5"
    assert some(range(5_006)) == "0, 1, 2, 3, 4, 5 and 5,000 more"


def test_files_that_cannot_be_removed_are_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = Files(LocalStore(tmp_path), "0001")
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        files.shows(folder.name)  # a folder cannot be unlinked
    with caplog.at_level(logging.WARNING):
        files.remove()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        f"50 files of instant 0001 were not removed, which the rollback will do; the first: {tmp_path}/0"
    )


EVIL = "\x1b[2J\x1b[1;1HHALT\nRUNNING: orders, up to date\x1b]0;title\x07\x9b1m\u202egnp\u2028\x7f\r!"
OBEYED = "\x1b\x07\x9b\u202e\u2028\x7f\r"
"""What a terminal would obey."""


def calm(shown: str) -> bool:
    return not set(OBEYED) & set(shown)


def test_foreign_text_is_spelled_out_where_a_terminal_would_obey_it_and_is_one_line() -> None:
    assert one_line("a\x1b[1m\tb\r\nc\u2028d\x9be\u202ef") == "a\\x1b[1m b c d\\x9be\\u202ef"
    assert plain("a\nb\x07") == "a\nb\\x07"
    ordinary = "é \u4f60 \U0001f600 → · …"
    assert one_line(ordinary) == plain(ordinary) == ordinary


def test_a_message_of_the_control_topic_is_one_line_and_moves_no_cursor() -> None:
    message = Message(
        pipeline="p", run="r", epoch=1, sender=EVIL, incarnation="i",
        sequence=1, sent_at_ms=0, body=Halt(reason=EVIL),
    )  # fmt: skip
    received = Received(offset=1, time_ms=1, content=message, size_bytes=1)
    out = io.StringIO()
    ConsoleOutput(out).line({}, topic_lines.as_text(received))
    assert calm(out.getvalue()) and out.getvalue().count("\n") == 1
    out = io.StringIO()
    JsonOutput(out).line(topic_lines.as_json(received), "")
    assert calm(out.getvalue()) and out.getvalue().count("\n") == 1
    assert json.loads(out.getvalue())["content"]["reason"] == EVIL


def test_whatever_a_command_shows_moves_no_cursor_and_a_cell_of_a_table_stays_in_its_row() -> None:
    out = io.StringIO()
    ConsoleOutput(out).document({}, Text(EVIL))
    assert calm(out.getvalue())
    out = io.StringIO()
    ConsoleOutput(out).document({}, table(["topic", EVIL], [[EVIL, 7]]))
    assert calm(out.getvalue().splitlines()[-1]) and out.getvalue().rstrip().endswith("7")


def test_a_styled_terminal_still_gets_its_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out := io.StringIO(), "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    ConsoleOutput(out).line({}, Text("fine\x1b[31m", style="bold green"))
    assert "\x1b[1;32m" in out.getvalue() and "\\x1b[31m" in out.getvalue()


def test_a_log_line_cannot_be_forged_by_what_it_is_about() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(PlainFormatter("%(levelname)s %(message)s"))
    try:
        raise ValueError(EVIL)
    except ValueError:
        trace = sys.exc_info()
    handler.emit(logging.LogRecord("n", logging.ERROR, "", 1, "halted: %s", (EVIL,), trace))
    assert calm(out.getvalue())
    first, second, *_ = out.getvalue().splitlines()
    assert first.startswith("ERROR halted: ") and second.startswith("    RUNNING")


def test_the_logs_of_every_process_are_written_so(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logging.Formatter("x %(message)s", "%H"))
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    plain_logs()
    assert isinstance(handler.formatter, PlainFormatter)
    assert (handler.formatter._fmt, handler.formatter.datefmt) == ("x %(message)s", "%H")


def test_a_short_line_is_cut_before_it_is_spelled_out_and_after() -> None:
    assert short_line("a\nb", 10) == "a b"
    assert short_line("\x1b" * 10, 10) == "\\x1b\\x1b\\x"

    class Measured(str):
        def __getitem__(self, place: object) -> str:
            assert place == slice(None, 10)
            return "short"

    assert short_line(Measured("long"), 10) == "short"
