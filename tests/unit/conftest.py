"""What unit tests of several rooms begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.registry_server import Registry


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running
