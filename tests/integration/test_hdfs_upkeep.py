"""Small files that are copied together and table partitions that go out of the table, on HDFS: as in S3."""

from __future__ import annotations

import pytest

from tests.integration import test_hdfs_table
from tests.integration.test_s3_upkeep import (
    test_what_a_driver_leaves_that_died_as_it_copied_files_is_taken_away_and_done_anew,
    test_what_a_driver_leaves_that_died_as_it_took_table_partitions_out_is_taken_away_and_done_anew,
    test_what_is_past_its_time_goes_out_and_its_files_later,
    there,
)

__all__ = [
    "test_what_a_driver_leaves_that_died_as_it_copied_files_is_taken_away_and_done_anew",
    "test_what_a_driver_leaves_that_died_as_it_took_table_partitions_out_is_taken_away_and_done_anew",
    "test_what_is_past_its_time_goes_out_and_its_files_later",
    "there",
]

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("hdfs")]
place = test_hdfs_table.place
