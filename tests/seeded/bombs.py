"""Small inputs that take all memory or hours, and registries that are reset or asked for thousands of ids."""

from __future__ import annotations

from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

BOMBS = "tests/unit/participant/records/test_bombs.py"
PLANE = "tests/unit/participant/worker/test_plane.py"
STALLS = "tests/unit/participant/source/test_stalls.py"
SESSION = "tests/unit/participant/records/registry/test_session.py"
COUNTED = "test_a_plain_decoder_counts_items_and_names"


def without_a_limit(right: Any) -> Any:
    def settings(kafka: Any, **given: Any) -> Any:
        made = right(kafka, **given)
        return {**made, "receive.message.max.bytes": kafka.get("receive.message.max.bytes", 100_000_000)}

    return settings


def all_at_once(right: Any) -> Any:
    def get(queue: Any, timeout_s: float, *, orders_only: bool = False) -> Any:
        return right(queue, timeout_s)

    return get


BUGS = (
    Bug(
        "items_of_json_are_not_counted",
        "JSON items that are null or empty become rows of all of their columns, without a limit.",
        Hole.BOMBS,
        {"participant.records.json.decoder:bounds": always(None)},
        of(BOMBS, "test_what_is_too_large_is_a_reject_among_rows_by_its_own_offset"),
    ),
    Bug(
        "items_of_avro_are_not_counted",
        "Avro items of a byte become rows of all of their columns, without a limit.",
        Hole.BOMBS,
        {"participant.records.by_schema.value_count:ValueCount.spend": always(None)},
        of(BOMBS, COUNTED),
    ),
    Bug(
        "an_enums_name_counts_nothing",
        "A byte of Avro or Protobuf becomes an enum's name of any length, without a limit.",
        Hole.BOMBS,
        {"participant.records.by_schema.value_count:ValueCount.spend_name": always(None)},
        of(BOMBS, COUNTED),
    ),
    Bug(
        "fields_of_a_schema_are_not_counted",
        "A schema whose types each use the one before twice is looked at 2^26 times.",
        Hole.BOMBS,
        {"participant.records.by_schema.following:FIELDS_MAX": lambda _right: 1_000_000},
        of(BOMBS, "test_a_schema_of_a_few_kilobytes_whose_types_double_goes_into_no_column"),
    ),
    Bug(
        "levels_by_name_are_not_counted",
        "Avro types that are nested by name are nested without a limit, and the reader ends the worker.",
        Hole.BOMBS,
        {"participant.records.avro.schema:_Tree._levels": always(1)},
        of(BOMBS, "test_types_that_are_nested_by_name_are_as_deep_as_those_that_are_nested_in_the_text"),
    ),
    Bug(
        "buffers_that_are_full_take_more",
        "The data plane decodes what was fetched though its buffers are full.",
        Hole.BOMBS,
        {"participant.worker.queues:ByteQueue.get": all_at_once},
        of(PLANE, "test_nothing_more_is_decoded_while_the_buffers_are_full_and_orders_are_obeyed"),
    ),
    Bug(
        "the_clients_largest_answer_is_its_default",
        "A record of more than 100 MB, or a batch that unpacks to 60 MB, cannot be read whatever the memory.",
        Hole.BOMBS,
        {"participant.source.fetcher:fetch_settings": without_a_limit},
        of(STALLS, "test_the_largest_answer_is_half_of_the_memory_unless_it_is_set"),
    ),
    Bug(
        "an_answer_that_is_too_large_is_waited_for",
        "An answer that is larger than the client takes is taken for silence, and then for damage.",
        Hole.STANDSTILL,
        {"participant.source.reading:SourceThread._is_oversized": always(False)},
        of(STALLS, "test_an_answer_that_is_larger_than_the_client_takes_halts_soon_and_names_the_property"),
    ),
    Bug(
        "a_registry_that_is_reset_is_not_noticed",
        "A schema is asked for once, so that records are read by the schema that its id had before.",
        Hole.REGISTRY,
        {"participant.records.registry.client:RegistryClient.forget": always(None)},
        of(
            SESSION,
            "test_a_registry_that_is_reset_stops_the_worker_which_names_the_offsets_that_may_be_wrong",
        ),
    ),
    Bug(
        "unknown_ids_have_no_budget",
        "Each unknown id of a batch is asked for, one after another, in the thread that writes.",
        Hole.REGISTRY,
        {"participant.records.registry.session:RegistrySession.check_budget": always(None)},
        of(
            SESSION,
            "test_ids_that_are_unknown_take_no_more_than_the_budget_of_a_batch_and_come_to_an_end",
        ),
    ),
)
