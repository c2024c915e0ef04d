"""Which files of a listing are the table: by instants, groups, and what was replaced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from table.census import WORST_MAX, FilesCensus
from table.hudi.census.files import ASKED_EVERY, Known, base_files, count
from table.hudi.files.base_file import file_name
from table.hudi.files.log_file import bucket_file_id, log_file_name
from table.store.port import FileSize

SMALL = 100
TOKEN = "1-2-3"


def time(number: int) -> str:
    return f"20260101000000{number:03}"


def group(number: int) -> str:
    return f"10c857e9-0000-0000-0000-{number:012}-0"


def base(number: int, instant: int, size_bytes: int = 10, *, folder: str = "a") -> FileSize:
    return FileSize(folder, file_name(group(number), TOKEN, time(instant)), size_bytes)


def log(number: int, instant: int, size_bytes: int = 1, *, folder: str = "a") -> FileSize:
    return FileSize(folder, log_file_name(bucket_file_id(number), time(instant), TOKEN), size_bytes)


def bucket(number: int, instant: int, size_bytes: int = 10) -> FileSize:
    return FileSize("a", file_name(bucket_file_id(number), TOKEN, time(instant)), size_bytes)


def known(
    *completed: int,
    pending: tuple[int, ...] = (),
    replaced: tuple[tuple[str, int], ...] = (),
    late: int = 0,
) -> Known:
    """Each was completed at once, the one that is `late` after all others."""
    times = {time(one): time(900 if one == late else one) for one in completed}
    return Known(
        completed=times,
        pending=frozenset(map(time, pending)),
        oldest=min(times, default=""),
        replaced=frozenset((folder, group(one)) for folder, one in replaced),
    )


def counted(*files: FileSize, known: Known, files_max: int = 10**6) -> FilesCensus:
    return count(files, known, small_below_bytes=SMALL, files_max=files_max, enough=lambda: False)


def test_of_a_file_group_the_newest_complete_file_counts() -> None:
    found = counted(base(1, 1, 10), base(1, 3, 30), base(1, 2, 20), base(2, 1, 500), known=known(1, 2, 3))
    assert (found.files, found.size_bytes, found.small_files) == (2, 530, 1)
    assert found.is_whole and found.small_below_bytes == SMALL


def test_a_file_of_just_the_limit_is_not_small() -> None:
    assert counted(base(1, 1, SMALL), base(2, 1, SMALL - 1), known=known(1)).small_files == 1


@pytest.mark.parametrize(
    ("instant", "counts"),
    [(4, True), (5, False), (6, False), (2, True), (1, False)],
    ids=["complete", "pending", "rolled back", "archived", "pending, and older than all that is complete"],
)
def test_an_instant_decides_whether_a_file_counts(instant: int, counts: bool) -> None:
    says = known(3, 4, 7, pending=(1, 5))
    assert counted(base(1, instant), known=says).files == int(counts)


def test_a_file_of_a_pending_instant_does_not_hide_the_one_before_it() -> None:
    assert counted(base(1, 1, 11), base(1, 2, 22), known=known(1, pending=(2,))).size_bytes == 11


def test_nothing_is_older_than_a_timeline_without_a_complete_write() -> None:
    assert counted(base(1, 1), known=known(pending=(3,))).files == 0


def test_a_group_that_was_replaced_is_no_more_and_only_in_its_table_partition() -> None:
    says = known(1, 2, replaced=(("a", 1),))
    found = counted(base(1, 1, 7), base(3, 2, 70), base(1, 1, 9, folder="b"), known=says)
    assert (found.files, found.size_bytes, found.table_partitions) == (2, 79, 2)


def test_log_files_are_told_apart_and_count_where_they_are_on_top_of_their_base_file() -> None:
    found = counted(log(1, 1, 5), log(1, 3, 6), bucket(1, 2, 50), known=known(1, 2, 3))
    assert (found.files, found.size_bytes, found.log_files, found.log_bytes) == (1, 50, 1, 6)


def test_a_log_file_that_was_begun_before_a_compaction_and_completed_after_it_is_on_top() -> None:
    assert counted(log(1, 1, 5), bucket(1, 2, 50), known=known(1, 2, late=1)).log_files == 1


def test_a_log_file_whose_instant_is_archived_is_judged_by_when_it_was_begun() -> None:
    assert counted(log(1, 1), bucket(1, 4), known=known(4, 5)).log_files == 0
    assert counted(log(1, 3), bucket(1, 2), known=known(4, 5)).log_files == 1


def test_a_group_without_a_base_file_has_all_its_complete_log_files() -> None:
    found = counted(log(1, 1, 5), log(1, 2, 6), log(1, 3, 7), known=known(1, 2, pending=(3,)))
    assert (found.files, found.log_files, found.log_bytes, found.table_partitions) == (0, 2, 11, 1)
    assert found.worst == ()


def test_what_is_no_data_file_is_passed_over() -> None:
    names = (".hoodie_partition_metadata", "notes.parquet", "x.log", "_SUCCESS", ".x.log.1", "a\nb.parquet")
    assert counted(*(FileSize("a", name, 9) for name in names), known=known(1)).table_partitions == 0


def test_a_table_without_partitions_is_one_of_no_name() -> None:
    (worst,) = counted(base(1, 1, folder=""), known=known(1)).worst
    assert (worst.path, worst.files, worst.small_files) == ("", 1, 1)


def test_the_table_partitions_with_the_most_small_files_are_named() -> None:
    files = [base(10 * day + one, 1, folder=f"{day:02}") for day in range(20) for one in range(day % 13)]
    found = counted(*files, known=known(1))
    assert len(found.worst) == WORST_MAX
    small = [one.small_files for one in found.worst]
    assert small == sorted(small, reverse=True) and small[0] == 12
    assert found.small_files == sum(day % 13 for day in range(20)) and found.table_partitions == 18


def test_no_more_is_asked_for_than_may_be_and_the_figures_are_a_least() -> None:
    asked: list[int] = []

    def listing() -> Iterator[FileSize]:
        for number in range(10**9):
            asked.append(number)
            yield base(number, 1, folder=f"{number // 10}")

    found = count(listing(), known(1), small_below_bytes=SMALL, files_max=2_500, enough=lambda: False)
    assert (found.files, found.is_whole, len(asked)) == (2_500, False, 2_501)
    found = counted(*(base(number, 1) for number in range(5)), known=known(1), files_max=5)
    assert found.files == 5 and found.is_whole


def test_once_there_is_enough_the_listing_is_left() -> None:
    seen: list[int] = []

    def listing() -> Iterator[FileSize]:
        for number in range(10**9):
            seen.append(number)
            yield base(number, 1)

    found = count(
        listing(), known(1), small_below_bytes=SMALL, files_max=10**9, enough=lambda: len(seen) > 3_000
    )
    assert (found.files, found.is_whole) == (3 * ASKED_EVERY, False)


def test_what_each_file_group_holds_now_is_listed_by_name_and_said_to_be_all_or_not() -> None:
    there = [base(1, 1, 10), base(1, 2, 20), base(2, 1, 5), log(9, 1), base(3, 7, 8)]
    stated = known(1, 2, replaced=(("a", 2),))
    wanted = {"below_bytes": 100, "enough": lambda: False}
    found, is_whole = base_files(there, stated, files_max=10, **wanted)
    assert (found, is_whole) == ([("a", group(1), 20)], True), "one is replaced, one of an open instant"
    assert base_files(there, stated, files_max=1, **wanted) == ([("a", group(1), 10)], False)
    assert base_files(there, stated, files_max=10, **{**wanted, "below_bytes": 20}) == ([], True)
