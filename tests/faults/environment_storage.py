"""The storage under the table does something: it is full, read-only, locked, or parts of it are gone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from tests.faults.acts import CALM_PER_SECOND, RECORDS, goes_on, halts, lasting, plain, runs_well
from tests.faults.scenario import ON_FILES, Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.harness import await_that
from tests.locked_table import locked
from tests.small_disk import filled, mount, small_disk, unmount

LEFT_BYTES = 160 * 1024
"""Enough for some instants, and less than one transaction's files."""
BUDGET_S = 600
"""For so long an outage is waited out."""
NO_SPACE = "No space left on device"


# --- a file system of the test's own ----------------------------------------------------------------


@contextmanager
def on_small_disk(stage: Stage) -> Iterator[Path]:
    """The table on a tmpfs of its own; unmounted when nothing of the pipeline runs any more."""
    with small_disk(stage.pipeline.table):
        try:
            yield stage.pipeline.table
        finally:
            stage.close()


def full(stage: Stage, *, left_bytes: int = 0) -> AbstractContextManager[None]:
    """So much is left on the disk, by default not one byte, until the ballast goes."""
    return filled(stage.pipeline.table, left_bytes=left_bytes)


@contextmanager
def read_only(stage: Stage) -> Iterator[None]:
    """Remounted; a mount with files open for writing refuses that for a moment, so it is asked again."""
    table = stage.pipeline.table

    def remounted() -> bool:
        return subprocess.run(["mount", "-o", "remount,ro", str(table)], check=False).returncode == 0

    await_that("moment in which the file system can be made read-only", remounted)
    try:
        yield
    finally:
        mount("-o", "remount,rw", str(table))


# --- parts of the table are gone --------------------------------------------------------------------


@contextmanager
def behind_a_mount(stage: Stage) -> Iterator[Path]:
    """The table on a file system of its own, whose files stay when it is unmounted."""
    table, kept = stage.pipeline.table, _kept(stage)
    for folder in (table, kept):
        folder.mkdir(parents=True)
    mount("--bind", str(kept), str(table))
    try:
        yield table
    finally:
        stage.close()
        unmount(table)


def _kept(stage: Stage) -> Path:
    return stage.pipeline.folder / "kept"


@contextmanager
def unmounted(stage: Stage) -> Iterator[None]:
    unmount(stage.pipeline.table)
    yield
    mount("--bind", str(_kept(stage)), str(stage.pipeline.table))


@contextmanager
def deleted(stage: Stage) -> Iterator[None]:
    """The table's folder goes, and nothing is made in its place."""
    table = stage.pipeline.table
    _delete(table)
    yield
    assert not (table / ".hoodie" / "hoodie.properties").exists()
    _delete(table)


def _delete(folder: Path) -> None:
    """Also what is written while it is being deleted."""

    def gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    await_that(f"end of {folder}", gone)


def _data_file_deleted(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    pipeline.produce(RECORDS)
    runs_well(pipeline)
    pipeline.assert_exact(RECORDS)
    file = sorted(pipeline.table.glob("2026-*/*.parquet"))[0]
    file.unlink()
    pipeline.produce(RECORDS)
    plain(runs_well(pipeline))
    done = pipeline.command("verify")
    assert done.returncode == 4, done.stdout + done.stderr
    verdict = pipeline.verify()
    assert verdict["exact"] is False, verdict
    assert 0 < verdict["missing"] < RECORDS, verdict
    assert file.name in done.stdout + done.stderr, done.stdout + done.stderr
    return Outcome(notes={"rows_missing": verdict["missing"], "verify_exit_code": done.returncode})


def _table_locked(stage: Stage) -> AbstractContextManager[None]:
    return locked(stage.pipeline.table)


put(
    "Storage",
    Scenario(
        "disk_full_for_30_s",
        "the disk under the table is full for 30 s",
        "nothing half-written is ever read; once there is room, commits go on by themselves, at the "
        "latest when a lock file that found no room has expired (one minute)",
        partial(goes_on, fault=lasting(30, full), said=(NO_SPACE,), on=on_small_disk),
        80,
    ),
    Scenario(
        "disk_full_for_data_files",
        "for 90 s the disk under the table has room for Hudi's timeline and none for data files",
        "workers whose files find no room are replaced, which is waited out as the storage's fault; "
        "once there is room, commits go on by themselves",
        partial(
            goes_on,
            fault=lasting(90, partial(full, left_bytes=LEFT_BYTES)),
            said=(NO_SPACE,),
            on=on_small_disk,
            per_second=8 * CALM_PER_SECOND,
        ),
        60,
    ),
    Scenario(
        "disk_full_for_good",
        "the disk under the table is full and stays so",
        "the run halts and says that no space is left; with room again, the next run loses nothing",
        partial(halts, during=full, said=(NO_SPACE,), deadline_s=BUDGET_S + 120, on=on_small_disk),
    ),
    Scenario(
        "table_read_only_for_30_s",
        "the table's file system is read-only for 30 s",
        "once it can be written again, commits go on by themselves",
        partial(goes_on, fault=lasting(30, read_only), said=("Read-only file system",), on=on_small_disk),
        40,
    ),
    Scenario(
        "table_lock_held_for_30_s",
        "somebody else holds the table lock for 30 s",
        "the commit waits, and goes on by itself when the lock is free",
        partial(goes_on, fault=lasting(30, _table_locked)),
        30,
    ),
    Scenario(
        "table_lock_held_for_good",
        "somebody else holds the table lock for longer than an outage is waited out",
        "the run halts and says that the lock could not be had; with the lock free, the next run loses "
        "nothing",
        partial(
            halts,
            during=_table_locked,
            said=("an outage is waited out for 600 s", "lock"),
            deadline_s=BUDGET_S + 240,
            per_second=CALM_PER_SECOND // 4,
        ),
    ),
    Scenario(
        "table_unmounted_for_30_s",
        "the table's file system is unmounted for 30 s under the running pipeline",
        "it is waited out, nothing is written beside it that counts, and commits go on by themselves",
        partial(goes_on, fault=lasting(30, unmounted), on=behind_a_mount),
        40,
    ),
    Scenario(
        "table_folder_deleted",
        "the table's folder is deleted under the running pipeline",
        "nothing is made in its place; the run waits as for storage that is away, then halts and names "
        "the folder; the next run begins a new table from the source's starting offsets",
        partial(
            halts,
            during=deleted,
            said=("its timeline cannot be read", "{table}"),
            deadline_s=BUDGET_S + 240,
            per_second=CALM_PER_SECOND // 4,
        ),
    ),
    Scenario(
        "data_file_deleted",
        "somebody deletes a data file of the table by hand",
        "commits go on, and verify says that the table is not exact, and which offsets are missing",
        _data_file_deleted,
    ),
    stores=ON_FILES,
)
