"""A real Hive metastore for the whole test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.stores.hive import MetastoreServer


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """Started when first asked for."""
    with MetastoreServer(tmp_path_factory.mktemp("metastore")) as running:
        yield running
