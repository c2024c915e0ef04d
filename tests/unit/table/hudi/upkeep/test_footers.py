"""The newest value of a field in base files, by their footers."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from table.ages import NOTHING, UNKNOWN
from table.errors import Unavailable
from table.hudi.upkeep.footers import newest_ms
from table.store.local import LocalStore

NAME = "f-0_0-0-0_1.parquet"
DAY_MS = 86_400_000
UTC_US = pa.timestamp("us", tz="UTC")


def said(folder: Path, column: pa.Array, field: str = "ts", **options: Any) -> float:
    """Of a file with this column in row groups of two rows."""
    (folder / "p").mkdir()
    pq.write_table(pa.table({"ts": column}), folder / "p" / NAME, row_group_size=2, **options)
    return newest_ms(LocalStore(folder), "p", [NAME], field, {"ts", "later"})[NAME]


@pytest.mark.parametrize("kind", [UTC_US, pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("ns")])
def test_the_newest_of_all_row_groups_counts_whatever_its_unit(tmp_path: Path, kind: pa.DataType) -> None:
    moments = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 9, 3, 4)]
    found = said(
        tmp_path, pa.array([one.replace(tzinfo=None) for one in moments], pa.timestamp("us")).cast(kind)
    )
    assert found == moments[2].timestamp() * 1_000


@pytest.mark.parametrize(("us", "ms"), [(1, 1), (1_000, 1), (1_001, 2), (0, 0), (-1, 0), (-1_000, -1)])
def test_a_part_of_a_millisecond_is_never_older_than_it_is(tmp_path: Path, us: int, ms: int) -> None:
    assert said(tmp_path, pa.array([us], UTC_US)) == ms


@pytest.mark.parametrize("us", [2**63 - 1, -(2**63)])
def test_moments_that_no_calendar_has_are_numbers_as_well(tmp_path: Path, us: int) -> None:
    assert said(tmp_path, pa.array([us], UTC_US)) == -(-us // 1_000)


def test_a_date_is_over_with_its_day(tmp_path: Path) -> None:
    assert said(tmp_path, pa.array([date(1970, 1, 2), date(1970, 1, 1)])) == 2 * DAY_MS


@pytest.mark.parametrize(
    ("values", "ms"),
    [
        ([None, None, None], NOTHING),
        ([None, None, 5_000, None], 5),
        ([5_000, None, None, None], 5),
        ([], NOTHING),
    ],
)
def test_nulls_say_nothing_wherever_they_are(tmp_path: Path, values: list[int | None], ms: float) -> None:
    assert said(tmp_path, pa.array(values, UTC_US)) == ms


def test_a_file_that_is_older_than_the_column_holds_nothing_of_it(tmp_path: Path) -> None:
    assert said(tmp_path, pa.array([1], UTC_US), "later") == NOTHING


@pytest.mark.parametrize("field", ["TS", "at"])
def test_a_file_with_a_column_that_the_table_has_no_more_may_hold_it_under_a_former_name(
    tmp_path: Path, field: str
) -> None:
    """It was renamed, or is in other letters: its rows may be young."""
    (tmp_path / "p").mkdir()
    columns = {"_hoodie_commit_time": ["1"], "id": [1], "ts": pa.array([1], UTC_US)}
    pq.write_table(pa.table(columns), tmp_path / "p" / NAME)
    there = {"id", field}
    assert newest_ms(LocalStore(tmp_path), "p", [NAME], field, there) == {NAME: UNKNOWN}
    assert newest_ms(LocalStore(tmp_path), "p", [NAME], field, {*there, "ts"}) == {NAME: NOTHING}


@pytest.mark.parametrize(
    ("column", "options"),
    [
        (pa.array([1], UTC_US), {"write_statistics": False}),
        (pa.array([1], UTC_US), {"use_deprecated_int96_timestamps": True}),
        (pa.array([1]), {}),
        (pa.array(["2026-01-01"]), {}),
        (pa.array([{"at": 1}]), {}),
    ],
)
def test_what_says_no_time_says_that_it_does_not_know(
    tmp_path: Path, column: pa.Array, options: dict[str, Any]
) -> None:
    assert said(tmp_path, column, **options) == UNKNOWN


def test_a_file_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"the footer of .*{NAME} could not be read"):
        newest_ms(LocalStore(tmp_path), "p", [NAME], "ts", {"ts"})
