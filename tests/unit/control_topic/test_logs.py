"""Log lines as text and as JSON."""

from __future__ import annotations

import gc
import io
import json
import logging
import sys
import threading
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_topic.json_lines import FIELD_MAX, TEXT_MAX, JsonLines
from control_topic.log_fields import FIELDS, about
from control_topic.logs import JSON, TEXT, hold_lines, log_strays, write_lines
from tests.own_logs import logs_of_its_own

log = logging.getLogger("lockstep.test")


def written(form: str = JSON, **origin: str) -> io.StringIO:
    """Where what is logged from here on is written."""
    stream = io.StringIO()
    write_lines(
        "DEBUG", form=form, stream=stream, **{"pipeline": "p", "run": "r", "worker": "worker-0", **origin}
    )
    return stream


def objects(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().split("\n")[:-1]]


def test_a_line_says_when_who_and_what() -> None:
    stream = written()
    log.warning("%d files of instant %s", 3, "20260101", extra={"instant": "20260101"})
    (line,) = objects(stream)
    assert line.pop("time").endswith("Z") and len(json.loads(stream.getvalue())["time"]) == 24
    assert line == {
        "level": "WARNING",
        "logger": "lockstep.test",
        "message": "3 files of instant 20260101",
        "pipeline": "p",
        "run": "r",
        "worker": "worker-0",
        "instant": "20260101",
    }


def test_what_is_done_tells_what_lines_are_about_and_a_line_may_know_better() -> None:
    stream = written()
    with about(epoch=7, transaction="t-1", instant=""):
        log.info("one")
        with about(transaction="t-2"):
            log.info("two", extra={"offset": 0, "source_partition": "events:3"})
        log.info("three", extra={"epoch": 8})
    log.info("four")
    found = [{name: line[name] for name in FIELDS if name in line} for line in objects(stream)]
    assert found == [
        {"epoch": 7, "transaction": "t-1"},
        {"epoch": 7, "transaction": "t-2", "source_partition": "events:3", "offset": 0},
        {"epoch": 8, "transaction": "t-1"},
        {},
    ]


def test_what_one_thread_does_says_nothing_of_anothers_lines() -> None:
    stream = written()
    with about(epoch=7):
        other = threading.Thread(target=lambda: log.info("elsewhere"))
        other.start()
        other.join()
    assert "epoch" not in objects(stream)[0]


def test_an_error_is_a_field_and_no_further_line() -> None:
    stream = written()
    try:
        int("no\nnumber")
    except ValueError:
        log.exception("it failed")
    (line,) = objects(stream)
    assert line["message"] == "it failed"
    assert line["exception"].startswith("Traceback") and "invalid literal" in line["exception"]


def test_a_librarys_own_fields_stay_out() -> None:
    stream = written()
    log.info("x", extra={"password": "hunter2", "headers": {"authorization": "hunter2"}})
    assert "hunter2" not in stream.getvalue()


@given(st.text(), st.text())
def test_whatever_is_said_is_one_line_of_json_that_no_terminal_obeys(message: str, field: str) -> None:
    with logs_of_its_own():
        stream = written()
        log.info("%s", message, extra={"transaction": field})
    text = stream.getvalue()
    assert text.count("\n") == 1 and text[:-1].isascii() and text[:-1].isprintable()
    found = json.loads(text)
    assert len(message) > TEXT_MAX or found["message"] == message


def test_what_is_too_long_for_a_collector_is_cut() -> None:
    stream = written()
    log.info("x" * 10**6, extra={"source_partition": "y" * 10**6})
    (line,) = objects(stream)
    assert len(line["message"]) < TEXT_MAX + 20 and line["message"].endswith("(cut)")
    assert len(line["source_partition"]) < FIELD_MAX + 20


def test_values_that_do_not_fit_their_message_cost_no_line() -> None:
    stream = written()
    log.info("%d records", "many")
    log.info("%s and %s", "one")
    assert [line["message"].split(" (")[0] for line in objects(stream)] == ["%d records", "%s and %s"]


class Mute(Exception):
    """It raises another wherever its words are asked for."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error

    __repr__ = __str__


HOSTILE: dict[str, Any] = {
    "value": ("%s", Mute(RuntimeError("no")), {}),
    "value that recurs": ("%s", Mute(RecursionError("no")), {}),
    "value that says no more": ("%s", Mute(Mute(RuntimeError("no"))), {}),
    "message": (Mute(OSError("no")), None, {}),
    "infinity": ("%d", float("inf"), {}),
    "no character": ("%c", 10**9, {}),
    "huge number": ("%s", 1, {"epoch": 10**5_000}),
    "huge number, negative": ("%s", 1, {"epoch": -(10**5_000)}),
    "field": ("%s", 1, {"transaction": Mute(RuntimeError("no"))}),
    "error": ("%s", 1, {"exc_info": Mute(RuntimeError("no"))}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_whatever_a_line_is_about_it_is_one_line_and_nothing_is_printed(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = written()
    message, value, more = HOSTILE[case]
    caught = more.pop("exc_info", None) if "exc_info" in more else None
    log.info(message, *([value] if value is not None else []), extra=more, exc_info=caught)
    (line,) = objects(stream)
    assert line["level"] == "INFO" and line["logger"] == "lockstep.test" and line["pipeline"] == "p"
    assert line["message"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("character", ["\x00", "\x7f", "\u2028", "\U0001f600", '"', "\ud800"])
def test_a_line_is_no_longer_for_what_json_makes_of_its_characters(character: str) -> None:
    stream = written()
    try:
        raise ValueError(character * 100_000)
    except ValueError:
        log.exception("%s", character * 100_000, extra={"transaction": character * 1_000})
    assert len(stream.getvalue()) < 64_000
    (line,) = objects(stream)
    assert line["message"].endswith("(cut)") and len(line["message"]) > 1_000
    assert line["exception"].startswith("… (cut)")


def test_an_error_that_has_no_caller_is_a_line_and_one_without_words_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = written()
    log_strays()

    class Leaves:
        def __del__(self) -> None:
            raise ValueError("left")

    Leaves()
    gc.collect()

    def fails() -> None:
        raise Mute(RuntimeError("no"))

    ended = threading.Thread(target=fails, name="plane")
    ended.start()
    ended.join()
    first, second = objects(stream)
    assert "ValueError: left" in first["message"] and "exception" in first
    assert second["message"].startswith("thread plane ended: Mute")
    assert capsys.readouterr().err == ""


def test_a_process_that_ends_and_a_warning_of_pythons_are_lines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = written()
    log_strays()
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    ended = threading.Thread(target=lambda: int("no"), name="plane")
    ended.start()
    ended.join()
    try:
        raise OSError("gone")
    except OSError:
        kind, error, trace = sys.exc_info()
        assert kind is not None and error is not None
        sys.excepthook(kind, error, trace)
    lines = objects(stream)
    assert "DeprecationWarning: old" in lines[0]["message"]
    assert lines[1]["message"].startswith("thread plane ended: ValueError") and "exception" in lines[1]
    assert lines[2]["message"] == "the process ends: OSError: gone"


def test_what_is_logged_before_the_form_is_known_waits_for_it() -> None:
    hold_lines("INFO")
    log.info("before")
    stream = written()
    log.info("after")
    assert [(line["message"], line["run"]) for line in objects(stream)] == [("before", "r"), ("after", "r")]


def test_text_is_a_line_for_people_without_the_fields() -> None:
    stream = written(TEXT)
    with about(epoch=7):
        log.warning("two\nlines", extra={"instant": "20260101"})
    assert stream.getvalue().endswith("WARNING worker-0 lockstep.test: two\n    lines\n")


def test_the_formatter_knows_its_origin() -> None:
    record = logging.LogRecord("a", logging.INFO, __file__, 1, "m", (), None)
    assert json.loads(JsonLines(pipeline="", run="", worker="driver").format(record))["worker"] == "driver"
