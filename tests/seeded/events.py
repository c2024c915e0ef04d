"""Events whose values are not what they look like: placeholders, encoded numbers, deletes."""

from __future__ import annotations

from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

CONFIG = "tests/unit/lockstep/config/test_decimals.py"
DECIMALS = "tests/unit/participant/records/envelopes/debezium/test_decimals.py"
NATURAL = "tests/unit/participant/records/by_schema/test_natural.py"
ECHOES = "tests/unit/participant/records/envelopes/debezium/test_echoes.py"
PLAIN = "tests/unit/participant/records/envelopes/test_plain.py"
ECHOES = "tests/unit/participant/records/envelopes/debezium/test_echoes.py"
UNAVAILABLE = "tests/unit/participant/records/test_unavailable.py"


def only_text(right: Any) -> Any:
    return lambda placeholder: {placeholder.decode(errors="replace")}


def unchanged(
    _echoes: Any, _batch: Any, _changes: Any, tombstones: Any, nameless: Any, _fields: Any = None
) -> Any:
    return tombstones, nameless


def complete_as_rows(right: Any) -> Any:
    def complete(decoder: Any, decoded: Any, deleted: Any, offsets: Any) -> Any:
        left, _ = right(decoder, decoded, deleted & False, offsets)
        flags = left.table.column(decoder._delete_field)
        return left, flags.fill_null(False).to_numpy()

    return complete


def date_as_it_is(_cls: Any, fields: Any, made: Any) -> Any:
    return made(fields)


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
        "mapped_columns_need_no_field",
        "Values of another type's schema become rows of nulls where a column comes from elsewhere.",
        Hole.VALUES,
        {"participant.records.port:REJECT": lambda _right: "nothing"},
        of(
            "tests/conformance/test_formats.py",
            "test_values_of_a_type_that_has_none_of_the_columns_are_no_rows_of_nulls",
        ),
    ),
    Bug(
        "json_of_a_registry_needs_no_field",
        "JSON behind the id of a schema becomes a row of nulls if it has the field of no column.",
        Hole.VALUES,
        {"participant.records.json.found_fields:FRAMES": lambda _right: ()},
        of(
            "tests/unit/participant/records/json_schema/test_decoder.py",
            "test_a_value_without_a_field_of_any_column_is_a_reject",
        ),
    ),
    Bug(
        "keys_of_several_fields_are_joined_blindly",
        "Two rows of an upsert table have one key, since a text holds what stands between two fields.",
        Hole.NEIGHBOURS,
        {"table.hudi.files.keys:ambiguous": always({})},
        of(
            "tests/unit/table/hudi/files/test_upserts.py",
            "test_rows_and_deletes_whose_key_may_be_another_rows_are_rejects",
        ),
    ),
    Bug(
        "a_tombstone_without_a_key_is_a_reject",
        "The tombstone of a source's table without a primary key halts the run at its first delete.",
        Hole.NEIGHBOURS,
        {"participant.records.envelopes.debezium.echoes:_may_have_one_key": always(False)},
        of(
            ECHOES,
            "test_a_tombstone_without_a_key_has_the_key_of_the_delete_before_it_and_alone_is_refused",
        ),
    ),
    Bug(
        "a_date_of_a_key_is_a_text_only",
        "A lone tombstone whose key has a date as Debezium numbers it is a reject.",
        Hole.NEIGHBOURS,
        {"participant.records.envelopes.debezium.date_keys:DateKeys.of": lambda _right: date_as_it_is},
        of(
            "tests/unit/participant/records/envelopes/debezium/test_date_keys.py",
            "test_a_date_is_a_number_or_a_text_with_or_without_a_z",
        ),
    ),
    Bug(
        "a_quoted_nan_is_a_text",
        "NaN and Infinity as Kafka Connect writes them are rejects.",
        Hole.NEIGHBOURS,
        {"participant.records.json.decoder:with_bare_words": always(None)},
        of(
            "tests/unit/participant/records/json/test_decode_types.py",
            "test_a_value_of_the_columns_type_is_kept_as_it_is",
        ),
    ),
    Bug(
        "an_echo_goes_by_the_columns_name",
        "A tombstone without a key deletes the row of a field that only has a column's name.",
        Hole.NEIGHBOURS,
        {"participant.records.columns.decoder:_unchanged": always(None)},
        of(ECHOES, "test_the_key_of_a_delete_is_what_the_columns_are_read_from"),
    ),
    Bug(
        "nobody_looks_back_for_a_delete",
        "A tombstone without a key is a reject if the read begins between it and its delete once more.",
        Hole.NEIGHBOURS,
        {"participant.records.envelopes.debezium.echoes:Echoes.knows": always(True)},
        of(ECHOES, "test_a_batch_that_is_read_again_has_the_delete_before_it"),
    ),
    Bug(
        "a_null_payload_is_no_tombstone",
        "A null in Kafka Connect's envelope is a reject, and the row that it deletes stays.",
        Hole.NEIGHBOURS,
        {"participant.records.null_payloads:is_null": always(False)},
        of("tests/unit/participant/records/envelopes/test_connect.py", "test_a_null_payload_is_a_tombstone"),
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
    Bug(
        "a_delete_needs_required_columns",
        "A delete by a field is refused where it lacks a column that is NOT NULL, and the run halts.",
        Hole.VALUES,
        {"participant.records.envelopes.plain:ChangeDecoder._complete": complete_as_rows},
        of(PLAIN, "test_a_delete_may_lack_required_columns_and_a_row_may_not"),
    ),
    Bug(
        "an_echo_needs_a_readable_key",
        "A tombstone right behind its delete is refused where its key has another shape, and the run halts.",
        Hole.VALUES,
        {"participant.records.envelopes.debezium.echoes:Echoes.keyed": lambda _right: unchanged},
        of(
            ECHOES,
            "test_a_tombstone_with_a_strange_key_has_the_key_of_the_delete_before_it",
            "test_a_run_that_begins_between_the_two_looks_at_the_record_before",
        ),
    ),
    Bug(
        "an_echo_may_have_another_key",
        "A tombstone is taken for the echo of the delete before it, though their keys differ.",
        Hole.VALUES,
        {"participant.records.envelopes.debezium.echoes:_may_have_one_key": always(True)},
        of(ECHOES, "test_a_tombstone_of_another_key_than_the_delete_before_it_is_refused"),
    ),
)
