"""What HDFS does to those whose table is there: its name node dies, stands still or takes nothing, one of its
data nodes dies under a file, a quota is used up, and what a dead worker was writing stays open.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from lockstep.stores.hdfs import HdfsServer
from table.store.location import Location
from table.store.paths import DRAFT, of_draft
from tests.faults import processes
from tests.faults.acts import CALM_PER_SECOND, GOES_ON_S, assert_said, halts, proved
from tests.faults.commits import wall_ms
from tests.faults.data_node import DataNode
from tests.faults.scenario import ON_HDFS, Notes, Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.faults.stores import (
    AWAY_S,
    BUDGET_S,
    ENDURED,
    GOES_ON_LIMIT_S,
    away,
    outlives,
    produce_large,
    struck_at_each_step,
)
from tests.harness import await_that
from tests.place import OnHdfs, below

SAFE_MODE_S = 60.0
FULL_S = 60.0
SAW_S = 120.0
LOCK_S = OnHdfs.expiry_s
"""What cannot be given back is there until it expires."""
LARGE_FILES = {"transaction.interval": "5s"}
QUOTAS = {"space": ("-setSpaceQuota", "-clrSpaceQuota"), "names": ("-setQuota", "-clrQuota")}


def _hdfs(stage: Stage) -> HdfsServer:
    assert isinstance(stage.server, HdfsServer), "the table is to be on HDFS"
    return stage.server


def _folder(stage: Stage) -> str:
    """The table's, as HDFS has it."""
    return Location.parse(stage.pipeline.place.address).path


@contextmanager
def _safe_mode(stage: Stage) -> Iterator[Notes]:
    """The name node takes nothing, and goes on answering who asks."""
    server = _hdfs(stage)
    server.administer("-safemode", "enter")
    yield {}
    server.administer("-safemode", "leave")


@contextmanager
def _full(stage: Stage, *, of: str) -> Iterator[Notes]:
    """The least quota that there is, which the table has used up long since."""
    server, (begin, end) = _hdfs(stage), QUOTAS[of]
    server.administer(begin, "1", _folder(stage))
    yield {}
    server.administer(end, _folder(stage))


def _being_written(stage: Stage) -> str:
    """The draft of a data file, which is there until the file is whole. Empty where there is none."""
    drafts = (
        f"{folder}/{name}"
        for folder, name in below(stage.pipeline.place)
        if of_draft(name).endswith(".parquet")
    )
    return next(drafts, "")


def _killed_over_a_file(stage: Stage) -> Outcome:
    """Both workers, so that whoever writes it is among them."""
    run = stage.start(per_second=CALM_PER_SECOND)
    stage.stop_load()
    who = stage.processes()
    produce_large(stage)
    written = await_that("file that is being written", lambda: _being_written(stage), deadline_s=SAW_S)
    at_ms = processes.send(who.workers, signal.SIGKILL)
    stage.start_load(per_second=CALM_PER_SECOND)
    recovery_s = stage.recovery_s(at_ms, deadline_s=GOES_ON_S)
    outcome = proved(stage, run, recovery_s=recovery_s, over=written)
    assert stage.pipeline.place.store.stat(written) is None, f"{written} is still there"
    still_open = _hdfs(stage).administer("-listOpenFiles", "-path", _folder(stage))
    assert DRAFT not in still_open, still_open
    return outcome


def _data_node_killed(stage: Stage) -> Outcome:
    """One of three: each block is on two of them."""
    folder = stage.pipeline.folder
    with (
        HdfsServer(folder / "its-own", data_nodes=2) as stage.server,
        DataNode(folder / "data-node", _hdfs(stage)) as node,
        closing(stage),
    ):
        stage.pipeline.bucket = OnHdfs(_hdfs(stage))
        run = stage.start(per_second=CALM_PER_SECOND)
        stage.stop_load()
        produce_large(stage)
        await_that("file that is being written", lambda: _being_written(stage), deadline_s=SAW_S)
        node.kill()
        at_ms = wall_ms()
        stage.start_load(per_second=CALM_PER_SECOND)
        recovery_s = stage.recovery_s(at_ms, deadline_s=GOES_ON_S)
        return proved(stage, run, recovery_s=recovery_s)


def _says(stage: Stage, *, act: partial[Outcome], said: str) -> Outcome:
    outcome = act(stage)
    assert_said(stage.pipeline.runs[0], [said])
    return outcome


put(
    "HDFS",
    *struck_at_each_step("hdfs", "HDFS (name node and data node)", more_s=LOCK_S),
    Scenario(
        "hdfs_away_for_60_s",
        f"HDFS is gone for {AWAY_S:.0f} s",
        ENDURED,
        partial(outlives, during=away, seconds=AWAY_S),
        GOES_ON_LIMIT_S + LOCK_S,
    ),
    Scenario(
        "hdfs_away_for_good",
        "HDFS is gone for longer than an outage is waited out",
        "the run halts and says so; with HDFS there again, the next run loses nothing",
        partial(
            halts,
            during=away,
            said=(f"an outage is waited out for {BUDGET_S} s",),
            deadline_s=BUDGET_S + 240,
            per_second=CALM_PER_SECOND // 4,
        ),
    ),
    Scenario(
        "hdfs_in_safe_mode_for_60_s",
        f"the name node is in safe mode for {SAFE_MODE_S:.0f} s, and takes nothing",
        "it is waited out as storage that cannot be written, and commits go on by themselves",
        partial(outlives, during=_safe_mode, seconds=SAFE_MODE_S),
        GOES_ON_LIMIT_S + LOCK_S,
    ),
    *(
        Scenario(
            f"hdfs_{kind}_quota_used_up",
            f"for {FULL_S:.0f} s the {kind} quota of the table's folder is less than what is there",
            "it is waited out as a disk that is full, and said so; with the quota lifted commits go on",
            partial(
                _says,
                act=partial(outlives, during=partial(_full, of=of), seconds=FULL_S),
                said="the quota is used up",
            ),
            GOES_ON_LIMIT_S + LOCK_S,
        )
        for kind, of in (("space", "space"), ("name", "names"))
    ),
    Scenario(
        "hdfs_data_node_killed_in_the_middle_of_files",
        "one of three data nodes is killed while files are being written, and stays away",
        "files are ended on the others, or their transaction is given up, and commits go on",
        _data_node_killed,
        GOES_ON_LIMIT_S,
        settings=LARGE_FILES,
    ),
    Scenario(
        "hdfs_workers_killed_whose_files_are_open",
        "SIGKILL of both workers while a file of theirs is open, which HDFS keeps a lease of",
        "the transaction is given up, and its rollback takes the file away, lease and all",
        _killed_over_a_file,
        GOES_ON_LIMIT_S,
        settings=LARGE_FILES,
    ),
    stores=ON_HDFS,
)
