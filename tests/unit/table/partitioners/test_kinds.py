"""Which table partition a row belongs to: values, that the kind of table spells."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockstep.config.table_sections import TableSection
from table.errors import Refused
from table.hudi.definition import plain_spec
from table.partitioners.kinds import PARTITIONERS, partitioners
from table.port import TableSpec


def test_a_table_without_a_partition_field_has_no_partitions() -> None:
    assert partitioners(()) == ()


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_partitioner_says_a_value_for_each_row_and_the_same_for_the_same(name: str) -> None:
    (made,) = partitioners(("day",), name)
    assert made.field == "day"
    rows = pa.table({"day": ["monday", "tuesday", None, "monday"]})
    values = made.values(rows)
    assert len(values) == 4 and not values.indices.null_count
    assert values[0].as_py() == values[3].as_py()
    assert made.values(rows.take([2, 0])).to_pylist() == values.take([2, 0]).to_pylist(), (
        "whatever is beside it"
    )


def test_the_values_of_a_field_are_those_of_the_field_null_included() -> None:
    (made,) = partitioners(("day",))
    chunks = pa.chunked_array([["monday"], [None, "monday"]])
    assert made.values(pa.table({"day": chunks})).to_pylist() == ["monday", None, "monday"]


def test_the_configuration_offers_what_is_registered() -> None:
    given = {"path": "file:///t", "name": "t"}
    for name in PARTITIONERS:
        assert TableSection.model_validate({**given, "partitioner": name}).partitioner == name
        assert f"`{name}`, " in str(TableSection.model_fields["partitioner"].description)
    with pytest.raises(ValueError, match=f"'nuxi' is not one of {', '.join(PARTITIONERS)}"):
        TableSection.model_validate({**given, "partitioner": "nuxi"})


def test_a_hudi_table_is_partitioned_by_what_its_readers_find_in_its_folders_names() -> None:
    spec = TableSpec(path="/t", name="t", mode="insert", ddl="id STRING", partitioner="hour")
    with pytest.raises(Refused, match=r"table\.partitioner is 'hour'.*only 'field' can be"):
        plain_spec(spec)
