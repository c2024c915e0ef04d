"""Missing records that are taken for a proof: files are deleted, or a pipeline begins a second time."""

from __future__ import annotations

from typing import Any

from table.orphans import ROLLED_BACK
from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

SWEEP = "tests/unit/table/hudi/upkeep/test_sweep.py"
RECORDS = "tests/unit/table/hudi/upkeep/test_timeline_records.py"
SERVICER = "tests/unit/table/service/test_servicer.py"
UNKNOWN_FILES = "tests/unit/table/hudi/upkeep/test_unknown_files.py"
PLANS = frozenset({"commit", "deltacommit", "compaction", "clustering"})


def superseded(right: Any) -> Any:
    def note_commits(place: Any) -> None:
        place._has_commits = True
        place.occupy()

    return note_commits


BUGS = (
    Bug(
        "an_unknown_instant_is_taken_for_rolled_back",
        "The sweep removes files of instants that neither timeline knows, though the archive may be lost.",
        Hole.ABSENCE,
        {"table.hudi.upkeep.sweep:UNKNOWN": lambda _right: ROLLED_BACK},
        of(
            SWEEP,
            "test_files_of_an_instant_that_the_timeline_does_not_know_stay_until_it_does",
            "test_files_for_a_plan_of_ours_that_the_timeline_does_not_know_stay",
        ),
    ),
    Bug(
        "a_sweep_has_no_limit",
        "A sweep removes any number of files.",
        Hole.ABSENCE,
        {"table.orphans:SweepReport.limited": always(False)},
        of(SWEEP, "test_a_sweep_removes_ten_files_or_its_share_of_all_or_none"),
    ),
    Bug(
        "the_rollback_of_a_plan_is_taken_for_a_proof",
        "The sweep takes the rollback of a compaction for a proof, though Hudi may carry its plan out again.",
        Hole.ABSENCE,
        {"table.hudi.upkeep.timeline_records:DATA_ACTIONS": lambda _right: PLANS},
        of(RECORDS, "test_a_rollback_proves_itself_of_a_commit_and_not_of_a_plan"),
    ),
    Bug(
        "a_pipeline_begins_again_by_itself",
        "A pipeline that finds no commit begins, whatever shows that it has committed before.",
        Hole.ABSENCE,
        {"table.service.transactions:Transactions._lost": always("")},
        of(
            SERVICER,
            "test_a_pipeline_that_has_committed_before_does_not_begin_by_itself",
            "test_a_table_that_has_lost_commits_halts_a_run_before_it_commits",
        ),
    ),
    Bug(
        "files_of_unknown_instants_are_no_sign",
        "A run does not look for files whose instants the timeline does not know.",
        Hole.ABSENCE,
        {"table.hudi.upkeep.unknown_files:instant_of_ours": always("")},
        of(UNKNOWN_FILES, "test_files_of_instants_without_a_commit_or_a_rollback_are_unknown"),
    ),
    Bug(
        "a_superseded_run_takes_its_place_back",
        "A run that notes its commits overwrites the note of the run that has superseded it.",
        Hole.ABSENCE,
        {"table.service.place:Place.note_commits": superseded},
        of(
            "tests/unit/table/service/test_place.py",
            "test_a_run_that_was_superseded_does_not_take_the_place_back_to_note_its_commits",
        ),
    ),
)
