"""Markers that exclude a test, as its source has them."""

from __future__ import annotations

import pytest

from tests.suite.exclusions import exclusions

TEST = "def test_a(): pass\n"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (TEST, set()),
        ("@pytest.mark.nightly\n" + TEST, {"nightly"}),
        ("@pytest.mark.skip('x')\n" + TEST, {"skip"}),
        ("@mark.xfail(reason='x')\n" + TEST, {"xfail"}),
        ("slow = pytest.mark.nightly\n@slow\n" + TEST, {"nightly"}),
        ("pytestmark = [pytest.mark.integration, pytest.mark.nightly]\n" + TEST, {"nightly"}),
        ("x = pytest.importorskip('x')\n" + TEST, {"importorskip"}),
        ("pytest.skip('x', allow_module_level=True)\n" + TEST, {"skip"}),
        ("@pytest.mark.skipif(True, reason='x')\n" + TEST, set()),
        ("@pytest.mark.nightly\ndef test_b(): pass\n" + TEST, set()),
    ],
)
def test_decorators_and_marks_of_the_file_exclude_a_test(source: str, found: set[str]) -> None:
    assert exclusions(source, "test_a") == found
