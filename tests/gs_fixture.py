"""A server of Google's storage API for the whole test session, and places in it that nobody else has."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from lockstep.stores.gs import GsServer

BUCKET = "lake"


@pytest.fixture(scope="session")
def gs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GsServer]:
    """Started when first asked for, with a bucket, `BUCKET`. `gs.settings` say how it is reached."""
    with GsServer(tmp_path_factory.mktemp("gs")) as running:
        running.make_bucket(BUCKET)
        yield running


def new_place() -> str:
    """A path that nobody else has, with what paths have in them."""
    return f"gs://{BUCKET}/a test/é=%2F+{uuid.uuid4().hex}"
