"""The storage under the table does something: it is full, read-only, locked, or parts of it are gone."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.acts import (
    CALM_PER_SECOND,
    assert_said,
    ends_with,
    hold,
    plain,
    proved,
    survive,
    warnings,
)
from tests.faults.commits import wall_ms
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import Stage
from tests.harness import Run, await_that

GROUP = "Storage"
TMPFS_BYTES = 64 * 1024 * 1024
LEFT_BYTES = 160 * 1024
"""Enough for some instants, and less than one transaction's files."""
RECORDS = 4_000
LOCK_TOUCH_S = 5.0
BUDGET_S = 600
"""For so long an outage is waited out."""


# --- a file system of the test's own ----------------------------------------------------------------


class NoMount(RuntimeError):
    """The test may not mount: run it as root in a place that lets it."""


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoMount(f"mount {' '.join(arguments)}: {done.stderr.strip()}: this scenario needs root")


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def small_disk(stage: Stage) -> Iterator[Path]:
    """The table on a tmpfs of its own; unmounted when nothing of the pipeline runs any more."""
    table = stage.pipeline.table
    table.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "lockstep-fault", str(table))
    try:
        yield table
    finally:
        stage.close()
        _unmount(table)


@contextmanager
def full(table: Path, *, left_bytes: int = 0) -> Iterator[None]:
    """So much is left on the disk, by default not one byte, until the ballast goes."""
    ballast = table / ".ballast"
    with ballast.open("wb", buffering=0) as file:
        chunk = bytes(1024 * 1024)
        while chunk:
            try:
                file.write(chunk)
            except OSError:
                chunk = chunk[: len(chunk) // 2]
        file.truncate(max(0, os.fstat(file.fileno()).st_size - left_bytes))
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def read_only(table: Path) -> Iterator[None]:
    """Remounted; a mount with files open for writing refuses that for a moment, so it is asked again."""

    def remounted() -> bool:
        return subprocess.run(["mount", "-o", "remount,ro", str(table)], check=False).returncode == 0

    await_that("moment in which the file system can be made read-only", remounted)
    try:
        yield
    finally:
        _mount("-o", "remount,rw", str(table))


# --- full, read-only --------------------------------------------------------------------------------


@scenario(
    GROUP,
    fault="the disk under the table is full for 30 s",
    expected="nothing half-written is ever read; once there is room, commits go on by themselves, at the "
    "latest when a lock file that found no room has expired (one minute)",
    limit_s=80,
)
def disk_full_for_30_s(stage: Stage) -> Outcome:
    with small_disk(stage) as table:

        def fault() -> None:
            with full(table):
                hold(30)

        outcome = survive(stage, fault)
        assert_said(stage.current, ["No space left on device"])
        return outcome


@scenario(
    GROUP,
    fault="for 90 s the disk under the table has room for Hudi's timeline and none for data files",
    expected="workers whose files find no room are replaced, which is waited out as the storage's fault; "
    "once there is room, commits go on by themselves",
    limit_s=60,
)
def disk_full_for_data_files(stage: Stage) -> Outcome:
    with small_disk(stage) as table:

        def fault() -> None:
            with full(table, left_bytes=LEFT_BYTES):
                hold(90)

        outcome = survive(stage, fault, per_second=8 * CALM_PER_SECOND)
        assert_said(stage.current, ["No space left on device"])
        return outcome


@scenario(
    GROUP,
    fault="the disk under the table is full and stays so",
    expected="the run halts and says that no space is left; with room again, the next run loses nothing",
)
def disk_full_for_good(stage: Stage) -> Outcome:
    with small_disk(stage) as table:
        run = stage.start(per_second=CALM_PER_SECOND)
        began_ms = wall_ms()
        with full(table):
            ends_with(run, 3, "No space left on device", deadline_s=BUDGET_S + 120)
        halted_s = (wall_ms() - began_ms) / 1_000
        again_ms = wall_ms()
        again = stage.restart()
        recovery_s = stage.recovery_s(again_ms)
        return proved(
            stage, again, recovery_s=recovery_s, halted_after_s=round(halted_s), warnings_before=warnings(run)
        )


@scenario(
    GROUP,
    fault="the table's file system is read-only for 30 s",
    expected="once it can be written again, commits go on by themselves",
    limit_s=40,
)
def table_read_only_for_30_s(stage: Stage) -> Outcome:
    with small_disk(stage) as table:

        def fault() -> None:
            with read_only(table):
                hold(30)

        outcome = survive(stage, fault)
        assert_said(stage.current, ["Read-only file system"])
        return outcome


# --- the lock ---------------------------------------------------------------------------------------


@contextmanager
def locked(table: Path) -> Iterator[None]:
    """Somebody else holds Hudi's table lock and is alive: the lock file is kept from expiring."""
    lock = table / ".hoodie" / ".locks" / "lock"
    lock = lock if lock.parent.is_dir() else table / ".hoodie" / "lock"
    released = threading.Event()

    def take() -> bool:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        return True

    def keep() -> None:
        while not released.wait(LOCK_TOUCH_S):
            os.utime(lock)

    await_that("moment in which the table lock is free", take)
    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        released.set()
        keeper.join(30)
        lock.unlink()


@scenario(
    GROUP,
    fault="somebody else holds the table lock for 30 s",
    expected="the commit waits, and goes on by itself when the lock is free",
    limit_s=30,
)
def table_lock_held_for_30_s(stage: Stage) -> Outcome:
    def fault() -> None:
        with locked(stage.pipeline.table):
            hold(30)

    return survive(stage, fault)


@scenario(
    GROUP,
    fault="somebody else holds the table lock for longer than an outage is waited out",
    expected="the run halts and says that the lock could not be had; with the lock free, the next run loses "
    "nothing",
)
def table_lock_held_for_good(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND // 4)
    began_ms = wall_ms()
    with locked(stage.pipeline.table):
        ends_with(run, 3, "an outage is waited out for 600 s", "lock", deadline_s=BUDGET_S + 240)
    halted_s = (wall_ms() - began_ms) / 1_000
    again_ms = wall_ms()
    again = stage.restart()
    recovery_s = stage.recovery_s(again_ms)
    return proved(
        stage, again, recovery_s=recovery_s, halted_after_s=round(halted_s), warnings_before=warnings(run)
    )


# --- parts of the table are gone --------------------------------------------------------------------


@scenario(
    GROUP,
    fault="the table's file system is unmounted for 30 s under the running pipeline",
    expected="it is waited out, nothing is written beside it that counts, and commits go on by themselves",
    limit_s=40,
)
def table_unmounted_for_30_s(stage: Stage) -> Outcome:
    table, kept = stage.pipeline.table, stage.pipeline.folder / "kept"
    for folder in (table, kept):
        folder.mkdir(parents=True)
    _mount("--bind", str(kept), str(table))

    def fault() -> None:
        _unmount(table)
        hold(30)
        _mount("--bind", str(kept), str(table))

    try:
        return survive(stage, fault)
    finally:
        stage.close()
        _unmount(table)


@scenario(
    GROUP,
    fault="the table's folder is deleted under the running pipeline",
    expected="nothing is made in its place; the run waits as for storage that is away, then halts and names "
    "the folder; the next run begins a new table from the source's starting offsets",
)
def table_folder_deleted(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND // 4)
    began_ms = wall_ms()
    _delete(stage.pipeline.table)
    ends_with(run, 3, "its timeline cannot be read", str(stage.pipeline.table), deadline_s=BUDGET_S + 240)
    halted_s = (wall_ms() - began_ms) / 1_000
    assert not (stage.pipeline.table / ".hoodie" / "hoodie.properties").exists()
    _delete(stage.pipeline.table)
    again_ms = wall_ms()
    again = stage.restart()
    recovery_s = stage.recovery_s(again_ms)
    return proved(
        stage, again, recovery_s=recovery_s, halted_after_s=round(halted_s), warnings_before=warnings(run)
    )


def _delete(folder: Path) -> None:
    """Also what is written while it is being deleted."""

    def gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    await_that(f"end of {folder}", gone)


@scenario(
    GROUP,
    fault="somebody deletes a data file of the table by hand",
    expected="commits go on, and verify says that the table is not exact, and which offsets are missing",
)
def data_file_deleted(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(RECORDS)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(RECORDS)
    file = sorted(pipeline.table.glob("2026-*/*.parquet"))[0]
    file.unlink()
    pipeline.produce(RECORDS)
    run: Run = pipeline.run_to_end()
    assert run.process.returncode == 0
    plain(run)
    done = pipeline.command("verify")
    assert done.returncode == 4, done.stdout + done.stderr
    verdict = pipeline.verify()
    assert verdict["exact"] is False, verdict
    assert 0 < verdict["missing"] < RECORDS, verdict
    assert file.name in done.stdout + done.stderr, done.stdout + done.stderr
    return Outcome(notes={"rows_missing": verdict["missing"], "verify_exit_code": done.returncode})
