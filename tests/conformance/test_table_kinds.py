"""Every kind of table that is registered, by what all promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from table.kinds import KINDS
from tests.integration.test_hudi_table import PLAIN

pytest.register_assert_rewrite("tests.conformance.table_kind")
from tests.conformance.table_kind import Site, TableKindPromises, sites  # noqa: E402

pytestmark = pytest.mark.integration

PLACES: Mapping[str, tuple[Callable[[Path], str], Mapping[str, str]]] = {
    "hudi": (lambda path: f"file://{path}/t", PLAIN),
    "memory": (lambda path: f"memory:{path}", {}),
}
"""Kind -> where a table of it may be, and what of its own a test may set."""


class TestEveryKind(TableKindPromises):
    @pytest.fixture(params=sorted(KINDS))
    def site(self, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Site]:
        place, properties = PLACES[request.param]
        yield from sites(request.param, place(tmp_path), spark, properties)
