"""A real HDFS for the whole test session, and places in it that nobody else has."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from lockstep.stores.hdfs import HdfsServer
from table.store.hdfs.settings import HdfsSettings
from table.store.hdfs.store import HdfsStore
from table.store.location import HDFS, Location


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """Started when first asked for."""
    with HdfsServer(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


def new_store(server: HdfsServer, settings: HdfsSettings | None = None) -> HdfsStore:
    """At a path that nobody else has, with what paths have in them."""
    store = store_of(server.address, f"/a test/é=%2F+{uuid.uuid4().hex}", settings or server.settings)
    store.make_folder("")
    return store


def store_of(address: str, path: str, settings: HdfsSettings | None = None) -> HdfsStore:
    """What is at this path, as whoever runs this process."""
    return HdfsStore(Location(HDFS, address, path), settings or HdfsSettings())
