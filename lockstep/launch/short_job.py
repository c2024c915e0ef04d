"""A short Spark job for a command: the configuration is shipped in a private file, the job awaited."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lockstep.config import Config
from lockstep.config.sections import LogSection
from lockstep.errors import Failed
from lockstep.launch.class_archive import options_to_use
from lockstep.launch.jars import classified
from lockstep.launch.job_process import left_in
from lockstep.launch.submit import (
    Submission,
    compose,
    environment,
    find_jars,
    find_spark_home,
    needs_of,
    parse_conf,
)

JOB_TIMEOUT_S = 300


def run_short_job(
    config: Config,
    folder: Path,
    arguments: Sequence[str],
    *,
    master: str = "",
    confs: Sequence[str] = (),
    java_options: str | None = None,
    timeout_s: float = JOB_TIMEOUT_S,
) -> tuple[int, str]:
    """Run lockstep/entry/job.py with `arguments`; its exit code and its last words. Raises `Failed` on a
    time-out.

    `folder`: a private one, for as long as the job runs. `java_options`: of the driver's JVM; by
    default those that make use of what `lockstep prepare` has made.
    """
    shipped = folder / "pipeline.json"
    shipped.touch(mode=0o600)
    config = config.model_copy(update={"log": LogSection()})  # its last words are read here, as text
    shipped.write_text(config.to_json(), encoding="utf-8")
    exit_code_file = folder / "exit-code"
    spark_home, conf = find_spark_home(), parse_conf(confs)
    needs = needs_of(config)
    jars = find_jars(needs.packages, conf)
    submission = Submission(
        config_path=shipped,
        conf=conf,
        master=master,
        jars=jars,
        more_jars=classified(needs.classified),
        java_options=options_to_use(jars, conf) if java_options is None else java_options,
        log_level="WARNING",
        exit_code_file=exit_code_file,
        arguments=arguments,
    )
    command = compose(config, submission, spark_home=spark_home)
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # Spark sends the Python driver's stderr to the JVM's stdout
            text=True,
            timeout=timeout_s,
            check=False,
            env=environment(os.environ, spark_home=spark_home),
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"the Spark job did not end within {timeout_s:.0f} s") from error
    left = left_in(exit_code_file)
    return int(left) if left.isdecimal() else done.returncode, _last_words(done.stdout)


def _last_words(output: str) -> str:
    """What the job said last of an error, without time and logger."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.partition(": ")[2] for line in lines if " ERROR " in line]
    return (errors or lines or [""])[-1]
