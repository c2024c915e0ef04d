"""What a table that exists says of how it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from table.errors import Contradiction
from table.hudi.definition import Definition, check_table, fixed_properties, layout, schema_of
from table.port import TableSpec

DDL = "event_id STRING, amount DOUBLE, day STRING"
SPEC = TableSpec(
    path="/t", name="t", mode="insert", ddl=DDL, key_fields=("event_id",), partition_fields=("day",)
)
FITTING = {
    "hoodie.table.version": "9",
    "hoodie.table.recordkey.fields": "event_id",
    "hoodie.table.partition.fields": "day",
    "hoodie.table.keygenerator.type": "SIMPLE",
}


def test_folders_of_times_are_made_as_a_tables_own_properties_say() -> None:
    times = "hoodie.keygen.timebased."
    said = {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd", "output.dateformat": "yyyy/MM"}
    own = {f"{times}{name}": value for name, value in said.items()}
    properties = {**FITTING, **own, "hoodie.table.keygenerator.type": "TIMESTAMP"}
    found = Definition(properties=properties)
    check_table(found, SPEC)
    assert '"yyyy/MM"' in layout(found, SPEC, schema_of(SPEC), created=False).timed
    kept = fixed_properties(found, schema_of(SPEC), SPEC)
    assert kept["hoodie.datasource.write.keygenerator.class"].endswith(".TimestampBasedKeyGenerator")
    assert own.items() <= kept.items()
    elsewhere = {name: value for name, value in properties.items() if name not in own}
    check_table(Definition(properties=elsewhere), replace(SPEC, properties=own))
    dates = replace(SPEC, ddl=DDL.replace("day STRING", "day DATE"))
    with pytest.raises(Contradiction, match="folders of day as of a time: column day: it is DATE, and"):
        check_table(Definition(properties=properties), dates)
    two = {**properties, "hoodie.table.recordkey.fields": "event_id,day"}
    with pytest.raises(Contradiction, match="is TIMESTAMP, and known is how it spells one key field"):
        check_table(Definition(properties=two), SPEC)
    made = {"partition_terms": ('format(now(), "yyyy") as day',)}
    with pytest.raises(Contradiction, match=r"say day in table\.partition_by, and no function of it"):
        check_table(Definition(properties=properties), replace(SPEC, **made))
    with pytest.raises(Contradiction, match=r"makes folders of no time: take .* out of table\.hudi"):
        check_table(Definition(properties=FITTING), replace(SPEC, properties=own))


def test_by_folders_of_times_no_table_partition_ages_for_rows_without_one_are_in_1970() -> None:
    """And their pattern is the table's, which `table.retention_pattern` may contradict: days for months."""
    times = "hoodie.keygen.timebased."
    said = {
        "timestamp.type": "DATE_STRING",
        "input.dateformat": "yyyy-MM-dd",
        "output.dateformat": "yyyy-dd-MM",
    }
    own = {f"{times}{name}": value for name, value in said.items()}
    found = Definition(properties={**FITTING, **own, "hoodie.table.keygenerator.type": "TIMESTAMP"})
    by_path = replace(SPEC, retention_ms=86_400_000)
    with pytest.raises(Contradiction, match=r"rows without one are in those of 1970: say table\.ret"):
        check_table(found, by_path)
    check_table(found, replace(by_path, retention_field="seen"))
    check_table(Definition(properties=FITTING), by_path)


def test_a_custom_key_generator_that_makes_folders_of_times_is_refused_for_its_readers() -> None:
    own = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
        "hoodie.keygen.timebased.timezone": "UTC",
        "hoodie.table.keygenerator.type": "CUSTOM",
        "hoodie.table.partition.fields": "day:TIMESTAMP",
    }
    with pytest.raises(Contradiction, match=r"CUSTOM: it makes folders of times, .* every query; or write"):
        check_table(Definition(properties={**FITTING, **own}), SPEC)


@pytest.mark.parametrize("index", ["column.stats", "partition.stats", "expression"])
def test_a_table_with_an_index_that_loses_rows_is_refused(index: str) -> None:
    name = f"hoodie.metadata.index.{index}.enable"
    check_table(Definition(properties={**FITTING, name: "false"}), SPEC)
    with pytest.raises(Contradiction, match=rf"enable {name}: readers .* lose rows .*NaN .*Set it to false"):
        check_table(Definition(properties={**FITTING, name: "true"}), SPEC)
