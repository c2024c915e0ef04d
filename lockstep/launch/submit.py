"""The spark-submit command of a run. Pure: a configuration in, a list of words out.

The same job starts from a plain `spark-submit … lockstep/entry/job.py -c pipeline.toml`; everything that this
adds is visible with `lockstep run --print-command`. No secret is ever part of it: references travel
unresolved.
"""

from __future__ import annotations

import locale
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from control_topic.logs import JSON, TEXT
from lockstep.config import Config
from lockstep.config.secrets import holds_secret
from lockstep.config.sources import CONF_PREFIX
from lockstep.errors import ConfigError
from lockstep.launch.jvm import LATE_C2
from table.kinds import table_kind
from table.port import SparkNeeds

RESOLVED = (("--packages", "spark.jars.packages"), ("--exclude-packages", "spark.jars.excludes"))
"""Flag and property. Where both are given, spark-submit obeys the flag alone: what the user gives as a
property is joined to what the table wants."""
DRIVER_MEMORY = "1g"
"""The driver's heap at most: Hudi's timeline and metadata, 60 MB after 650 commits, and room for a large
table. Workers are Python processes beside it."""

SMALL_HEAP = (
    "-XX:+UseSerialGC -Xms192m -Xmn64m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40 "
    "-XX:MetaspaceSize=128m -XX:TrimNativeHeapInterval=60000"
)
"""With our own heap size. G1 spreads over all of a heap, whatever is alive in it, and resident memory grew
for an hour; this collector keeps to what is needed, and its pauses are short for so little. But it never
shrinks below the initial size, by default a part of the machine's memory, which it fills over an hour.
Classes take 100 MB, and each step up to that would be a full collection at the start. What the JVM itself
has freed is given back once a minute, from Java 17.0.9 on; Spark has an older one ignore what it does not
know.
"""

ARENAS = {"MALLOC_ARENA_MAX": "4"}
"""As in Hadoop's own scripts: else the C library keeps a pool of freed memory for each of many threads."""

UTF_8_LOCALE = "C.UTF-8"
"""The C library's own locale with UTF-8: no package is needed for it."""

JVM_PROPERTY = re.compile(r"-D([^\s=]+)=(\S*)")
COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

LOG_CONFIGURATIONS: Mapping[str, Path] = {
    TEXT: Path(__file__).with_name("log4j2.properties"),
    JSON: Path(__file__).with_name("log4j2-json.properties"),
}
"""Of the driver's JVM, by `log.format`."""

JOB = Path(__file__).parents[1] / "entry" / "job.py"

_WORKER_CONF: Mapping[str, str] = {
    # A worker runs once, in a process of its own, and is restarted by the supervisor alone.
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.python.worker.reuse": "false",
}
_LOCAL_CONF: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # An executor elsewhere may have its Lockstep where only a task finds it.
    "spark.python.daemon.module": "lockstep.driver.worker_daemon",
    # Spark makes this folder, empty, wherever it is started.
    "spark.sql.warehouse.dir": f"{tempfile.gettempdir()}/lockstep-spark-warehouse",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a caller may choose beside the configuration."""

    config_path: Path
    sets: Sequence[str] = ()
    """Passed on as given, so that job and command line resolve the same layers."""

    conf: Mapping[str, str] = field(default_factory=dict)
    """Passed on likewise."""

    master: str = ""
    until: str = ""
    log_level: str = "INFO"
    jars: Sequence[Path] = ()
    """Those of the table's packages where they are on this machine already; otherwise Spark resolves them."""

    more_jars: Sequence[Path] = ()
    """Those of the table's that Spark does not resolve by itself."""

    java_options: str = ""
    """More of them for the driver's JVM."""

    exit_code_file: Path | None = None
    """Where the job leaves its exit code."""

    arguments: Sequence[str] = ()
    """More words for the job."""

    job: Path = JOB


def compose(config: Config, submission: Submission, *, spark_home: Path) -> list[str]:
    """The whole command. Raises `ConfigError` where the Spark configuration holds a literal secret."""
    _refuse_secrets(submission.conf)
    needs = needs_of(config)
    master = submission.master or default_master(config)
    command = [str(spark_home / "bin" / "spark-submit"), "--master", master]
    command += ["--name", f"lockstep-{config.pipeline.id}"]
    for (flag, name), ours in zip(RESOLVED, (needs.packages, needs.excluded), strict=True):
        given = filter(None, submission.conf.get(name, "").split(","))
        coordinates = [*(() if submission.jars else ours), *given]
        if coordinates:
            command += [flag, ",".join(coordinates)]
    jars = [*submission.jars, *submission.more_jars]
    if jars and not is_local(master):
        command += ["--jars", ",".join(map(str, jars))]
    for name, value in _spark_conf(submission, master, needs, LOG_CONFIGURATIONS[config.log.format]).items():
        command += ["--conf", f"{name}={value}"]
    return [*command, str(submission.job), *_job_arguments(submission)]


def needs_of(config: Config) -> SparkNeeds:
    """What the table, of its kind and where it is, wants of Spark."""
    return table_kind(config.table.format).needs(config.table.path)


def default_master(config: Config) -> str:
    """One slot for each worker and one for Hudi's own jobs, in this machine's one JVM."""
    return f"local[{config.pipeline.workers + 1}]"


def is_local(master: str | None) -> bool:
    """Whether executors run on this machine (`local[…]`, `local-cluster[…]`)."""
    return (master or "").startswith("local")


def environment(base: Mapping[str, str], *, spark_home: Path, encoding: str | None = None) -> dict[str, str]:
    """The environment of spark-submit: this pyspark, whatever else is installed, and this Lockstep.

    `encoding`: of this process's locale, by default what the C library says. A JVM encodes file names in it.
    """
    result = {**ARENAS, **base, "SPARK_HOME": str(spark_home)}
    if (encoding or locale.nl_langinfo(locale.CODESET)).upper() != "UTF-8":
        result["LC_ALL"] = UTF_8_LOCALE
    root = Path(__file__).parents[2]
    if "site-packages" not in root.parts:  # a checkout
        known = [entry for entry in base.get("PYTHONPATH", "").split(":") if entry and entry != str(root)]
        result["PYTHONPATH"] = ":".join([str(root), *known])
    return result


def find_spark_home() -> Path:
    """Where the installed pyspark keeps its `bin` and `jars`."""
    from importlib.util import find_spec

    spec = find_spec("pyspark")  # found, not imported: nothing of it is needed here
    if spec is None or spec.origin is None:
        raise ConfigError("pyspark is not installed for this Python: install lockstep with its dependencies")
    return Path(spec.origin).parent


def find_jars(packages: Sequence[str], conf: Mapping[str, str]) -> list[Path]:
    """The packages' jars, in their order, where Spark has resolved all of them before; else none.

    Then no network is needed, and no copy of them at every start.
    """
    folder = Path(conf.get("spark.jars.ivy") or Path.home() / ".ivy2") / "jars"
    parts = [package.split(":") for package in packages]
    jars = [folder / f"{group}_{artifact}-{version}.jar" for group, artifact, version in parts]
    return jars if all(jar.is_file() and zipfile.is_zipfile(jar) for jar in jars) else []


def parse_conf(assignments: Sequence[str]) -> dict[str, str]:
    """`name=value` as given to `--conf`. Raises `ConfigError` for anything else."""
    conf: dict[str, str] = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not name.startswith("spark."):
            raise ConfigError(f"--conf {name} is not a Spark property: write --conf spark.name=value")
        conf[name] = value
    return conf


def _spark_conf(
    submission: Submission, master: str, needs: SparkNeeds, log_configuration: Path
) -> dict[str, str]:
    conf = {**needs.conf, **_WORKER_CONF, "spark.ui.enabled": "false", "spark.driver.memory": DRIVER_MEMORY}
    conf["spark.pyspark.driver.python"] = sys.executable
    if is_local(master):
        conf |= {**_LOCAL_CONF, "spark.pyspark.python": sys.executable}
        if jars := [*submission.jars, *submission.more_jars]:
            path = os.pathsep.join(map(str, jars))
            conf |= {"spark.driver.extraClassPath": path, "spark.executor.extraClassPath": path}
    joined = {name for _, name in RESOLVED}
    given = {name: value for name, value in submission.conf.items() if name not in joined}
    for name in ("spark.driver.extraClassPath", "spark.executor.extraClassPath"):
        if name in conf and name in given:
            given[name] = f"{conf[name]}:{given[name]}"
    options = " ".join(filter(None, (LATE_C2, submission.java_options, given.pop(JAVA_OPTIONS, ""))))
    if "spark.driver.memory" not in given and not COLLECTOR.search(options):
        options = f"{SMALL_HEAP} {options}"
    if "log4j2.configurationFile" not in options and "log4j.configurationFile" not in options:
        ours = f"-Dlog4j2.configurationFile={log_configuration.as_uri()}"
        options = " ".join(filter(None, (ours, needs.java_options, options)))
    return {**conf, JAVA_OPTIONS: options, **given}


def _job_arguments(submission: Submission) -> list[str]:
    words = ["-c", str(submission.config_path.resolve()), "--log-level", submission.log_level]
    for assignment in submission.sets:
        words += ["--set", assignment]
    if submission.until:
        words += ["--until", submission.until]
    if submission.exit_code_file is not None:
        words += ["--exit-code-file", str(submission.exit_code_file)]
    return [*words, *submission.arguments]


def _refuse_secrets(conf: Mapping[str, str]) -> None:
    for name, value in conf.items():
        if name.startswith(CONF_PREFIX):  # checked when the configuration was loaded
            continue
        option = next((one for one, given in JVM_PROPERTY.findall(value) if holds_secret(one, given)), "")
        if option or holds_secret(name, value):
            place = f"{name}: -D{option} is" if option else f"{name}:"
            raise ConfigError(
                f"--conf {place} a secret, given on a command line, where other users of the machine can "
                "read it: put it into spark-defaults.conf in the folder that SPARK_CONF_DIR names"
            )
