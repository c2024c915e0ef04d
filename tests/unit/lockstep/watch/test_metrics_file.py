"""Metrics as a file: whole or not at all, gone after an orderly end, left where a run ended otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as read_classic

from lockstep.watch import metrics_file
from lockstep.watch.metric_table import METRICS
from lockstep.watch.metric_values import MetricsSeen
from lockstep.watch.metrics_file import MetricsFile
from lockstep.watch.seen import metrics_seen
from tests.harness import await_that
from tests.watched import HOSTILE, PIPELINE, Said, live, rich, seen


@pytest.fixture(scope="module")
def said() -> Said:
    return rich()


def look_of(said: Said) -> Callable[[], MetricsSeen]:
    found = seen(said)
    return lambda: metrics_seen(found, said.now_ms)


def test_a_file_holds_the_classic_text_and_goes_with_the_run(said: Said, tmp_path: Path) -> None:
    path = tmp_path / "lockstep.prom"
    file = MetricsFile(str(path), look_of(said), period_s=0.01)
    file.start()
    whole = await_that("metrics file", lambda: path.exists() and path.read_text(encoding="utf-8"))
    assert HOSTILE not in whole and len(list(read_classic(whole))) == len(METRICS)
    file.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said_once_and_a_folder_that_comes_is_written_to(
    said: Said, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "missing" / "lockstep.prom"
    file = MetricsFile(str(path), look_of(said), period_s=60)
    for _ in range(3):
        file.write()
    assert [record.message for record in caplog.records] == [
        f"metrics.file {path} cannot be written: No such file or directory. Make its folder, or let the "
        "driver write there; the run goes on without."
    ]
    path.parent.mkdir()
    file.write()
    assert path.exists() and "is written again" in caplog.text


def test_a_file_that_is_left_says_what_was_last(said: Said, tmp_path: Path) -> None:
    path = tmp_path / "lockstep.prom"
    found = seen(said)
    file = MetricsFile(str(path), lambda: metrics_seen(found, said.now_ms), period_s=3_600)
    file.start()
    await_that("metrics file", path.exists)
    assert "lockstep_halted{" in path.read_text(encoding="utf-8")
    found.looked_at_driver(said.now_ms, live(said, halted="offsets passed", mode="HALT"))
    file.leave()
    assert f'lockstep_halted{{pipeline="{PIPELINE}"}} 1.0' in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_is_held_up_beyond_the_end_puts_nothing_back(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_file, "JOIN_S", 0.05)
    path = tmp_path / "lockstep.prom"
    look, looks, goes_on = look_of(said), threading.Event(), threading.Event()

    def held_up() -> MetricsSeen:
        looks.set()
        assert goes_on.wait(20)
        return look()

    file = MetricsFile(str(path), held_up, period_s=3_600)
    file.start()
    assert looks.wait(20)
    file.stop()
    goes_on.set()
    await_that("the end of its thread", lambda: not any(map(is_of_files, threading.enumerate())))
    assert list(tmp_path.iterdir()) == []


def is_of_files(thread: threading.Thread) -> bool:
    return thread.name == "metrics-file"


def test_only_what_this_run_has_written_is_removed(said: Said, tmp_path: Path) -> None:
    path = tmp_path / "lockstep.prom"
    file, newer = (MetricsFile(str(path), look_of(said), period_s=60) for _ in range(2))
    path.write_text("another 1\n", encoding="utf-8")
    MetricsFile(str(path), look_of(said), period_s=60).stop()
    assert path.exists()
    file.write()
    newer.write()
    file.stop()
    assert path.exists(), "which is the newer run's"
    newer.stop()
    assert not path.exists()
