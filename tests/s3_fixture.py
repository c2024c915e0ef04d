"""A real S3 server for the whole test session, and places in it that nobody else has."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from lockstep.stores.local import EVERYTHING, S3Server
from table.store.objects.errors import NEEDED
from tests.minio_server import CHOSEN, MinioServer

BUCKET = "lake"
ROLE = "writer"
"""Which everybody with a key may assume, and which may do everything."""
ACTIONS = (*NEEDED, "s3:ListBucketMultipartUploads")


def without(action: str) -> str:
    """The role that may do all that is needed but this."""
    return f"no-{action.removeprefix('s3:')}"


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Started when first asked for, with a bucket, `BUCKET`. `s3.settings` say how it is reached.

    SeaweedFS, or where the environment says so MinIO, which has no `others`.
    """
    others = {
        "reader": ("Read", "List"),
        "stranger": ("Read:elsewhere",),
        "successor": EVERYTHING,
    }
    roles = {one: [may for may in ACTIONS if without(may) != one] for one in map(without, ACTIONS)}
    roles[ROLE] = ["s3:*"]
    server = MinioServer if os.environ.get(CHOSEN) == "minio" else S3Server
    with server(tmp_path_factory.mktemp("s3"), others=others, roles=roles) as running:
        running.make_bucket(BUCKET)
        yield running


def new_place() -> str:
    """A path that nobody else has, with what paths have in them."""
    return f"s3a://{BUCKET}/a test/é=%2F+{uuid.uuid4().hex}"
