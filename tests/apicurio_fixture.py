"""A real schema registry for the whole test session: Apicurio's, which speaks Confluent's REST, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockstep.stores.registry import RegistryServer


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServer]:
    """Started when first asked for."""
    with RegistryServer(tmp_path_factory.mktemp("apicurio")) as running:
        yield running
