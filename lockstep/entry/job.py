"""The spark-submit entry: `spark-submit … lockstep/entry/job.py -c pipeline.toml`.

What `lockstep run` composes starts here too. The exit code says how the run ended; where Spark would
change it on the way (a JVM that was sent a signal), `--exit-code-file` keeps it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lockstep.launch.start_up import importing, without_zips

sys.path[:] = without_zips(sys.path, os.environ.get("SPARK_HOME", ""))

with importing():
    import logging
    import secrets
    import signal
    import threading
    import time
    from collections import Counter
    from collections.abc import Callable
    from dataclasses import dataclass
    from typing import Any

    import click
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    from control_topic.logs import JSON, hold_lines, log_strays, release_lines, write_lines
    from lockstep.config import Config, from_json, load
    from lockstep.config.kafka import checked_kafka
    from lockstep.driver.accumulators import no_trace_of_accumulators
    from lockstep.driver.application import Application
    from lockstep.driver.jvm_logs import name_run
    from lockstep.driver.jvm_signals import catch_jvm_signals
    from lockstep.driver.rehearsal import rehearse
    from lockstep.driver.spark_end import LastResort, end_jvm, jvm_pid, stop_spark
    from lockstep.errors import (
        EXIT_FAILED,
        EXIT_HALTED,
        EXIT_INTERRUPTED,
        EXIT_SUPERSEDED,
        EXIT_WELL,
        Failed,
        Halted,
        LockstepError,
        Superseded,
        sentence,
        thrown,
    )
    from lockstep.launch.process_end import run_process
    from lockstep.launch.submit import needs_of
    from lockstep.offsets.operator_commit import execute_operator_commit
    from lockstep.validate import validate_in_job
    from table.service.ledger import RunOutcome, RunOutcomeKind
    from table.service.progress import Progress

log = logging.getLogger("lockstep.run")

CODES = {
    RunOutcomeKind.HALTED: EXIT_HALTED,
    RunOutcomeKind.SUPERSEDED: EXIT_SUPERSEDED,
    RunOutcomeKind.STOPPED: EXIT_WELL,
    RunOutcomeKind.REACHED: EXIT_WELL,
}
LEAVE_AT_ONCE_S = 0.2
ONE_SIGNAL_S = 1.0


@click.command()
@click.option(
    "-c", "--config", "path", type=click.Path(path_type=Path), required=True, help="The pipeline's TOML."
)
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Overlay one setting; strongest.")
@click.option("--until", type=click.Choice(["latest"]), help="Commit exactly up to today's end, then exit.")
@click.option("--log-level", default="INFO", show_default=True, help="DEBUG, INFO, WARNING or ERROR.")
@click.option("--debug", is_flag=True, help="Show the stack trace of an error.")
@click.option("--exit-code-file", type=click.Path(path_type=Path), hidden=True)
@click.option("--operator-commit", type=click.Path(path_type=Path), hidden=True)
@click.option("--validate", type=click.Path(path_type=Path), hidden=True)
@click.option("--rehearse", "rehearsing", is_flag=True, hidden=True)
def main(
    path: Path,
    sets: tuple[str, ...],
    until: str | None,
    log_level: str,
    debug: bool,
    exit_code_file: Path | None,
    operator_commit: Path | None,
    validate: Path | None,
    rehearsing: bool,
) -> None:
    """Move records from Kafka into the table until told to stop."""
    logging.getLogger("py4j").setLevel(logging.WARNING)
    hold_lines(log_level.upper())
    code = EXIT_FAILED
    asked = _Asked(
        path=path,
        sets=sets,
        until_latest=until is not None,
        log_level=log_level.upper(),
        exit_code_file=exit_code_file,
        operator_commit=operator_commit,
        validate=validate,
        rehearsing=rehearsing,
    )
    stuck: list[SparkSession] = []
    try:
        code = _work(asked, stuck)
    except Exception as error:
        release_lines(asked.log_level)
        code = error.exit_code if isinstance(error, LockstepError) else EXIT_FAILED
        log.error("%s", sentence(error), exc_info=debug)
    finally:
        asked.leave(code)
    for spark in stuck:
        end_jvm(spark, code)
        os._exit(code)
    sys.exit(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the command line says."""

    path: Path
    sets: tuple[str, ...]
    until_latest: bool
    log_level: str
    exit_code_file: Path | None
    operator_commit: Path | None
    validate: Path | None
    rehearsing: bool

    def leave(self, code: int) -> None:
        if self.exit_code_file is not None:
            _leave(code, self.exit_code_file)


def _leave(code: int, path: Path) -> None:
    """Where whoever started this looks: in a temporary folder, which a cleaner takes after some days."""
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(f"{code}\n", encoding="utf-8")
    except OSError as error:
        log.warning("exit code %d could not be left in %s: %s", code, path, error.strerror)


def _work(asked: _Asked, stuck: list[SparkSession]) -> int:
    """The exit code. `stuck`: takes the session where Spark does not come to an end."""
    config, run = _config(asked.path, asked.sets), secrets.token_hex(8)
    _write_lines(config, asked.log_level, run)
    spark = _session(config, run)
    try:
        config = _with_columns(config)
        if asked.rehearsing:
            return rehearse(spark, config)
        if asked.validate is not None:
            return validate_in_job(spark, config, asked.validate)
        if asked.operator_commit is not None:
            return execute_operator_commit(spark, config, asked.operator_commit)
        return _run(spark, config, asked, run)
    finally:
        if not stop_spark(spark):
            log.warning("Spark does not stop: its JVM is ended at once; what was committed is durable")
            stuck.append(spark)


def _config(path: Path, sets: tuple[str, ...]) -> Config:
    """A pipeline's TOML with its overlays, or what a command has resolved and shipped as JSON."""
    if path.suffix == ".json":
        return from_json(path.read_text(encoding="utf-8"))
    SparkContext._ensure_initialized()  # the JVM knows what spark-submit was given
    return load(path, conf=dict(SparkConf().getAll()), sets=sets)


def _with_columns(config: Config) -> Config:
    """With those that the run begins with, where the configuration leaves that to others."""
    if config.record.ddl:
        return config
    from lockstep.columns import begun

    found = begun(config)
    log.info("the columns are those of %s: %s", found.said_by, found.config.record.ddl.replace("`", ""))
    return found.config


def _write_lines(config: Config, level: str, run: str) -> None:
    """The log's form is a setting: until that was read, lines have waited."""
    write_lines(level, form=config.log.format, pipeline=config.pipeline.id, run=run)
    if config.log.format == JSON:
        log_strays()


def _session(config: Config, run: str) -> SparkSession:
    """The session that spark-submit configured, with what the table cannot do without."""
    builder = SparkSession.builder.appName("lockstep")
    for name, value in needs_of(config).fixed.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Py4JJavaError as error:
        jvm: Any = SparkContext._jvm
        version = jvm.java.lang.System.getProperty("java.version")
        raise Failed(f"Spark does not start, on Java {version}: {thrown(error)}") from error
    spark.sparkContext.setLogLevel("ERROR")
    no_trace_of_accumulators(spark.sparkContext)
    if config.log.format == JSON:
        name_run(spark, config.pipeline.id, run)
    return spark


def _run(spark: SparkSession, config: Config, asked: _Asked, run: str) -> int:
    application = Application(
        spark,
        config,
        checked_kafka(config),
        log_level=asked.log_level,
        run_id=run,
        path=asked.path,
        sets=asked.sets,
    )
    last_resort = LastResort(jvm_pid(spark), asked.leave)
    catcher = Catcher(application)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _frame: catcher.caught(signal.Signals(caught).name, "driver"))
    catch_jvm_signals(spark, lambda name: catcher.caught(name, "JVM"))
    log.info("pipeline %s, run %s", config.pipeline.id, application.run_id)
    outcome = application.run(
        until_latest=asked.until_latest,
        progress=_commits_logger(),
        ending=lambda outcome: last_resort.arm(CODES[outcome.kind]),
    )
    return _conclude(outcome)


def _conclude(outcome: RunOutcome) -> int:
    if outcome.kind is RunOutcomeKind.HALTED:
        raise Halted(f"halted: {outcome.reason}")
    if outcome.kind is RunOutcomeKind.SUPERSEDED:
        raise Superseded(f"superseded: {outcome.reason}")
    log.info("stopped: %s", outcome.reason)
    return EXIT_WELL


class Catcher:
    """The first signal ends the transaction, commits it and leaves; the second leaves at once.

    A terminal's Ctrl-C reaches the JVM and this process both, so each of them counts its own. Whoever signals
    all processes of a run at once reaches the JVM a second time through `lockstep run`, which passes it on:
    what comes within `ONE_SIGNAL_S` of the first is still the first.
    """

    def __init__(self, application: Application, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._application = application
        self._clock = clock
        self._first_s: float | None = None
        self._counts: Counter[str] = Counter()

    def caught(self, name: str, receiver: str) -> None:
        now_s = self._clock()
        self._first_s = now_s if self._first_s is None else self._first_s
        if self._counts[receiver] and now_s - self._first_s < ONE_SIGNAL_S:
            return
        self._counts[receiver] += 1
        if self._counts[receiver] > 1:
            log.warning("%s again: left at once; the next run rolls the open transaction back", name)
            # Not from here: the JVM that called would print the stack of its broken call.
            threading.Timer(LEAVE_AT_ONCE_S, os._exit, [EXIT_INTERRUPTED]).start()
            return
        if self._counts.total() == 1:
            log.info("%s: the open transaction is committed, then the run ends", name)
        self._application.request_stop(f"{name} was received")


def _commits_logger() -> Callable[[Progress], None]:
    """One line for every commit of this run."""
    seen = {"commits": 0, "rows": 0}

    def on_progress(progress: Progress) -> None:
        if progress.commits == seen["commits"]:
            return
        rows = progress.rows - seen["rows"]
        seen.update(commits=progress.commits, rows=progress.rows)
        log.info(
            "committed instant %s: %s rows, %s by this run",
            progress.newest_instant,
            f"{rows:,}",
            f"{progress.rows:,}",
            extra={
                "instant": progress.newest_instant,
                "transaction": progress.newest_transaction,
                "epoch": progress.standing.epoch,
            },
        )

    return on_progress


if __name__ == "__main__":
    run_process(main)
