"""Events whose values are not what they look like: placeholders, encoded numbers, deletes."""

from __future__ import annotations

from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

NATURAL = "tests/unit/participant/records/by_schema/test_natural.py"
UNAVAILABLE = "tests/unit/participant/records/test_unavailable.py"


def only_text(right: Any) -> Any:
    return lambda placeholder: {placeholder.decode(errors="replace")}


BUGS = (
    Bug(
        "a_placeholder_is_stored",
        "Debezium's placeholder for a value that an event lacks overwrites the stored value.",
        Hole.VALUES,
        {"participant.records.unavailable:UnavailableValues.find": always(None)},
        of(
            UNAVAILABLE,
            "test_the_placeholder_is_a_reject_that_names_the_field_in_a_column_of_any_type",
            "test_avro_is_refused_as_well",
        ),
    ),
    Bug(
        "a_placeholder_is_known_as_plain_text_only",
        "The placeholder is not recognized where the connector encodes binary values as text.",
        Hole.VALUES,
        {"participant.records.unavailable:_texts": only_text},
        of(UNAVAILABLE, "test_an_array_of_uuids_has_the_uuid_that_is_made_of_the_placeholder"),
    ),
    Bug(
        "a_placeholder_inside_an_array_is_a_value",
        "Elements of arrays and maps are not compared with the placeholder.",
        Hole.VALUES,
        {"participant.records.unavailable:UnavailableValues._of_list": always(())},
        of(UNAVAILABLE, "test_slices_chunks_and_nulls_leave_each_row_its_own"),
    ),
    Bug(
        "a_decimal_of_connect_is_bytes",
        "A decimal whose scale Avro does not allow, such as a NUMBER of Oracle, is stored as bytes.",
        Hole.VALUES,
        {"participant.records.avro.schema:_connect_decimal": always(("", 0, 0))},
        of(
            NATURAL,
            "test_a_decimal_of_connect_that_has_no_column_is_refused_by_the_name_of_its_field",
            "test_a_decimal_of_connect_has_a_column_with_room_for_all_of_its_numbers",
        ),
    ),
)
