"""Processes that look at the table: each with a log of its own and a limit of time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from lockstep.config import Config
from lockstep.errors import Failed
from lockstep.launch.class_archive import options_to_use
from lockstep.launch.jars import classified
from lockstep.launch.submit import Submission, compose, environment, find_jars, find_spark_home, needs_of

SPARK_TIMEOUT_S = 300


def run_logged(
    command: Sequence[str],
    log: Path,
    timeout_s: float,
    *,
    env: Mapping[str, str],
    out: IO[bytes] | None = None,
) -> int:
    """The exit code. What it says goes to `log`, stdout to `out` where that is given. Raises `Failed`."""
    with log.open("wb") as said:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out or said,
                stderr=said,
                timeout=timeout_s,
                check=False,
                env=env,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{command[0]} did not end within {timeout_s:.0f} s: see {log}") from error
    return done.returncode


def run_spark(job: Path, config: Config, config_path: Path, arguments: Sequence[str]) -> None:
    """A Spark job in a session of its own; its log goes beside the configuration. Raises `Failed`."""
    log = config_path.with_name(f"{job.stem.replace('_', '-')}.log")
    spark_home, needs = find_spark_home(), needs_of(config)
    jars = find_jars(needs.packages, {})
    submission = Submission(
        config_path=config_path,
        job=job,
        jars=jars,
        more_jars=classified(needs.classified),
        java_options=options_to_use(jars, {}),
        log_level="WARN",
        arguments=arguments,
    )
    command = compose(config, submission, spark_home=spark_home)
    env = environment(os.environ, spark_home=spark_home)
    status = run_logged(command, log, SPARK_TIMEOUT_S, env=env)
    if status != 0:
        raise Failed(f"Spark could not read the table, spark-submit ended with {status}: see {log}")
