"""Spark comes to an end in the driver whatever it waits for, under a real spark-submit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.launch.submit import find_spark_home

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 180
ALWAYS_FORKED = "spark.python.worker.reuse=false"
"""As a run has it: a worker is never given a second task."""
JOB = f"""
import os, sys, threading, time
sys.path.insert(0, {str(ROOT)!r})
import psutil
from pyspark.sql import SparkSession
from lockstep.driver import spark_end
spark_end.STOP_S = 5.0
spark = SparkSession.builder.getOrCreate()
def job():
    return spark.sparkContext.parallelize([1], 1).map(lambda one: one + 1).collect()
assert job() == [2]
"""
FROZEN = """
spark_end.STOP_S = 20.0  # then its forker is killed, and Spark has this time again
jvm = psutil.Process(os.getppid())
def command(one):
    try:
        return " ".join(one.cmdline())
    except psutil.Error:  # the JVM's short-lived children end at any time
        return ""
[forker] = [one for one in jvm.children() if "pyspark.daemon" in command(one)]
forker.suspend()
def asked():
    try:
        job()
    except Exception:
        pass  # it is cancelled with the rest
waiting = threading.Thread(target=asked, daemon=True)
waiting.start()
tracker = spark.sparkContext.statusTracker()
def runs():
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    return any(stage is not None and stage.numActiveTasks for stage in stages)
try:
    deadline = time.monotonic() + 60
    while not runs():
        assert time.monotonic() < deadline, "its task has ended, or was never begun"
        time.sleep(0.05)
except BaseException:
    forker.kill()
    raise
print("stopped:", spark_end.stop_spark(spark), "forker is gone:", not forker.is_running(), flush=True)
"""
STUCK = """
class Stuck:
    sparkContext = spark.sparkContext
    def stop(self):
        threading.Event().wait()
print("stopped:", spark_end.stop_spark(Stuck()), flush=True)
spark_end.end_jvm(Stuck(), 3)
os._exit(3)
"""

STANDS_STILL = """
import signal
jvm = spark_end.jvm_pid(spark)
print("says so before", flush=True)
spark_end.LastResort(jvm, lambda code: open(os.environ["LEFT"], "w").write(str(code)), after_s=2.0).arm(3)
os.kill(jvm, signal.SIGSTOP)
spark.stop()  # as it would: for ever
"""

SLOTS = """
from types import SimpleNamespace
from pyspark import inheritable_thread_target
from lockstep.driver.slots import Slot
context = spark.sparkContext
def slot(number):
    spec = SimpleNamespace(pipeline="p", run="r")
    return Slot(context, spec, number, log_level="INFO", died=lambda ended: None)
def occupy(one):
    context.setJobGroup(one.group, "sleeps", interruptOnCancel=True)
    context.parallelize([1], 1).map(lambda _: time.sleep(600)).collect()
def seen(wanted):
    deadline = time.monotonic() + 60
    while (found := [one.waits() for one in slots]) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
slots = [slot(number) for number in range(3)]
seen([True, True, True])
for one, wanted in zip(slots, ([False, True, True], [False, False, True], [False, False, True])):
    threading.Thread(target=inheritable_thread_target(lambda one=one: occupy(one)), daemon=True).start()
    seen(wanted)
time.sleep(1)
seen([False, False, True])
slots[0].cancel()
seen([True, False, False])
print("seen", flush=True)
context.cancelAllJobs()
"""


def submit(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    script = folder / "job.py"
    script.write_text(JOB + body, encoding="utf-8")
    return subprocess.run(
        [
            f"{find_spark_home()}/bin/spark-submit",
            "--master",
            "local[2]",
            "--conf",
            ALWAYS_FORKED,
            str(script),
        ],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "LEFT": str(folder / "left")},
    )


def test_spark_stops_though_what_forks_its_python_workers_is_frozen_at_a_task(tmp_path: Path) -> None:
    done = submit(tmp_path, FROZEN)
    assert "stopped: True forker is gone: True" in done.stdout, done.stdout + done.stderr[-4_000:]
    assert done.returncode == 0, done.stderr[-4_000:]


def test_where_spark_does_not_stop_its_jvm_ends_at_once_with_the_runs_exit_code(tmp_path: Path) -> None:
    done = submit(tmp_path, STUCK)
    assert "stopped: False" in done.stdout, done.stdout + done.stderr[-4_000:]
    assert done.returncode == 3, done.stderr[-4_000:]


def test_a_run_whose_jvm_stands_still_ends_all_the_same_and_leaves_its_exit_code(tmp_path: Path) -> None:
    done = submit(tmp_path, STANDS_STILL)
    assert done.returncode == -signal.SIGKILL, done.stderr[-4_000:]
    assert (tmp_path / "left").read_text() == "3"


def test_a_slots_task_that_waits_for_a_spark_slot_is_told_from_one_that_runs(tmp_path: Path) -> None:
    """Of two Spark slots two slots have both, until one of their tasks is killed."""
    done = submit(tmp_path, SLOTS)
    assert "seen" in done.stdout, done.stdout + done.stderr[-4_000:]
