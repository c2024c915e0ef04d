"""Others at the same table: columns, plans, the metadata table. And the files that a commit names."""

from __future__ import annotations

import importlib
from typing import Any

from tests.seeded.base import Bug, of
from tests.seeded.clocks import nothing
from tests.seeded.holes import Hole

TORN = "tests/unit/table/hudi/reader/test_torn.py"
LOOKING = "tests/unit/table/hudi/driver/test_looking.py"
REAL_TORN = "tests/integration/test_torn.py"
TAKEN_AWAY = "tests/integration/test_taken_away.py"


def agreeing(right: Any) -> Any:
    def compare(_data: Any, _metadata: Any, _rolled_back: Any) -> Any:
        return right((), (), ())

    return compare


def without_a_note(_right: Any) -> Any:
    def begin(session: Any, action: str, instant: str) -> None:
        """Write no note, but keep the columns that `check_columns` compares."""
        plans = importlib.import_module("table.hudi.upkeep.plans")
        plans._use_columns(session, f"{action} {instant}")

    return begin


def those_that_are_there(right: Any) -> Any:
    def check_files(store: Any, mode: str, instant: str, files: Any) -> None:
        right(store, mode, instant, [file for file in files if store.stat(file.path) is not None])

    return check_files


def by_pythons_iteration(_right: Any) -> Any:
    return lambda collection: [] if collection is None else list(collection)


BUGS = (
    Bug(
        "columns_of_others_are_overwritten",
        "A commit does not look whether somebody has changed the table's columns, and takes theirs away.",
        Hole.OTHERS,
        {"table.hudi.driver.commit:Columns.check": nothing},
        of(
            "tests/integration/test_clocks.py",
            "test_a_column_that_others_add_is_seen_though_they_did_so_earlier_by_the_clock",
        ),
    ),
    Bug(
        "whatever_goes_wrong_is_the_end_of_a_list",
        "Java's lists are read by Py4J's iterator: what goes wrong meanwhile makes them shorter, and the "
        "sweep removes what it does not name.",
        Hole.SHORT,
        {"table.hudi.driver.asking:elements": by_pythons_iteration},
        of(
            "tests/unit/table/hudi/driver/test_asking.py",
            "test_what_goes_wrong_in_the_middle_of_a_list_is_not_its_end",
        ),
    ),
    Bug(
        "metadata_is_never_torn",
        "Hudi's metadata table is taken to agree with the timeline.",
        Hole.OTHERS,
        {"table.hudi.reader.torn:compare": agreeing},
        of(
            TORN,
            "test_what_is_complete_and_not_in_the_metadata_table_is_hidden",
            "test_a_contradiction_names_instant_and_document",
        ),
    ),
    Bug(
        "a_commit_does_not_look_for_tears",
        "Commits go on beside a metadata table that contradicts the timeline.",
        Hole.OTHERS,
        {"table.hudi.reader.torn:Torn.check": nothing},
        of(
            REAL_TORN,
            "test_a_commit_beside_a_contradiction_is_refused_and_a_metadata_table_made_anew_is_the_way_on",
        ),
    ),
    Bug(
        "cleaning_rolls_back_what_looks_given_up",
        "Our cleaning rolls back, as Hudi's does, an open instant whose heartbeat has not beaten.",
        Hole.OTHERS,
        {"table.hudi.driver.session:Session.set_directly": nothing},
        of(REAL_TORN, "test_our_cleaning_rolls_nothing_back_that_a_commit_completes_meanwhile"),
    ),
    Bug(
        "plans_of_others_are_taken_away",
        "A plan of ours is taken away, whoever has begun to carry it out.",
        Hole.OTHERS,
        {"table.hudi.upkeep.plans:_is_ours": lambda _right: lambda *_: True},
        of(
            TAKEN_AWAY,
            "test_a_compaction_of_ours_that_somebody_else_carries_out_is_left_to_them",
            "test_a_clustering_of_ours_that_somebody_rolled_back_and_began_anew_is_theirs",
        ),
    ),
    Bug(
        "a_plan_is_begun_without_a_note",
        "If a driver notes no plan, its successor leaves the driver's own plan to another writer.",
        Hole.OTHERS,
        {"table.hudi.upkeep.plans:begin": without_a_note},
        of(
            TAKEN_AWAY,
            "test_a_compaction_of_a_driver_that_was_killed_between_its_two_writes_is_taken_out_of_both",
        ),
    ),
    Bug(
        "rows_in_files_are_believed",
        "What a worker reports of the rows in its base files is not counted.",
        Hole.FILES,
        {"table.hudi.driver.looking:_check_rows": nothing},
        of(LOOKING, "test_a_base_file_with_other_rows_than_were_reported_is_refused"),
    ),
    Bug(
        "columns_come_under_a_service",
        "A compaction or clustering says the columns that were there when it began, and ends last.",
        Hole.OTHERS,
        {"table.hudi.upkeep.plans:check_columns": nothing},
        of(
            "tests/integration/test_evolution.py",
            "test_columns_that_come_while_a_service_is_at_work_stay_the_tables",
        ),
    ),
    Bug(
        "sizes_of_files_are_believed",
        "What a worker reports of the sizes of its files is not compared.",
        Hole.FILES,
        {"table.hudi.driver.looking:_compare_size": nothing},
        of(LOOKING, "test_of_many_files_those_that_are_counted_are_spread_over_all"),
    ),
    Bug(
        "what_is_not_there_is_committed",
        "A commit names files that are not on storage.",
        Hole.FILES,
        {"table.hudi.driver.looking:check_files": those_that_are_there},
        of(LOOKING, "test_a_file_that_is_not_there_is_refused_whatever_the_table_holds"),
    ),
)
