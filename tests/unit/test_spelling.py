"""A line of a log does not grow with what it is about."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from control_topic.spelling import some
from participant.files import Files


def test_a_short_list_is_spelled_out_and_of_a_long_one_the_beginning_and_a_number() -> None:
    assert some([]) == ""
    assert some([1, 2]) == "1, 2"
    assert some(range(6)) == "0, 1, 2, 3, 4, 5"
    assert some(range(5_006)) == "0, 1, 2, 3, 4, 5 and 5,000 more"


def test_files_that_cannot_be_removed_are_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = Files("0001")
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        files.created.append(folder)  # a folder cannot be unlinked
    with caplog.at_level(logging.WARNING):
        files.remove()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        f"50 files of instant 0001 were not removed, which the rollback will do; the first: {tmp_path}/0"
    )
