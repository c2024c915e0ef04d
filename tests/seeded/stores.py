"""Tables in object stores: what decides where no file system does, and connections that nobody gives back."""

from __future__ import annotations

from tests.seeded.base import Bug, always, of
from tests.seeded.clocks import nothing
from tests.seeded.holes import Hole

FENCE = "tests/unit/table/hudi/driver/test_fence.py"
LEASE = "tests/unit/table/hudi/driver/test_lease.py"
S3_TABLE = "tests/integration/test_s3_table.py"
S3_CONNECTOR = "tests/integration/test_s3_connector.py"


HADOOPS_OWN = "org.apache.hadoop.fs.s3a.S3AFileSystem"

BUGS = (
    Bug(
        "a_lease_is_trusted_without_a_fence",
        "Who holds the lease completes and rolls back, and creates nothing on condition before.",
        Hole.LOCK,
        {"table.hudi.driver.fence:Fence._create": always(True)},
        of(
            FENCE,
            "test_a_commit_that_comes_after_the_rollback_is_refused_and_may_not_be_tried_again",
            "test_a_rollback_waits_for_a_driver_that_may_be_completing_the_instant",
        ),
    ),
    Bug(
        "a_lease_is_taken_by_any_clock",
        "The lease is taken by a clock that is far from those of its other holders.",
        Hole.LOCK,
        {"table.hudi.driver.lease:LeaseClock.check": nothing},
        of(LEASE, "test_a_clock_that_is_far_from_the_stores_takes_no_lease"),
    ),
    Bug(
        "a_completion_that_lands_late_stays",
        "That a commit was overruled is looked up by nobody, and its completion stays on the timeline.",
        Hole.LOCK,
        {"table.hudi.driver.fence:Fence.overruled": always([])},
        of(S3_TABLE, "test_a_completion_that_lands_after_its_rollback_is_taken_off_the_timeline"),
    ),
    Bug(
        "files_that_hudi_leaves_open_keep_their_connections",
        "The driver's JVM reads S3 by Hadoop's own connector, from whose pool Hudi takes without end.",
        Hole.STANDSTILL,
        {"table.hudi.driver.reach:connector": always(HADOOPS_OWN)},
        of(
            S3_CONNECTOR,
            "test_hudi_reads_a_table_with_many_log_blocks_again_and_again_by_few_connections",
        ),
        raises={"py4j.protocol.Py4JJavaError": "org.apache.hudi.exception.HoodieException"},
    ),
)
