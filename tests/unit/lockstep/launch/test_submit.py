"""The spark-submit command, and how its process is watched over."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from lockstep.config import Config, from_mapping
from lockstep.errors import EXIT_HALTED, EXIT_INTERRUPTED, EXIT_SUPERSEDED, EXIT_WELL, ConfigError, Failed
from lockstep.launch.job_process import launch
from lockstep.launch.submit import (
    JOB,
    LOG_CONFIGURATIONS,
    Submission,
    compose,
    environment,
    find_jars,
    find_spark_home,
    parse_conf,
)
from table.hudi.needs import NOT_ALONG, PACKAGES

SPARK_HOME = Path("/opt/spark")
JARS = [Path("/jars/hudi.jar"), Path("/jars/client.jar")]
DEADLINE_S = 30.0


@pytest.fixture
def config() -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events", "workers": 3},
            "source": {
                "bootstrap_servers": "127.0.0.1:9092",
                "topics": ["events"],
                "kafka": {"sasl.password": "in-the-file", "ssl.key.password": "${env:KEY_PASSWORD}"},
            },
            "record": {"schema": "event_id STRING"},
            "table": {"path": "file:///data/lake/events", "name": "events"},
        }
    )


def composed(config: Config, **choices: object) -> list[str]:
    submission = Submission(config_path=Path("pipeline.toml"), **choices)  # type: ignore[arg-type]
    return compose(config, submission, spark_home=SPARK_HOME)


def conf_of(command: list[str]) -> dict[str, str]:
    given = [command[at + 1] for at, word in enumerate(command) if word == "--conf"]
    assert len(given) == len({word.partition("=")[0] for word in given}), "a property is given twice"
    return dict(word.split("=", 1) for word in given)


def after(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


# --- the command ------------------------------------------------------------------------------


def test_the_command_is_spark_submit_with_what_hudi_and_long_running_workers_need(config: Config) -> None:
    command = composed(config)
    assert command[0] == "/opt/spark/bin/spark-submit"
    assert after(command, "--master") == "local[4]"
    assert after(command, "--packages") == ",".join(PACKAGES)
    assert after(command, "--exclude-packages") == ",".join(NOT_ALONG)
    conf = conf_of(command)
    assert conf["spark.serializer"] == "org.apache.spark.serializer.KryoSerializer"
    assert conf["spark.kryo.registrator"] == "org.apache.spark.HoodieSparkKryoRegistrar"
    assert conf["spark.sql.extensions"] == "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"
    assert conf["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
    assert conf["spark.speculation"] == "false"
    assert conf["spark.task.maxFailures"] == "1"
    assert conf["spark.python.worker.reuse"] == "false"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.pyspark.python"] == conf["spark.pyspark.driver.python"] == sys.executable
    assert conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert (
        f"-Dlog4j2.configurationFile={LOG_CONFIGURATIONS['text'].as_uri()}"
        in conf["spark.driver.extraJavaOptions"]
    )


def test_the_job_gets_the_layers_as_the_command_line_got_them(config: Config) -> None:
    command = composed(
        config,
        sets=["transaction.interval=5s", "table.name=x"],
        conf={"spark.lockstep.transaction.max_records": "7"},
        until="latest",
        exit_code_file=Path("/tmp/code"),
        arguments=["--debug"],
    )
    arguments = command[command.index(str(JOB)) + 1 :]
    assert arguments == [
        *("-c", str(Path("pipeline.toml").resolve())),
        *("--log-level", "INFO"),
        *("--set", "transaction.interval=5s", "--set", "table.name=x"),
        *("--until", "latest"),
        *("--exit-code-file", "/tmp/code"),
        "--debug",
    ]
    assert conf_of(command)["spark.lockstep.transaction.max_records"] == "7"


def test_the_job_and_the_log_configuration_are_shipped_with_the_package() -> None:
    assert JOB.is_file()
    assert all(path.is_file() for path in LOG_CONFIGURATIONS.values())


def test_what_the_user_configures_wins_and_class_paths_and_options_are_joined(config: Config) -> None:
    command = composed(
        config,
        jars=JARS,
        conf={
            "spark.driver.memory": "4g",
            "spark.ui.enabled": "true",
            "spark.driver.extraJavaOptions": "-XX:+UseZGC",
            "spark.driver.extraClassPath": "/mine.jar",
            "spark.jars.packages": "a:b:1",
        },
    )
    conf = conf_of(command)
    assert (conf["spark.driver.memory"], conf["spark.ui.enabled"]) == ("4g", "true")
    options = conf["spark.driver.extraJavaOptions"].split()
    assert options[0].endswith("log4j2.properties")
    assert options[-1] == "-XX:+UseZGC"
    assert conf["spark.driver.extraClassPath"] == "/jars/hudi.jar:/jars/client.jar:/mine.jar"
    assert after(command, "--packages") == "a:b:1"


@pytest.mark.parametrize(
    ("conf", "ours"),
    [
        ({}, True),
        ({"spark.driver.extraJavaOptions": "-Dmine=1"}, True),
        ({"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, False),
        ({"spark.driver.memory": "8g"}, False),
    ],
)
def test_the_collector_of_a_small_heap_is_chosen_unless_heap_or_collector_are_the_users(
    config: Config, conf: dict[str, str], ours: bool
) -> None:
    options = conf_of(composed(config, conf=conf))["spark.driver.extraJavaOptions"].split()
    assert ("-XX:+UseSerialGC" in options) == ours


def test_a_log_configuration_of_the_users_replaces_ours(config: Config) -> None:
    options = "-Dlog4j2.configurationFile=file:/mine.properties"
    conf = conf_of(composed(config, conf={"spark.driver.extraJavaOptions": options}))
    given = conf["spark.driver.extraJavaOptions"].split()
    assert [word for word in given if "log4j2" in word] == [options]
    assert given[-1] == options  # the user's come last: HotSpot obeys the last of two


def test_jars_at_hand_are_on_the_class_path_of_a_local_run_and_shipped_to_a_cluster(
    config: Config,
) -> None:
    local = composed(config, jars=JARS)
    assert "--packages" not in local
    assert "--jars" not in local
    assert conf_of(local)["spark.driver.extraClassPath"] == "/jars/hudi.jar:/jars/client.jar"
    cluster = composed(config, jars=JARS, master="spark://host:7077")
    assert after(cluster, "--jars") == "/jars/hudi.jar,/jars/client.jar"
    assert "spark.driver.extraClassPath" not in conf_of(cluster)


def test_jars_that_spark_does_not_resolve_come_along_and_the_rest_is_resolved_where_it_is_missing(
    config: Config,
) -> None:
    more = [Path("/jars/google.jar")]
    local = conf_of(composed(config, jars=JARS, more_jars=more))
    assert local["spark.driver.extraClassPath"] == "/jars/hudi.jar:/jars/client.jar:/jars/google.jar"
    cluster = composed(config, jars=JARS, more_jars=more, master="spark://host:7077")
    assert after(cluster, "--jars") == "/jars/hudi.jar,/jars/client.jar,/jars/google.jar"
    missing = composed(config, more_jars=more)
    assert "org.apache.hudi" in after(missing, "--packages")
    assert conf_of(missing)["spark.driver.extraClassPath"] == "/jars/google.jar"


def test_what_the_user_leaves_out_is_left_out_beside_what_we_leave_out(config: Config) -> None:
    conf = {"spark.jars.packages": "a:b:1", "spark.jars.excludes": "c:d"}
    command = composed(config, conf=conf)
    assert after(command, "--packages") == ",".join([*PACKAGES, "a:b:1"])
    assert after(command, "--exclude-packages") == ",".join([*NOT_ALONG, "c:d"])
    assert "spark.jars.excludes" not in conf_of(command), "spark-submit would obey one of the two"
    command = composed(config, conf=conf, jars=JARS)
    assert (after(command, "--packages"), after(command, "--exclude-packages")) == ("a:b:1", "c:d")


def test_a_pipeline_whose_table_is_not_hudis_fetches_no_hudi(config: Config) -> None:
    other = config.model_copy(update={"table": config.table.model_copy(update={"format": "memory"})})
    command = composed(other, conf={"spark.jars.packages": "a:b:1"})
    assert after(command, "--packages") == "a:b:1" and "--exclude-packages" not in command
    assert not [word for word in composed(other) if "hudi" in word.lower()]


def test_a_cluster_is_not_given_this_machines_python_or_loopback(config: Config) -> None:
    conf = conf_of(composed(config, master="yarn"))
    assert "spark.pyspark.python" not in conf
    assert "spark.driver.bindAddress" not in conf
    assert "spark.python.daemon.module" not in conf
    assert conf["spark.pyspark.driver.python"] == sys.executable


def test_on_this_machine_workers_are_forked_with_their_modules_unless_the_user_says_otherwise(
    config: Config,
) -> None:
    name, ours = "spark.python.daemon.module", "lockstep.driver.worker_daemon"
    assert conf_of(composed(config))[name] == ours
    assert find_spec(ours) is not None
    assert conf_of(composed(config, conf={name: "pyspark.daemon"}))[name] == "pyspark.daemon"


def test_no_secret_is_in_the_command(config: Config) -> None:
    words = shlex.join(composed(config))
    assert "in-the-file" not in words
    assert "KEY_PASSWORD" not in words


@pytest.mark.parametrize(
    "name", ["spark.hadoop.fs.s3a.secret.key", "spark.ssl.keyPassword", "spark.authenticate.secret"]
)
def test_a_secret_in_sparks_own_properties_is_refused_and_not_repeated(config: Config, name: str) -> None:
    with pytest.raises(ConfigError, match=f"--conf {name}: a secret") as caught:
        composed(config, conf={name: "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_secret_among_the_jvms_options_is_refused_and_not_repeated(config: Config) -> None:
    options = "-Xss2m -Djavax.net.ssl.keyStorePassword=hunter2 -Da=b"
    with pytest.raises(ConfigError, match="keyStorePassword is a secret") as caught:
        composed(config, conf={"spark.driver.extraJavaOptions": options})
    assert "hunter2" not in str(caught.value)
    composed(config, conf={"spark.driver.extraJavaOptions": "-Duser.timezone=UTC"})


def test_what_is_no_spark_property_is_refused() -> None:
    assert parse_conf(["spark.a=b=c", "spark.x="]) == {"spark.a": "b=c", "spark.x": ""}
    for wrong in ("lockstep.transaction.interval=5s", "spark.a"):
        with pytest.raises(ConfigError, match="is not a Spark property"):
            parse_conf([wrong])


def test_the_jars_are_found_only_where_all_are_whole(tmp_path: Path) -> None:
    conf = {"spark.jars.ivy": str(tmp_path)}
    folder = tmp_path / "jars"
    folder.mkdir()
    parts = [package.split(":") for package in PACKAGES]
    jars = [folder / f"{group}_{artifact}-{version}.jar" for group, artifact, version in parts]
    for jar in jars:
        assert find_jars(PACKAGES, conf) == []
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("META-INF/MANIFEST.MF", "x" * 100)
    assert find_jars(PACKAGES, conf) == jars
    jars[0].write_bytes(jars[0].read_bytes()[:60])
    assert find_jars(PACKAGES, conf) == []


def test_spark_submit_runs_with_this_pyspark_and_this_lockstep() -> None:
    home = find_spark_home()
    assert (home / "bin" / "spark-submit").is_file()
    result = environment({"SPARK_HOME": "/other", "PYTHONPATH": "/mine", "HOME": "/h"}, spark_home=home)
    assert result["SPARK_HOME"] == str(home)
    assert result["HOME"] == "/h"
    assert result["PYTHONPATH"].split(":")[-1] == "/mine"


@pytest.mark.parametrize("encoding", ["ANSI_X3.4-1968", "ISO-8859-1", "US-ASCII"])
def test_spark_starts_in_a_utf_8_locale_whatever_the_locale_of_the_shell(encoding: str) -> None:
    home = find_spark_home()
    posix = {"LC_ALL": "POSIX", "LANG": "C"}
    assert environment(posix, spark_home=home, encoding=encoding)["LC_ALL"] == "C.UTF-8"
    german = {"LC_ALL": "de_DE.UTF-8"}
    assert environment(german, spark_home=home, encoding="UTF-8")["LC_ALL"] == "de_DE.UTF-8"


def test_the_locale_of_this_process_decides() -> None:
    code = (
        "from lockstep.launch.submit import environment, find_spark_home; "
        "print(environment({}, spark_home=find_spark_home()).get('LC_ALL', 'unchanged'))"
    )
    for given, wanted in (("POSIX", "C.UTF-8"), ("C.UTF-8", "unchanged")):
        env = {**os.environ, "LC_ALL": given}
        done = subprocess.run(python(code), capture_output=True, text=True, env=env, timeout=DEADLINE_S)
        assert done.stdout.strip() == wanted, done.stderr


# --- its process ------------------------------------------------------------------------------


def python(code: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code)]


@pytest.mark.parametrize("code", [EXIT_WELL, EXIT_HALTED, EXIT_SUPERSEDED])
def test_the_jobs_exit_code_is_what_it_left_whatever_the_jvm_ends_with(code: int) -> None:
    def command(file: Path) -> list[str]:
        return python(f"open({str(file)!r}, 'w').write('{code}\\n'); raise SystemExit(143)")

    assert launch(command, os.environ) == code


def test_what_the_job_writes_goes_to_stderr_since_stdout_is_for_results() -> None:
    script = PARENT.replace("sys.argv[1]", "'print(1)'")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.stdout == ""
    assert done.stderr.startswith("1\n")


def test_a_usage_error_of_the_job_is_passed_on() -> None:
    assert launch(lambda _: python("raise SystemExit(2)"), os.environ) == 2


def test_a_process_that_ends_before_the_job_began_is_a_failure_that_says_so() -> None:
    with pytest.raises(Failed, match="spark-submit ended with 1 before the job could say"):
        launch(lambda _: python("raise SystemExit(1)"), os.environ)


def test_what_the_guardian_says_is_why_spark_submit_ended() -> None:
    words = 'import os; open(os.environ["LOCKSTEP_LAST_WORDS"], "w").write("it was stopped: start again")'
    with pytest.raises(Failed, match="spark-submit ended with 137: it was stopped: start again"):
        launch(lambda _: python(f"{words}; raise SystemExit(137)"), os.environ)


PARENT = """
import os, signal, sys
from lockstep.launch.job_process import launch
child = sys.argv[1]
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a shell's background; launch restores it
sys.exit(launch(lambda file: [sys.executable, "-u", "-c", child, str(file)], os.environ))
"""

PARENT_ASKED_WHILE_IT_STARTS = """
import os, signal, subprocess, sys
from lockstep.launch import job_process
child, number = sys.argv[1], int(sys.argv[2])

class Starting(subprocess.Popen):
    def __init__(self, command, **options):
        ready, writes = os.pipe()
        super().__init__([*command, str(writes)], pass_fds=[writes], **options)
        os.read(ready, 1)  # the job has its handlers, and nobody has its process yet
        os.kill(os.getpid(), number)

job_process.subprocess.Popen = Starting
sys.exit(job_process.launch(lambda file: [sys.executable, "-u", "-c", child, str(file)], os.environ))
"""

JOB_THAT_LEAVES = """
import os, signal, sys, time
hits = []
signal.signal(signal.SIGINT, lambda *_: hits.append("INT"))
signal.signal(signal.SIGTERM, lambda *_: hits.append("TERM"))
print("ready", os.getpid(), flush=True)
if sys.argv[2:]:
    os.write(int(sys.argv[2]), b"r")
while not hits:
    signal.pause()
time.sleep(0.3)
print(*hits, flush=True)
open(sys.argv[1], "w").write("0")
sys.exit(143)
"""

JOB_THAT_STAYS = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("ready", os.getpid(), flush=True)
while True:
    signal.pause()
"""


def start(child: str) -> tuple[subprocess.Popen[str], int]:
    """`launch` in a process of its own; it and the process id of its ready child."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, child], stderr=subprocess.PIPE, text=True, process_group=0
    )
    assert process.stderr is not None
    word, pid = process.stderr.readline().split()
    assert word == "ready"
    return process, int(pid)


def await_gone(pid: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still there")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_terminal_group_reaches_the_job_exactly_once(number: signal.Signals) -> None:
    process, _ = start(JOB_THAT_LEAVES)
    os.killpg(process.pid, number)
    _, output = process.communicate(timeout=DEADLINE_S)
    assert output.split() == [number.name.removeprefix("SIG")]
    assert process.returncode == EXIT_WELL


@pytest.mark.parametrize(("number", "asked"), [(signal.SIGINT, "INT"), (signal.SIGHUP, "TERM")])
def test_a_signal_that_comes_while_the_job_starts_reaches_it_once_and_as_it_came(
    number: signal.Signals, asked: str
) -> None:
    command = [sys.executable, "-c", PARENT_ASKED_WHILE_IT_STARTS, JOB_THAT_LEAVES, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, process_group=0)
    assert done.stderr.split()[2:] == [asked]
    assert done.returncode == EXIT_WELL


def test_a_closed_terminal_asks_the_job_to_leave() -> None:
    process, _ = start(JOB_THAT_LEAVES)
    process.send_signal(signal.SIGHUP)
    _, output = process.communicate(timeout=DEADLINE_S)
    assert output.split() == ["TERM"]


def test_a_third_signal_ends_a_job_that_does_not_leave() -> None:
    process, child = start(JOB_THAT_STAYS)
    deadline = time.monotonic() + DEADLINE_S
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)  # equal signals that are pending at once count as one
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == EXIT_INTERRUPTED
    await_gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_the_job_is_asked_to_leave_where_its_parent_is_killed() -> None:
    process, child = start(JOB_THAT_LEAVES)
    process.kill()
    _, output = process.communicate(timeout=DEADLINE_S)
    assert output.split() == ["TERM"]
    await_gone(child)
