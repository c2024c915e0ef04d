"""The files that a commit names are looked at before it: names, places, sizes, and base files' rows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from control_topic.messages import DataFile
from table.errors import Refused, Unavailable
from table.hudi.driver import looking as module
from table.hudi.driver.looking import FOOTERS_READ_MAX, LOOKS_AT_ONCE, check_files, looking
from table.store.local import LocalStore

INSTANT = "20261122120000000"
INSERT = "insert"


class Objects(LocalStore):
    """Of which each look is a request, and is answered once `answering` is set."""

    capabilities = replace(LocalStore.capabilities, remote=True)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked, self.answering = threading.Event(), threading.Event()
        self.answering.set()

    def source(self, path: str) -> Any:
        self.asked.set()
        assert self.answering.wait(30)
        return super().source(path)


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


def test_a_look_at_few_files_on_a_server_is_begun_at_once_and_waited_for_under_the_lock_alone(
    tmp_path: Path,
) -> None:
    store, files = Objects(tmp_path), [replace(written(tmp_path, 0), rows=4)]
    store.answering.clear()
    with looking(store, INSERT, INSTANT, files) as look:
        assert store.asked.wait(30)
        look.before_lock()
        store.answering.set()
        with pytest.raises(Refused, match="holds 3 rows, 4 were reported"):
            look.under_lock()


@pytest.mark.parametrize(("remote", "count"), [(False, 1), (True, LOOKS_AT_ONCE + 1)])
def test_a_look_that_may_take_long_or_is_no_request_has_ended_before_the_lock_is_asked_for(
    tmp_path: Path, remote: bool, count: int
) -> None:
    store = Objects(tmp_path) if remote else LocalStore(tmp_path)
    files = [replace(written(tmp_path, number), rows=4) for number in range(count)]
    with (
        looking(store, INSERT, INSTANT, files) as look,
        pytest.raises(Refused, match="holds 3 rows, 4 were reported"),
    ):
        look.before_lock()


def test_the_lock_waits_so_long_for_a_look_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWERED_S", 0.01)
    store, files = Objects(tmp_path), [written(tmp_path, 0)]
    store.answering.clear()
    with looking(store, INSERT, INSTANT, files) as look:
        look.before_lock()
        with pytest.raises(Unavailable, match=f"instant {INSTANT}: its files could not be looked at within"):
            look.under_lock()
    store.answering.set()


def test_files_that_are_what_was_reported_let_the_commit_go_on(tmp_path: Path) -> None:
    for store in (Objects(tmp_path), LocalStore(tmp_path)):
        with looking(store, INSERT, INSTANT, [written(tmp_path, 0), written(tmp_path, 1)]) as look:
            look.before_lock()
            look.under_lock()
