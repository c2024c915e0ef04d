"""What Hudi is told of the files of a commit, and how long its parts take."""

from __future__ import annotations

import pytest

from control_topic.messages import DataFile
from table.hudi.driver.commit import Timing, _log_stat
from table.hudi.files.log_file import log_file_name

INSTANT = "20261122120000000"


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
