"""`lockstep ui`: the page of transactions without a driver, of one pipeline or several."""

from __future__ import annotations

import functools
import threading
from contextlib import ExitStack
from pathlib import Path

import click

from lockstep.commands.options import PATH, standard_options
from lockstep.config import Config, load
from lockstep.config.kafka import checked_kafka
from lockstep.errors import EXIT_WELL, ConfigError
from lockstep.output import Output
from lockstep.ui.server import PageServer
from lockstep.watch.observer import Observer
from lockstep.watch.run_seen import ask_driver

PIPELINES_MAX = 32
FOREVER_S = 3_600.0


@click.command("ui")
@click.option(
    "-c",
    "--config",
    "paths",
    type=PATH,
    multiple=True,
    required=True,
    help="A pipeline's TOML file. May be repeated: one page shows all of them.",
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
    whatever ui.enabled says, which is about the driver.
    """
    configs = load_all(paths, port=port, bind=bind)
    ui = configs[0].ui
    with ExitStack() as stack:
        watched = {}
        for config in configs:
            ask_live = functools.partial(ask_driver, config.pipeline.id)
            watched[config.pipeline.id] = Observer(config, checked_kafka(config), ask_live=ask_live)
        server = PageServer(
            watched, bind=ui.bind, port=ui.port, token=ui.resolved_token(), speaker="`lockstep ui`"
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


def load_all(paths: tuple[Path, ...], *, port: int | None, bind: str | None) -> list[Config]:
    """The pipelines' configurations; the first with the options in place of its own. Raises `ConfigError`."""
    if len(paths) > PIPELINES_MAX:
        raise ConfigError(f"{len(paths)} pipelines are too many for one page: at most {PIPELINES_MAX}")
    given = (("ui.port", port), ("ui.bind", bind))
    sets = [f"{name}={value}" for name, value in given if value is not None]
    configs = [
        load(path, sets=sets if number == 0 else (), with_schema=False) for number, path in enumerate(paths)
    ]
    names = [config.pipeline.id for config in configs]
    if len(set(names)) < len(names):
        raise ConfigError(f"two of the files are of one pipeline: {', '.join(names)}")
    return configs
