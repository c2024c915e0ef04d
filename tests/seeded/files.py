"""A worker's files under somebody else's hands, and what a sweep and an operator are told of them."""

from __future__ import annotations

import importlib
from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole


def blame_storage(_right: Any) -> Any:
    storage_error = importlib.import_module("table.hudi.files.durable").StorageError
    return lambda _files, path: storage_error(f"{path} could not be written")


def taken_for_failed(_right: Any) -> Any:
    def look_for(_config: Any, _state: Any, ended: str) -> None:
        raise importlib.import_module("lockstep.errors").Failed(f"The change was not committed ({ended})")

    return look_for


BUGS = (
    Bug(
        "a_rollback_is_taken_for_storage",
        "If a rollback deletes the files of a healthy worker, the error blames the storage.",
        Hole.UNDER_HANDS,
        {"table.hudi.files.durable:Files.gone": blame_storage},
        of(
            "tests/integration/test_plane_rolled_back.py",
            "test_a_worker_whose_files_are_rolled_back_under_it_is_no_storage_that_failed",
        ),
    ),
    Bug(
        "not_committed_is_said_unseen",
        "Of a job that ended otherwise than well an operator is told that nothing was committed.",
        Hole.OFFSETS,
        {"lockstep.offsets.carry_out:look_for": taken_for_failed},
        of(
            "tests/unit/lockstep/offsets/test_execute.py",
            "test_a_job_that_did_not_say_that_nothing_was_committed_is_not_said_to_have_committed_nothing",
        ),
    ),
    Bug(
        "late_copies_are_nobodys",
        "A file that comes for a clustering of ours once it is complete is left to whoever lists folders.",
        Hole.LEFT,
        {"table.hudi.upkeep.plans:carried_out": always(frozenset())},
        (
            *of(
                "tests/unit/table/hudi/upkeep/test_sweep.py",
                "test_copies_that_come_late_for_a_clustering_of_ours_go_and_those_for_other_writers_stay",
            ),
            *of(
                "tests/integration/test_services.py",
                "test_a_copy_that_comes_once_its_clustering_is_complete_is_swept_and_others_are_left_alone",
            ),
        ),
    ),
)
