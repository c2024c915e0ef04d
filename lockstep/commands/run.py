"""`lockstep run`: the pipeline, under spark-submit."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from control_topic.logs import JSON, LAUNCHER, TEXT, hold_lines, log_strays, write_lines
from lockstep.commands.options import (
    LEVELS,
    PATH,
    SET_HELP,
    configure_logging,
    standard_options,
    verbosity,
)
from lockstep.config import Config, load
from lockstep.config.kafka import checked_kafka
from lockstep.errors import EXIT_MEANINGS, LockstepError
from lockstep.launch.class_archive import options_to_use
from lockstep.launch.jars import classified
from lockstep.launch.job_process import launch
from lockstep.launch.submit import (
    Submission,
    compose,
    environment,
    find_jars,
    find_spark_home,
    needs_of,
    parse_conf,
)
from lockstep.output import Output

log = logging.getLogger("lockstep.run")

LOG_LEVELS = {-1: "WARNING", 0: "INFO", 1: "INFO", 2: "DEBUG"}


@click.command("run")
@click.option("-c", "--config", "config_path", type=PATH, required=True, help="The pipeline's TOML file.")
@click.option(
    "--until",
    type=click.Choice(["latest"]),
    help="Commit exactly up to today's end of the topics, then exit.",
)
@click.option("--set", "sets", multiple=True, metavar="SETTING=VALUE", help=SET_HELP)
@click.option(
    "--conf",
    "confs",
    multiple=True,
    metavar="NAME=VALUE",
    help="A Spark property, or a setting as spark.lockstep.transaction.interval=5s. May be repeated.",
)
@click.option("--master", default="", metavar="MASTER", help="Spark's master. Default: local[workers + 1].")
@click.option("--print-command", is_flag=True, help="Print the spark-submit command and start nothing.")
@standard_options
def command(
    output: Output,
    config_path: Path,
    until: str | None,
    sets: tuple[str, ...],
    confs: tuple[str, ...],
    master: str,
    print_command: bool,
) -> int:
    """Move records from the source topics into the table until told to stop.

    Ctrl-C and SIGTERM commit the open transaction and leave; a second one leaves at once.
    """
    conf = parse_conf(confs)
    config = _config(config_path, conf, sets)
    spark_home, needs = find_spark_home(), needs_of(config)
    jars, more_jars = find_jars(needs.packages, conf), classified(needs.classified)

    def composed(exit_code_file: Path | None) -> list[str]:
        submission = Submission(
            config_path=config_path,
            sets=sets,
            conf=conf,
            master=master,
            until=until or "",
            log_level=LOG_LEVELS[verbosity()],
            jars=jars,
            more_jars=more_jars,
            java_options=options_to_use(jars, conf),
            exit_code_file=exit_code_file,
            arguments=["--debug"] if verbosity() > 1 else [],
        )
        return compose(config, submission, spark_home=spark_home)

    if print_command:
        words = composed(None)
        output.document({"command": words}, _folded(words))
        return 0
    try:
        _preflight()
        checked_kafka(config)
        code = launch(composed, environment(os.environ, spark_home=spark_home))
    except LockstepError as error:
        if config.log.format != JSON:
            raise
        log.error("%s", error)
        return error.exit_code
    if output.is_json:
        output.document({"exit_code": code, "outcome": EXIT_MEANINGS.get(code, "interrupted")}, "")
    return code


def _config(path: Path, conf: Mapping[str, str], sets: Sequence[str]) -> Config:
    """What is said while it is read waits for `log.format`."""
    hold_lines("DEBUG")
    form = TEXT
    try:
        config = load(path, conf=conf, sets=sets)
        form = config.log.format
    finally:
        if form == TEXT:
            configure_logging(verbosity())
    if form == JSON:
        level = LEVELS[min(0, verbosity())]
        write_lines(logging.getLevelName(level), form=form, worker=LAUNCHER, pipeline=config.pipeline.id)
        log_strays()
    return config


def _preflight() -> None:
    from lockstep.launch.jars import find_java

    find_java()


def _folded(words: list[str]) -> str:
    """The command for a shell, an option on each line."""
    text = shlex.quote(words[0])
    option = False
    for word in words[1:]:
        starts = word.startswith("-") or not option
        text += (" \\\n  " if starts else " ") + shlex.quote(word)
        option = word.startswith("-")
    return text
