"""`lockstep ui`: the page of transactions without a driver, of one pipeline or several."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import click

from control_topic.spelling import one_line
from lockstep.commands.options import PATH, standard_options
from lockstep.config import Config, load, resolve_kafka
from lockstep.config.kafka import checked_kafka
from lockstep.driver.rundir import RUN_FILES_MAX, RunFile, run_files
from lockstep.errors import EXIT_WELL, ConfigError
from lockstep.orders.by_page import PageOrders
from lockstep.output import Output
from lockstep.ui.server import PageServer
from lockstep.watch.observer import Observer
from lockstep.watch.run_seen import ask_driver

PIPELINES_MAX = RUN_FILES_MAX
Wanted: TypeAlias = tuple[Path, Sequence[str]]
"""A pipeline's file, and what is set beside it, as `--set` spells it."""
FOREVER_S = 3_600.0


@click.command("ui")
@click.option(
    "-c",
    "--config",
    "paths",
    type=PATH,
    multiple=True,
    help="A pipeline's TOML file. May be repeated: one page shows all of them. Without it: every pipeline "
    "that this user runs on this machine.",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=None, help="Instead of the first one's ui.port."
)
@click.option("--bind", default=None, help="Instead of the first one's ui.bind.")
@standard_options
def command(output: Output, paths: tuple[Path, ...], port: int | None, bind: str | None) -> int:
    """Show pipelines in a browser, until Ctrl-C: runs that are elsewhere, or have ended.

    Control topic, table and log are enough; where a run's driver is on this machine, it is asked, too. Where
    the page listens and which token its readers must show is what [ui] of the first file says. It is served
    also if ui.enabled is false, which applies to the driver. A pipeline with a ui.token appears only if the
    page asks its readers for the same token; it accepts orders if its ui.control allows them.
    """
    loaded = load_all([(path, ()) for path in paths] or started_here(output), port=port, bind=bind)
    configs = readable(loaded, output)
    ui = configs[0].ui
    token = ui.resolved_token()
    with ExitStack() as stack:
        watched = {}
        for config in configs:
            ask_live = functools.partial(ask_driver, config.pipeline.id)
            watched[config.pipeline.id] = Observer(config, checked_kafka(config), ask_live=ask_live)
        orders = {
            config.pipeline.id: PageOrders(config)
            for config in configs
            if config.ui.control and config.ui.resolved_token() == token
        }
        server = PageServer(
            watched, bind=ui.bind, port=ui.port, token=token, speaker="`lockstep ui`", orders=orders
        )
        server.start()
        stack.callback(server.stop)
        for observer in watched.values():
            observer.start()
            stack.callback(observer.stop)
        output.line(
            {"url": server.url, "pipelines": list(watched)}, f"the page: {server.url}  (Ctrl-C ends it)"
        )
        try:
            while not threading.Event().wait(FOREVER_S):
                continue
        except KeyboardInterrupt:
            output.note("the page has ended")
    return EXIT_WELL


def readable(configs: Sequence[Config], output: Output) -> list[Config]:
    """Return the pipelines that readers of the page may see; note the others.

    The page asks for the first one's token. A reader who has shown that token, or none where the first has
    none, has not shown the token of a pipeline that has another one: neither its state, nor values of its
    records, nor its orders are theirs. Raises `ConfigError` if a token cannot be resolved.
    """
    token = configs[0].ui.resolved_token()
    shown = [config for config in configs if config.ui.resolved_token() in ("", token)]
    for config in configs:
        if config not in shown:
            output.note(
                f"pipeline {one_line(config.pipeline.id)} is left out: its readers show another ui.token "
                "than those of the first pipeline. Give both the same token, or start a page for each."
            )
    return shown


def started_here(output: Output) -> list[Wanted]:
    """Of the runs that this user has started on this machine, those whose file is still theirs.

    Raises `ConfigError` where there are none.
    """
    found: list[Wanted] = []
    for entry in run_files():
        try:
            _check_readable(entry)
        except ConfigError as error:
            output.note(f"pipeline {one_line(entry.pipeline)} is left out: {one_line(str(error))}")
            continue
        found.append((Path(entry.config), entry.sets))
    if not found:
        raise ConfigError("no run of this user goes on on this machine: name a pipeline's file with -c")
    return found


def _check_readable(entry: RunFile) -> None:
    """Raise `ConfigError` where a run's file cannot be read, or is another pipeline's now, or secrets in it
    cannot be had here."""
    if not entry.config:
        raise ConfigError("its run is of an older version, which does not say with which file it was started")
    config = load(Path(entry.config), sets=entry.sets, with_schema=False)
    if config.pipeline.id != entry.pipeline:
        raise ConfigError(f"{entry.config} is of pipeline {config.pipeline.id} now")
    resolve_kafka(config)
    config.ui.resolved_token()


def load_all(wanted: Sequence[Wanted], *, port: int | None, bind: str | None) -> list[Config]:
    """The pipelines' configurations, of files and what is set beside; the first with the options in place of
    its own. Raises `ConfigError`."""
    if len(wanted) > PIPELINES_MAX:
        raise ConfigError(f"{len(wanted)} pipelines are too many for one page: at most {PIPELINES_MAX}")
    given = (("ui.port", port), ("ui.bind", bind))
    own = [f"{name}={value}" for name, value in given if value is not None]
    configs = [
        load(path, sets=[*sets, *own] if number == 0 else sets, with_schema=False)
        for number, (path, sets) in enumerate(wanted)
    ]
    names = [config.pipeline.id for config in configs]
    if len(set(names)) < len(names):
        raise ConfigError(f"two of the files are of one pipeline: {', '.join(names)}")
    return configs
