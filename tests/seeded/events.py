"""Events whose values are not what they look like: placeholders, encoded numbers, deletes."""

from __future__ import annotations

from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

CONFIG = "tests/unit/lockstep/config/test_decimals.py"
DECIMALS = "tests/unit/participant/records/envelopes/debezium/test_decimals.py"
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
    Bug(
        "the_schema_of_a_decimal_is_not_read",
        "Base64 that looks like digits is stored as those digits, though the event's schema says base64.",
        Hole.VALUES,
        {"participant.records.envelopes.debezium.decimals:EventSchemas.encodings": always(None)},
        of(DECIMALS, "test_the_schema_in_the_event_decides_whatever_is_configured"),
    ),
    Bug(
        "a_string_is_taken_for_a_double",
        "A string of digits is taken where decimals are numbers, though it may be base64.",
        Hole.VALUES,
        {"participant.records.envelopes.debezium.decimals:_Strict._text": always(None)},
        of(
            DECIMALS,
            "test_without_a_schema_the_setting_decides",
            "test_numbers_and_base64_may_be_in_one_batch_and_not_in_one_event",
        ),
    ),
    Bug(
        "decimals_need_no_encoding",
        "A run with a DECIMAL column begins though nothing says how decimals are encoded.",
        Hole.VALUES,
        {"lockstep.config.checks:check_decimals": always(())},
        of(CONFIG, "test_a_decimal_column_is_refused_until_its_encoding_is_configured"),
    ),
)
