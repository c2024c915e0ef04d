"""Rejects and the dead-letter topic; change data that comes again; who writes for long."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

REJECTS = "tests/unit/participant/records/test_rejects.py"
LETTERS = "tests/unit/participant/source/test_dead_letters.py"
ON_A_BROKER = "tests/integration/test_dead_letters.py"
BINLOG = "tests/unit/participant/records/envelopes/debezium/test_binlog.py"
UPSERTS = "tests/unit/table/hudi/files/test_upserts.py"


def value_and_place(right: Any) -> Any:
    return lambda cls, batch, rejects: dataclasses.replace(
        right(cls, batch, rejects), keys=None, headers=None
    )


def perhaps_another_time(_right: Any) -> Any:
    def error(letters: Any, held: Any, _first: int, _answer: Any) -> Any:
        from participant.errors import DeadLetterUnavailable

        topic = letters.topic_for(held.partition)
        return DeadLetterUnavailable(f"the dead-letter topic {topic} took it not: their offsets do not move")

    return error


def in_silence(right: Any) -> Any:
    return lambda letters, rejected, step=None: right(letters, rejected)


def at_no_place(_right: Any) -> Any:
    def ordering(shaper: Any, table: Any) -> Any:
        import pyarrow as pa

        return pa.chunked_array([pa.nulls(table.num_rows, shaper._ordering_type)])

    return ordering


def with_no_past(right: Any) -> Any:
    def decoder(events: Any, *given: Any) -> Any:
        from participant.records.envelopes.debezium.order import LogOrder

        events._order = LogOrder()
        return right(events, *given)

    return decoder


def rows_first(right: Any) -> Any:
    """As if what is due by the rows of a batch went before its deletes were looked at."""

    def write(writer: Any, upserts: Any) -> None:
        gone = upserts.deletes
        none = dataclasses.replace(
            gone,
            record_key=gone.record_key.slice(0, 0),
            table_partition=gone.table_partition.slice(0, 0),
            ordering=gone.ordering.slice(0, 0),
            places=gone.places[:0],
        )
        right(writer, dataclasses.replace(upserts, deletes=none, length=0))
        no_rows = {
            name: getattr(upserts, name)[:0] for name in ("rows", "record_key", "table_partition", "places")
        }
        right(writer, dataclasses.replace(upserts, **no_rows))

    return write


def told_nobody(_right: Any) -> Any:
    def wrote(writing: Any, written: Any) -> None:
        writing._written = written

    return wrote


def counted_alone(right: Any) -> Any:
    def stepped(made: Any, **done: int) -> None:
        tell, made._tell = made._tell, None
        right(made, **done)
        made._tell = tell

    return stepped


BUGS = (
    Bug(
        "a_number_that_is_too_large_is_infinite",
        "A number beyond the range of its type, `10e308`, is a row that holds an infinity.",
        Hole.REJECTS,
        {"participant.records.json.decoder:holds_infinity": always(False)},
        of(
            "tests/unit/participant/records/json/test_decode_types.py",
            "test_what_is_spelled_as_infinite_is_kept_beside_a_number_beyond_the_range",
        ),
    ),
    Bug(
        "rejects_hold_nothing",
        "What is held of rejects, until the dead-letter topic has them, counts as no memory.",
        Hole.REJECTS,
        {"participant.records.rejects:HeldRejects.size_bytes": lambda _right: lambda held: 0},
        of(REJECTS, "test_what_is_held_of_a_reject_is_all_that_its_record_had"),
    ),
    Bug(
        "a_dead_letter_is_its_value",
        "A dead letter has no key and no headers of its record.",
        Hole.REJECTS,
        {"participant.records.rejects:HeldRejects.of": value_and_place},
        of(REJECTS, "test_what_is_held_of_a_reject_is_all_that_its_record_had"),
    ),
    Bug(
        "every_reject_has_a_name",
        "A worker names all rejects of a transaction, however many there are.",
        Hole.REJECTS,
        {"participant.worker.writing:REJECTS_LISTED_MAX": lambda right: 1_000 * right},
        of(
            "tests/integration/test_plane_rejects.py",
            "test_of_a_flood_of_rejects_all_are_counted_and_the_first_are_named",
        ),
    ),
    Bug(
        "what_is_refused_for_good_is_tried_again",
        "A reject that the dead-letter topic never takes ends worker after worker, as an outage would.",
        Hole.REJECTS,
        {"participant.source.dead_letters:DeadLetters._error": perhaps_another_time},
        of(
            LETTERS,
            "test_only_a_record_that_is_refused_alone_is_named_with_its_own_topic",
            "test_what_the_broker_is_to_blame_for_may_pass_and_what_the_topic_forbids_does_not",
        ),
        raises={"participant.errors.DeadLetterUnavailable": "took it not"},
    ),
    Bug(
        "a_missing_dead_letter_topic_is_left_to_workers",
        "That there is no dead-letter topic is found out by the first worker that has a reject.",
        Hole.REJECTS,
        {"lockstep.brokers.dead_letter_topics:DeadLetterTopics.ensure": lambda _right: lambda *_, **__: 0},
        of(ON_A_BROKER, "test_a_missing_topic_that_is_not_to_be_made_refuses_the_run_at_once"),
    ),
    Bug(
        "letters_are_taken_in_silence",
        "Nobody hears that a slow dead-letter topic takes what it is sent.",
        Hole.WRITERS,
        {"participant.source.dead_letters:DeadLetters.send": in_silence},
        of(LETTERS, "test_every_answer_is_told_to_whoever_waits"),
    ),
    Bug(
        "steps_of_a_writer_are_its_own",
        "What writes files counts its steps, and tells nobody.",
        Hole.WRITERS,
        {"table.hudi.files.durable:Files.stepped": counted_alone},
        of(
            "tests/unit/table/hudi/files/test_base_writer.py",
            "test_whoever_asked_is_told_of_each_step_of_the_writing",
        )
        + of(
            "tests/unit/table/hudi/files/test_log_writer.py",
            "test_whoever_asked_is_told_of_each_step_of_the_writing",
        ),
    ),
    Bug(
        "a_plane_writes_in_silence",
        "A worker's data plane hears how far its files are, and does not pass it on.",
        Hole.WRITERS,
        {"participant.worker.writing:Writing._wrote": told_nobody},
        of(
            "tests/unit/participant/worker/test_plane.py",
            "test_how_far_the_files_are_is_said_while_they_are_written_and_not_at_each_step",
        ),
    ),
    Bug(
        "positions_begin_again",
        "Positions beyond 4 GiB in a binlog begin again, and the changes there count as older.",
        Hole.AGAIN,
        {
            "participant.records.envelopes.debezium.order:LogOrder.expand": lambda _right: (
                lambda _order, _partition, _offsets, _source, numbers: numbers
            )
        },
        of(BINLOG, "test_the_events_of_a_transaction_beyond_four_gigabytes_have_growing_positions"),
    ),
    Bug(
        "an_earlier_file_is_forgotten",
        "Of a binlog beyond 4 GiB it is forgotten how far it was read, once the next file begins.",
        Hole.AGAIN,
        {"participant.records.envelopes.debezium.binlog:FILES_MAX": lambda _right: 1},
        of(BINLOG, "test_what_is_sent_once_more_from_the_end_of_an_earlier_file_keeps_its_numbers"),
    ),
    Bug(
        "a_tombstone_says_more_than_its_delete",
        "The tombstone that follows a delete's event deletes by itself: sent again, it takes a newer row.",
        Hole.AGAIN,
        {"table.hudi.files.upserts:_without_echoes": lambda _right: lambda tombstones, deletes: tombstones},
        of(UPSERTS, "test_a_tombstone_right_behind_its_event_of_change_data_says_nothing_more"),
    ),
    Bug(
        "rows_that_are_due_go_before_earlier_deletes",
        "A row that makes its file group due is written before a delete that came before it, and is gone.",
        Hole.AGAIN,
        {"table.hudi.files.log_writer:LogWriter.write": rows_first},
        of(
            "tests/unit/table/hudi/files/test_log_writer.py",
            "test_a_row_that_makes_its_group_due_is_not_undone_by_the_delete_that_came_before_it",
        ),
    ),
    Bug(
        "where_columns_grow_the_log_begins_anew",
        "Columns that grow make what was read of the source's log forgotten: a new log passes for the old.",
        Hole.AGAIN,
        {"participant.records.envelopes.debezium.envelope:ChangeEvents.decoder": with_no_past},
        of(
            "tests/unit/participant/records/envelopes/debezium/test_following.py",
            "test_a_new_log_is_noticed_where_columns_have_grown_in_between",
        ),
    ),
    Bug(
        "a_delete_has_no_place_in_the_log",
        "A delete is written without the place that its event has: sent again, it takes a newer row.",
        Hole.AGAIN,
        {"table.hudi.files.upserts:UpsertShaper._ordering": at_no_place},
        of(
            UPSERTS,
            "test_rows_and_deletes_keep_their_places_and_their_offsets",
            "test_a_tombstone_right_behind_its_event_of_change_data_says_nothing_more",
        ),
    ),
    Bug(
        "a_timestamp_is_taken_as_it_comes",
        "A record's timestamp is made microseconds whatever it is, and overflows.",
        Hole.AGAIN,
        {"table.columns:TIMES_MS": lambda _right: (-(2**63), 2**63 - 1)},
        of(
            "tests/unit/table/hudi/files/test_shaping.py",
            "test_a_timestamp_that_no_calendar_has_is_the_nearest_that_one_has",
        ),
        raises={"builtins.OverflowError": "date value out of range"},
    ),
)
