"""Another Hudi on Spark's class path is refused by its version, with the path of each."""

from __future__ import annotations

import pytest

from table.errors import Refused
from table.hudi.driver.versions import UNKNOWN, HudiJar, refuse_others

OURS = HudiJar("/ivy/hudi-spark3.5-bundle_2.12-1.2.0.jar", "1.2.0")
IMAGES = HudiJar("/opt/spark/jars/hudi-spark3.5-bundle_2.12-1.0.2.jar", "1.0.2")


@pytest.mark.parametrize("jars", [[OURS, IMAGES], [IMAGES, OURS]])
def test_several_versions_are_refused_with_the_path_of_each(jars: list[HudiJar]) -> None:
    with pytest.raises(Refused) as caught:
        refuse_others(jars)
    assert all(f"{jar.version} in {jar.path}" in str(caught.value) for jar in jars)


def test_one_unsupported_version_is_refused() -> None:
    with pytest.raises(Refused, match=r"Hudi 1\.0\.2 in /opt/spark/jars/.*writes with Hudi 1\.2: give Spark"):
        refuse_others([IMAGES])


@pytest.mark.parametrize("jars", [[], [OURS], [OURS, OURS], [HudiJar("/built/here.jar", UNKNOWN)]])
def test_the_supported_version_is_accepted_also_twice_or_built_without_maven(jars: list[HudiJar]) -> None:
    refuse_others(jars)
