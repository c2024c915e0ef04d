"""docs/metrics.md has the metrics that the code serves."""

from __future__ import annotations

from tools import metrics


def test_the_documents_tables_are_those_of_the_code() -> None:
    document = metrics.DOCUMENT.read_text(encoding="utf-8")
    assert metrics.updated(document) == document, "run `make docs`"
