"""The files that a commit names are looked at before it: names, places, sizes, and base files' rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from control_topic.messages import DataFile
from table.errors import Refused
from table.hudi.driver.commit import FOOTERS_READ_MAX, Timing, _log_stat, check_files
from table.hudi.files.log_file import log_file_name
from table.store.local import LocalStore

INSTANT = "20261122120000000"
INSERT = "insert"


def written(folder: Path, number: int, rows: int = 3) -> DataFile:
    """A base file in table partition `d`, as a worker reports it."""
    (folder / "d").mkdir(exist_ok=True)
    file_id = f"{number:032x}-0"
    name = f"{file_id}_0-0-0_{INSTANT}.parquet"
    path = folder / "d" / name
    pq.write_table(pa.table({"a": list(range(rows))}), path)
    return DataFile(
        path=f"d/{name}", body=file_id, table_partition="d", rows=rows, size_bytes=path.stat().st_size
    )


def refusal(folder: Path, files: Sequence[DataFile]) -> str:
    with pytest.raises(Refused) as refused:
        check_files(LocalStore(folder), INSERT, INSTANT, files)
    return str(refused.value)


def test_files_that_are_what_was_reported_pass(tmp_path: Path) -> None:
    check_files(LocalStore(tmp_path), INSERT, INSTANT, [])
    check_files(LocalStore(tmp_path), INSERT, INSTANT, [written(tmp_path, n, rows=n) for n in range(5)])


@pytest.mark.parametrize("rows", [0, 2, 4])
def test_a_base_file_with_other_rows_than_were_reported_is_refused(tmp_path: Path, rows: int) -> None:
    files = [written(tmp_path, 0), replace(written(tmp_path, 1), rows=rows)]
    assert f"{files[1].path} holds 3 rows, {rows} were reported" in refusal(tmp_path, files)


def test_a_base_file_that_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, 0)
    (tmp_path / file.path).write_bytes(b"x" * file.size_bytes)
    assert f"{file.path} is not whole" in refusal(tmp_path, [file])


@pytest.mark.parametrize("mode", [INSERT, "upsert"])
def test_a_file_that_is_not_there_is_refused_whatever_the_table_holds(tmp_path: Path, mode: str) -> None:
    there, gone = written(tmp_path, 0), written(tmp_path, 1)
    if mode == "upsert":
        there, gone = (logged(tmp_path, file) for file in (there, gone))
    check_files(LocalStore(tmp_path), mode, INSTANT, [there, gone])
    (tmp_path / gone.path).unlink()
    with pytest.raises(Refused, match=f"file {gone.path} is not there"):
        check_files(LocalStore(tmp_path), mode, INSTANT, [there, gone])


def test_of_files_that_are_looked_at_side_by_side_the_first_wrong_one_is_told_of(tmp_path: Path) -> None:
    class Objects(LocalStore):
        capabilities = replace(LocalStore.capabilities, remote=True)

    files = [written(tmp_path, number) for number in range(40)]
    check_files(Objects(tmp_path), INSERT, INSTANT, files)
    for wrong in (30, 7):
        files[wrong] = replace(files[wrong], rows=2)
        with pytest.raises(Refused, match=f"file {files[wrong].path} holds 3 rows"):
            check_files(Objects(tmp_path), INSERT, INSTANT, files)


def logged(folder: Path, file: DataFile) -> DataFile:
    """The same file with the name of a log file."""
    path = f"d/.{file.body}_{INSTANT}.log.1_0-0-0"
    (folder / file.path).rename(folder / path)
    return replace(file, path=path)


def test_of_many_files_those_that_are_counted_are_spread_over_all(tmp_path: Path) -> None:
    files = [written(tmp_path, n) for n in range(2 * FOOTERS_READ_MAX)]
    wrong = [replace(file, rows=4) for file in files]
    assert "holds 3 rows, 4 were reported" in refusal(
        tmp_path, files[:FOOTERS_READ_MAX] + wrong[FOOTERS_READ_MAX:]
    )
    shorter = [*files[:-1], replace(files[-1], size_bytes=1)]
    assert "1 were reported" in refusal(tmp_path, shorter)  # sizes of all of them


@pytest.mark.parametrize("version", [1, 2, 10])
def test_of_a_log_file_hudi_is_told_which_of_its_group_it_is(version: int) -> None:
    name = log_file_name("00000003-0", INSTANT, "1-2-3", version)
    file = DataFile(path=f"d/{name}", body="00000003-0", table_partition="d", rows=2, size_bytes=10)
    told = _log_stat(file, INSTANT)
    assert (told["logVersion"], told["logFiles"], told["path"]) == (version, [name], f"d/{name}")


def test_parts_that_are_timed_are_never_more_than_the_whole_and_what_is_of_none_is_in_none() -> None:
    times_s = iter((10.0, 10.0019, 10.5, 10.5039, 11.0))
    timing = Timing(lambda: next(times_s))
    timing.ended("files")
    timing.begins()
    timing.ended("lock")
    timing.ended("write")
    assert timing.took_ms == {"files": 1, "lock": 3, "write": 496}


@pytest.mark.parametrize(
    ("said_ms", "took_ms"),
    [
        (120, {"metadata": 120, "write": 380}),
        (0, {"metadata": 0, "write": 500}),
        (501, {"metadata": 500, "write": 0}),
        (None, {"write": 500}),
    ],
    ids=["apart", "none", "by a clock that runs fast", "not known"],
)
def test_what_another_clock_says_of_a_part_is_taken_out_of_the_one_that_it_was_in(
    said_ms: int | None, took_ms: dict[str, int]
) -> None:
    times_s = iter((10.0, 10.5, 11.0))
    timing = Timing(lambda: next(times_s))
    timing.inside("metadata", said_ms)
    timing.ended("write")
    assert timing.took_ms == took_ms
    assert list(timing.took_ms) == list(took_ms)
    timing.ended("other")
    assert timing.took_ms["other"] == 500
