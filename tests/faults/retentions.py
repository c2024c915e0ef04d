"""The driver dies as it takes table partitions out of the table that are past their time."""

from __future__ import annotations

import posixpath
from functools import partial

from table.hudi.files.base_file import parse_file_name
from tests.faults import upkeep
from tests.faults.blows import ANSWER_S, left_locked_s
from tests.faults.commits import wall_ms
from tests.faults.kills import DRIVER_LIMIT_S
from tests.faults.scenario import Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.faults.upkeep import Action, Moment
from tests.faults.upkeep_blows import Struck, await_another, await_taken_away, until_struck

PER_SECOND = 1_000
SETTINGS = {
    "table.retention": "90d",  # all days of the load are past their time
    "transaction.interval": "2s",
    "table.hudi.hoodie.keep.min.commits": "400",
    "table.hudi.hoodie.keep.max.commits": "500",
}
"""And no instant is archived meanwhile, so that each says what it took out."""


def _killed_as_it_takes_out(stage: Stage, *, moment: Moment) -> Outcome:
    stage.proof = _proof
    stage.start(per_second=PER_SECOND)
    struck, misses = until_struck(lambda: _kill(stage, moment))
    await_taken_away(stage, stage.current, Action.RETENTION, struck.instant)
    await_another(stage, Action.RETENTION, struck.instant)
    return struck.outcome(misses=misses, **stage.settle_and_verify())


def _kill(stage: Stage, moment: Moment) -> Struck | None:
    """A run looks after its first commit, and then not for ten minutes. None: it was a miss."""
    place = stage.pipeline.place
    stage.current.kill()
    stage.restart()
    instant = upkeep.await_begun(place, Action.RETENTION, moment)
    stage.current.kill()
    was_pending = instant in upkeep.pending(place, Action.RETENTION)
    expiry_s, at_ms = left_locked_s(stage), wall_ms()
    stage.restart()
    recovery = stage.recovery(at_ms, deadline_s=ANSWER_S)
    return (
        Struck(instant=instant, base_files=0, expiry_s=expiry_s, recovery=recovery) if was_pending else None
    )


def _proof(stage: Stage) -> dict[str, int]:
    """Every record is in the table once, or in a file that an instant has taken out; each such instant took
    all that had been committed by then, and nothing that came later.
    """
    timeline = stage.pipeline.place.timeline()
    instants = [one for one in timeline.completed() if one.files]
    rows = {_file_id(file.path): file.rows for one in instants for file in one.files}
    gone: set[str] = set()
    taken = [one for one in reversed(timeline.active()[0]) if one.action == Action.RETENTION.value[1]]
    for one in taken:
        replaced = timeline.metadata(one)["partitionToReplaceFileIds"]
        gone |= {file_id for ids in replaced.values() for file_id in ids}
        for other in instants:
            files = {_file_id(file.path) for file in other.files}
            if other.completed < one.requested:
                assert files <= gone, f"{one.requested} left rows of {other.requested}, which it had found"
            elif other.completed > one.completed:
                assert not files & gone, f"{one.requested} took rows of {other.requested}, which came later"
    out = sum(count for file_id, count in rows.items() if file_id in gone)
    verdict = stage.pipeline.verify()
    assert verdict["exact"] is None and "deleted or replaced" in verdict["not_checkable"][0], verdict
    assert not (verdict["duplicated"] or verdict["unexpected"] or verdict["ranges_broken"]), verdict
    assert (verdict["rows"], verdict["missing"]) == (stage.pipeline.produced - out, out), verdict
    return {"rows": verdict["rows"], "taken_out": out, "retentions": len(taken)}


def _file_id(path: str) -> str:
    parsed = parse_file_name(posixpath.basename(path))
    assert parsed is not None, path
    return parsed[0]


put(
    "Services",
    *(
        Scenario(
            f"driver_killed_as_table_partitions_{name}",
            f"SIGKILL of the driver and restarted: an instant that takes table partitions out {is_so_far}",
            "the next run takes it away and takes them out anew; every record is in the table once, or was "
            "taken out of it by an instant that is complete",
            partial(_killed_as_it_takes_out, moment=moment),
            DRIVER_LIMIT_S,
            settings=SETTINGS,
        )
        for moment, name, is_so_far in (
            (Moment.BEGUN, "begin_to_go", "has just been begun"),
            (Moment.LISTED, "go", "is in Hudi's metadata table, and not yet complete on the timeline"),
        )
    ),
)
