"""A server of Azure's storage for the whole test session, and places in it that nobody else has."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from table.store.location import AZURE
from tests.azure.server import AzureServer, authority_of

CONTAINER = "lake"


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """Started when first asked for, with a container, `CONTAINER`. `azure.settings` say how it is reached.

    Whoever asks its front for what that does not know fails the session's last test here.
    """
    with AzureServer(tmp_path_factory.mktemp("azure")) as running:
        running.make_bucket(CONTAINER)
        yield running
        assert not running.unknown, "what was asked of Azure's other endpoint is not what was looked up"


def new_place() -> str:
    """A path that nobody else has, with what paths have in them."""
    return f"{AZURE}://{authority_of(CONTAINER)}/a test/é=%2F+{uuid.uuid4().hex}"
