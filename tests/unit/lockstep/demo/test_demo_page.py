"""Where the demo's page is, and who is offered it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lockstep.demo import page
from lockstep.demo.lake import FILE, S3
from lockstep.demo.page import offer_page, page_of
from lockstep.demo.proof import Counted
from lockstep.demo.report import DemoReport, Ran
from lockstep.output import ConsoleOutput, JsonOutput


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report(kept: Path | None, *, store: str = FILE) -> DemoReport:
    ran = Ran(
        started_as="demo",
        records=1,
        produced_bytes=1,
        running_ms=1,
        total_ms=1,
        commits=(),
        aborts=(),
        epoch=1,
        kills=(),
        kept=kept,
        port=9_092,
        lake_port=0,
        lake_command=store,
        page="http://127.0.0.1:8420/",
    )
    return DemoReport(ran=ran, finding=Counted(records=1, counts=(), files=1, verdict={"exact": True}))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders whose page was served; somebody at a terminal says yes to whatever is asked."""
    folders: list[Path] = []
    monkeypatch.setattr(page, "serve_page", lambda folder, port, output: folders.append(folder))
    monkeypatch.setattr("sys.stdin", Terminal("y\n" * 9))
    monkeypatch.setattr("click.confirm", lambda *_, **__: True)
    return folders


def test_the_address_of_the_page_is_read_from_the_jobs_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    assert page_of(log) == ""
    log.write_text("12:00:00 INFO driver lockstep.run: pipeline demo\n")
    assert page_of(log) == ""
    with log.open("a") as file:
        file.write("12:00:01 INFO driver lockstep.run: the page: http://127.0.0.1:8421/\nmore\n")
    assert page_of(log) == "http://127.0.0.1:8421/"


def test_who_kept_the_demo_and_sits_at_a_terminal_is_offered_its_page(
    tmp_path: Path, served: list[Path]
) -> None:
    offer_page(report(tmp_path), ConsoleOutput(Terminal()))
    assert served == [tmp_path]


def test_nobody_else_is(tmp_path: Path, served: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    offer_page(report(None), ConsoleOutput(Terminal()))
    offer_page(
        report(tmp_path, store=S3), ConsoleOutput(Terminal())
    )  # its server would have to be started, too
    offer_page(report(tmp_path), ConsoleOutput(io.StringIO()))
    offer_page(report(tmp_path), JsonOutput(Terminal()))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    offer_page(report(tmp_path), ConsoleOutput(Terminal()))
    assert served == []


def test_the_end_says_where_the_page_was_and_how_it_is_seen_again(tmp_path: Path) -> None:
    stream = io.StringIO()
    ConsoleOutput(stream).document({}, report(tmp_path).to_text)
    assert "its page was http://127.0.0.1:8420/" in stream.getvalue()
    assert f"ui -c {tmp_path}/pipeline.toml" in stream.getvalue()
