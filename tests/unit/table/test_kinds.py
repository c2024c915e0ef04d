"""The registry of kinds of tables."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lockstep.config.table_sections import TableSection
from table.kinds import KINDS, OFFERED, table_kind


@pytest.mark.parametrize("name", KINDS)
def test_whatever_is_registered_can_be_made_and_loads_no_spark_before_it_is_used(name: str) -> None:
    code = (
        f"import sys; from table.kinds import table_kind; table_kind({name!r});"
        "print([one for one in ('pyspark', 'pyarrow', 'numpy') if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_another_name_is_none() -> None:
    with pytest.raises(KeyError):
        table_kind("delta")


def test_the_configuration_offers_what_is_registered_and_what_processes_can_share() -> None:
    given = {"path": "file:///t", "name": "t"}
    assert set(KINDS) - set(OFFERED) == {"memory"}
    for name in OFFERED:
        assert TableSection.model_validate({**given, "format": name}).format == name
        assert f"`{name}`, " in str(TableSection.model_fields["format"].description)
    with pytest.raises(ValueError, match=f"'memory' is not one of {', '.join(OFFERED)}"):
        TableSection.model_validate({**given, "format": "memory"})
