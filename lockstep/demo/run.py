"""The demo from beginning to end: a folder for it, a play on the stage, and nothing left behind."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lockstep.demo.cdc import ChangeDataPlay
from lockstep.demo.formats import JSON
from lockstep.demo.lake import FILE
from lockstep.demo.plain import PlainPlay
from lockstep.demo.play import Play
from lockstep.demo.report import DemoReport
from lockstep.demo.stage import Stage
from lockstep.demo.view import View, make_view
from lockstep.errors import Failed
from lockstep.launch.jars import find_java
from lockstep.output import Output

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
KEEP_FOLDER = Path(".demo")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """What a demo is asked for."""

    records: int
    """Events to produce, change events where it is of change data."""

    interval: str
    """As the configuration spells it."""

    keep: bool
    cdc: bool = False
    store: str = FILE
    """Where the table is: one of `lockstep.demo.lake.STORES`."""
    form: str = JSON
    """Of events: one of `lockstep.demo.formats.FORMATS`."""


def run_demo(settings: DemoSettings, output: Output, view: View | None = None) -> DemoReport:
    """The whole demo, shown by `view`, or as the output's console can.

    Raises `Failed`, with the folder kept, where it could not be carried through.
    """
    find_java()
    records = settings.records
    play: Play = ChangeDataPlay(records) if settings.cdc else PlainPlay(records, settings.form)
    folder = _folder(settings.keep)
    with _signals_as_interrupts(), _state_in(folder / "state"), _logs_in(folder / "demo.log"):
        try:
            stage = Stage(
                play,
                folder,
                output,
                view or make_view(output),
                interval=settings.interval,
                keep=settings.keep,
                store=settings.store,
            )
            report = stage.run()
        except Failed as error:
            raise Failed(f"{error}\nEverything it made is kept in {folder}") from error
        except BaseException:
            _remove(folder, unless=settings.keep)
            raise
    _remove(folder, unless=report.ran.kept is not None)
    return report


def _folder(keep: bool) -> Path:
    if not keep:
        return Path(tempfile.mkdtemp(prefix="lockstep-demo-"))
    folder = KEEP_FOLDER / datetime.now().strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    return folder.resolve()


def _remove(folder: Path, *, unless: bool) -> None:
    if not unless:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """SIGTERM and a closed terminal end the demo as Ctrl-C does: everything it started is ended."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


@contextmanager
def _logs_in(file: Path) -> Iterator[None]:
    """Log lines would tear the live view apart: while it is shown they go into a file."""
    root = logging.getLogger()
    before = root.handlers[:]
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    root.handlers[:] = [handler]
    try:
        yield
    finally:
        root.handlers[:] = before
        handler.close()


@contextmanager
def _state_in(folder: Path) -> Iterator[None]:
    """Run files of this process and its children go there, apart from those of real pipelines."""
    before = os.environ.get("LOCKSTEP_STATE")
    os.environ["LOCKSTEP_STATE"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["LOCKSTEP_STATE"]
        else:
            os.environ["LOCKSTEP_STATE"] = before
