"""Tables on servers: what decides where no file system does, connections that nobody gives back, nodes that
died.
"""

from __future__ import annotations

import asyncio
import errno
import sys
from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.clocks import nothing
from tests.seeded.holes import Hole

FENCE = "tests/unit/table/hudi/driver/test_fence.py"
LEASE = "tests/unit/table/hudi/driver/test_lease.py"
S3_TABLE = "tests/integration/test_s3_table.py"
HDFS = "tests/conformance/test_hdfs.py"
AZURE = "tests/conformance/test_azure_objects.py"
DRAFTS = "tests/unit/table/hudi/upkeep/test_drafts.py"
S3_CONNECTOR = "tests/integration/test_s3_connector.py"


STORE = "tests/conformance/test_store.py"
LOOP = "tests/unit/table/store/hdfs/test_loop.py"
WRITING = "tests/unit/table/store/hdfs/test_writing.py"
PROCESS_END = "tests/unit/lockstep/launch/test_process_end.py"


def _recovers(_right: Any) -> Any:
    async def recover(_writer: Any, client: Any, full: str, _size_bytes: int) -> bool:
        return bool(await client.recover_lease(full))

    return recover


def _of_no_class(_right: Any) -> Any:
    def refused(said: str, place: str) -> OSError:
        return OSError(errno.EIO, f"HDFS does not do it: {said}", place)

    return refused


def _uncounted(_right: Any) -> Any:
    return asyncio.SelectorEventLoop.call_soon_threadsafe


def _if_it_looks_expired(_right: Any) -> Any:
    def keep_alive(session: Any, instant: str) -> None:
        heart = session.client.getHeartbeatClient()
        if heart.getHeartbeat(instant) is not None and heart.isHeartbeatExpired(instant):
            heart.stop(instant)
        heart.start(instant)

    return keep_alive


def _at_once(right: Any) -> Any:
    def sink(store: Any, path: str, *, before: Any = None) -> Any:
        return right(store, path)

    return sink


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
        "a_request_that_lands_late_stays",
        "A request that a store carries out after the rollback of its instant is never removed.",
        Hole.LOCK,
        {"table.hudi.driver.rollback:_requested_late": always([])},
        of(
            S3_TABLE,
            "test_a_request_that_lands_after_its_rollback_is_taken_off_the_timeline_and_its_files_are_swept",
        ),
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
    Bug(
        "a_data_node_that_died_fails_whoever_is_sent_to_it",
        "On HDFS a file is begun once, whatever data nodes the name node still takes for alive.",
        Hole.STANDSTILL,
        {"table.store.hdfs.writing:ATTEMPTS_MAX": lambda _right: 1},
        of(
            HDFS,
            "test_a_data_node_that_has_died_keeps_nobody_from_writing_files_though_the_name_node_still_names_it",
        ),
        raises={
            "builtins.ConnectionError": "HDFS cannot be reached",
            "table.store.port.OutcomeUnknown": "HDFS did not answer",  # of the one attempt that there is
        },
    ),
    Bug(
        "python_finalizes_over_native_calls",
        "A process lets Python finalize, which aborts it where a client in Rust is still being asked.",
        Hole.STANDSTILL,
        {"lockstep.launch.process_end:end_process": lambda _right: lambda code: sys.exit(code)},
        of(
            PROCESS_END,
            "test_a_process_keeps_its_exit_code_though_a_native_call_is_outstanding_as_it_ends",
            "test_no_command_lets_python_finalize",
        ),
    ),
    Bug(
        "a_script_ends_over_calls_of_hdfs",
        "A script that ends waits for no call of HDFS: one that returns while Python finalizes aborts it.",
        Hole.STANDSTILL,
        {"table.store.outstanding:OutstandingCalls.close": always(True)},
        of(
            "tests/unit/table/store/test_outstanding.py",
            "test_a_script_keeps_its_exit_code_though_a_call_that_it_gave_up_returns_as_it_ends",
        ),
    ),
    Bug(
        "a_client_of_hdfs_ends_where_it_is_collected",
        "A client of HDFS ends in the thread that collects it, and panics in one of another client.",
        Hole.STANDSTILL,
        {"table.store.hdfs.loop:Loop.let_go": nothing},
        of(HDFS, "test_a_client_that_is_collected_in_a_thread_of_another_client_ends_elsewhere"),
    ),
    Bug(
        "a_loop_ends_over_threads_that_wake_it",
        "A script ends while a thread of hdfs-native still wakes its loop, and is aborted by that thread.",
        Hole.STANDSTILL,
        {"table.store.hdfs.loop:CountedLoop.call_soon_threadsafe": _uncounted},
        of(LOOP, "test_a_loop_that_is_stopped_waits_for_a_thread_that_is_still_waking_it"),
    ),
    Bug(
        "a_data_node_that_stands_still_ends_a_file_by_time",
        "On HDFS a minute ends the attempts at a file, though a node that stands still takes most of it.",
        Hole.STANDSTILL,
        {"table.store.hdfs.writing:ATTEMPTS_LEAST": lambda _right: 0},
        of(WRITING, "test_a_file_gets_through_though_a_data_node_that_stands_still_is_named_many_times"),
        raises={"builtins.ConnectionError": "No data received"},
    ),
    Bug(
        "a_data_node_that_stands_still_takes_as_long_as_a_slow_one",
        "On HDFS each attempt at a file waits for ten seconds, also where a node has just stood still.",
        Hole.STANDSTILL,
        {"table.store.hdfs.writing:_patience_s": always(10.0)},
        of(WRITING, "test_a_file_leaves_a_data_node_that_stands_still_within_seconds"),
    ),
    Bug(
        "a_data_node_that_died_is_told_by_an_error_of_no_class",
        "What hdfs-native says of data nodes that fail is taken for a refusal, and the file is given up.",
        Hole.STANDSTILL,
        {"table.store.hdfs.errors:_no_data_node": _of_no_class},
        of(WRITING, "test_a_file_is_begun_again_whatever_the_client_says_of_data_nodes_that_fail"),
        raises={"builtins.OSError": "HDFS does not do it"},
    ),
    Bug(
        "a_heartbeat_that_never_beat_is_asked_when_it_did",
        "Where storage did not take a heartbeat's first beat, no commit of its instant is tried again.",
        Hole.STANDSTILL,
        {"table.hudi.driver.session:Session.keep_alive": _if_it_looks_expired},
        of(
            "tests/integration/test_clocks.py",
            "test_a_heartbeat_whose_first_beat_storage_did_not_take_holds_the_commit_up_no_longer_than_that",
        ),
        raises={"table.errors.Refused": "NullPointerException"},
    ),
    Bug(
        "a_file_that_was_recovered_is_taken_for_whole",
        "Of a file of HDFS whose lease was recovered, nobody asks how much of it is left.",
        Hole.FILES,
        {"table.store.hdfs.writing:recover": _recovers},
        of(HDFS, "test_a_file_that_has_lost_some_of_what_was_written_is_not_taken_for_whole"),
    ),
    Bug(
        "a_file_shows_before_its_marker",
        "On HDFS a file is begun before what must be there before it.",
        Hole.FILES,
        {"table.store.hdfs.store:HdfsStore.sink": _at_once},
        of(STORE, "test_what_is_to_be_there_before_a_file_is_there_before_anybody_may_see_it"),
    ),
    Bug(
        "a_draft_that_was_swept_is_taken_for_renamed",
        "On HDFS who finds his draft gone takes the file that is there for his.",
        Hole.LOCK,
        {"table.store.hdfs.store:HdfsStore._holds": always(True)},
        of(HDFS, "test_who_stood_still_until_his_draft_was_swept_is_not_told_that_he_created_the_file"),
    ),
    Bug(
        "drafts_of_dead_processes_stay",
        "What a process that died had not yet renamed to what it was to be stays for ever.",
        Hole.LEFT,
        {"table.hudi.upkeep.drafts:Drafts.sweep": nothing},
        of(DRAFTS, "test_drafts_that_are_a_day_old_go_wherever_they_are_and_nothing_else_does"),
    ),
    Bug(
        "blocks_that_are_put_together_are_asked_for_again",
        "Whom Azure answers that it knows none of his blocks is told that his file is not there.",
        Hole.STANDSTILL,
        {"table.store.objects.sink:GONE_CODE": lambda _right: "-"},
        of(AZURE, "test_a_file_of_several_blocks_is_whole_though_an_answer_was_lost"),
        raises={"builtins.OSError": "InvalidBlockList"},
    ),
)
