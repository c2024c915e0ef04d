"""The page of the demo's run: where it is while the job runs, and shown again in the end if wanted."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from lockstep.brokers.local import Broker
from lockstep.config import load, resolve_kafka
from lockstep.demo.lake import FILE
from lockstep.demo.report import DemoReport
from lockstep.errors import Failed
from lockstep.output import Output
from lockstep.ui.server import PORT, PageServer
from lockstep.watch.observer import Observer

SAID = re.compile(r"the page: (http://\S+)")
LOG_BYTES_MAX = 1_000_000
FOREVER_S = 3_600.0


def page_of(log: Path) -> str:
    """Where the job says that its page is; empty where it has not said so yet."""
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            found = SAID.search(file.read(LOG_BYTES_MAX))
    except OSError:
        return ""
    return found[1] if found else ""


def offer_page(report: DemoReport, output: Output) -> None:
    """Where the demo was kept, and somebody sits at a terminal: serve its page until Ctrl-C, if they want it.

    Raises `Failed`.
    """
    kept = report.ran.kept
    is_there = output.console.is_terminal and sys.stdin.isatty() and not output.is_json
    if kept is None or not is_there or report.ran.lake_command != FILE:
        return
    if click.confirm("\nLook at the page of this run now?", default=True, err=True):
        serve_page(kept, report.ran.port, output)


def serve_page(folder: Path, broker_port: int, output: Output) -> None:
    """From the kept folder: its broker is started again. Raises `Failed`."""
    config = load(folder / "pipeline.toml", with_schema=False)
    with ExitStack() as stack:
        broker = Broker(folder / "kafka", port=broker_port, heap_mb=512)
        broker.start()
        stack.callback(broker.stop)
        observer = Observer(config, resolve_kafka(config), ask_live=lambda: None)
        server = PageServer(
            {config.pipeline.id: observer}, bind="127.0.0.1", port=PORT, token="", speaker="The demo"
        )
        server.start()
        stack.callback(server.stop)
        observer.start()
        stack.callback(observer.stop)
        output.note(f"the page: {server.url}  (Ctrl-C ends it)")
        try:
            while not broker.wait(FOREVER_S):
                continue
            raise Failed("the demo's broker has ended by itself: the page has nothing new to show")
        except KeyboardInterrupt:
            output.note("the page has ended")
