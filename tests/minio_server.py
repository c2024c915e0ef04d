"""MinIO: a second opinion on what S3's interface says, beside SeaweedFS. For tests only.

Built from its source by Go, once for a machine, and kept in Lockstep's cache. `make minio` has the tests of
stores and of tables on them meet it instead of SeaweedFS.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from lockstep.launch.local_server import HOST
from lockstep.stores.local import ACCESS_KEY, REGION, SECRET_KEY, S3Server, S3ServerError
from tests.cached import last_words, once

CHOSEN = "LOCKSTEP_S3_SERVER"
"""The environment's variable by which a test session has this server for SeaweedFS: `minio`."""
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
PACKAGE = f"github.com/minio/minio@{VERSION}"
BUILD_TIMEOUT_S = 3_600


ONE_KEY = "it has one access key here: others are made by an interface of its own"
NAMED_UPLOADS = "it lists unfinished uploads of an object that is named, and of no folder"
FOLDERS = "it has no empty folders, and is asked once more for one"
DIFFERS: Mapping[str, str] = {
    "test_a_large_file_whose_keys_are_taken_back_is_whole_or_its_writer_is_told_and_writes_it_again": ONE_KEY,
    "test_of_keys_that_were_taken_back_the_successors_are_taken_at_once_by_every_request": ONE_KEY,
    "test_who_may_only_read_is_told_which_permission_writing_needs": ONE_KEY,
    "test_who_writes_while_keys_are_taken_back_notices_nothing": ONE_KEY,
    "test_whoever_may_not_read_or_asks_elsewhere_is_told_so": ONE_KEY,
    "test_keys_of_a_profile_that_are_taken_back_are_those_of_its_file_soon": ONE_KEY,
    "test_a_store_that_cannot_be_used_ends_a_run_at_its_start_with_one_sentence[environment2--must allow "
    "s3:PutObject]": ONE_KEY,
    "test_an_upload_that_may_not_be_aborted_is_left_to_a_sweep_that_may": NAMED_UPLOADS,
    "test_files_and_uploads_of_instants_that_are_over_go_and_all_others_stay": NAMED_UPLOADS,
    "test_parts_of_a_worker_that_was_killed_are_found_below_their_folder_and_aborted": NAMED_UPLOADS,
    "test_a_sweep_asks_nothing_of_single_files": FOLDERS,
}
"""Of tests that are not played with it, and of one set of arguments alone, why."""


class MinioServer(S3Server):
    """It knows `ACCESS_KEY` alone: others are made by an interface of its own."""

    kind = "minio-server"

    def _prepare(self) -> None:
        self._binary = str(installed())

    def _launch(self) -> None:
        data = self._data_dir / "data"
        data.mkdir(exist_ok=True)
        settings = {
            "MINIO_ROOT_USER": ACCESS_KEY,
            "MINIO_ROOT_PASSWORD": SECRET_KEY,
            "MINIO_REGION": REGION,
            "MINIO_BROWSER": "off",
            "MINIO_CI_CD": "on",  # the disk of the system may hold its data
        }
        command = [self._binary, "server", "--quiet", "--address", f"{HOST}:{self.port}", str(data)]
        self._spawn(command, settings)


def installed() -> Path:
    """The binary in the cache; built where it is not there."""
    return once(f"minio-{VERSION}", "minio", _build)


def _build(folder: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise S3ServerError("MinIO is built by Go, which is not installed: install golang")
    said = last_words([go, "install", PACKAGE], timeout_s=BUILD_TIMEOUT_S, environment={"GOBIN": str(folder)})
    if said:
        raise S3ServerError(f"{PACKAGE} could not be built, Go said: {said}")
