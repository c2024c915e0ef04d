"""Which table partition a row belongs to: values, that the kind of table spells."""

from __future__ import annotations

from typing import get_args

import pyarrow as pa
import pytest

from lockstep.config.model import Table
from table.errors import Refused
from table.hudi.definition import plain_spec
from table.partitioners.kinds import PARTITIONERS, partitioner
from table.port import TableSpec


def test_a_table_without_a_partition_field_has_no_partitions() -> None:
    assert partitioner("") is None


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_partitioner_that_is_registered_says_a_value_for_each_row(name: str) -> None:
    made = partitioner("day", name)
    assert made is not None and made.field == "day"
    values = made.values(pa.table({"day": ["monday", "tuesday", None, "monday"]}))
    assert len(values) == 4
    assert values[0].as_py() == values[3].as_py() != values[1].as_py()


def test_the_values_of_a_field_are_those_of_the_field_null_included() -> None:
    made = partitioner("day")
    assert made is not None
    chunks = pa.chunked_array([["monday"], [None, "monday"]])
    assert made.values(pa.table({"day": chunks})).to_pylist() == ["monday", None, "monday"]


def test_the_configuration_offers_what_is_registered() -> None:
    assert set(get_args(Table.model_fields["partitioner"].annotation)) == set(PARTITIONERS)


def test_a_hudi_table_is_partitioned_by_what_its_readers_find_in_its_folders_names() -> None:
    spec = TableSpec(path="/t", name="t", mode="insert", ddl="id STRING", partitioner="hour")
    with pytest.raises(Refused, match=r"table\.partitioner is 'hour'.*only 'field' can be"):
        plain_spec(spec)
