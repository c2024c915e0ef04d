"""A run that stands still, source partitions that cannot be read, and where those begin that are new."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tests.seeded.base import Bug, Wrong, of
from tests.seeded.holes import Hole

STALLS = "tests/unit/participant/source/test_stalls.py"
MEMBERSHIP = "tests/unit/participant/source/test_membership_errors.py"
STANDS = "tests/unit/lockstep/driver/test_stands.py"
STARTS = "tests/unit/lockstep/driver/test_starts.py"

NEVER: Wrong = lambda _right: math.inf  # noqa: E731
NOBODY: Wrong = lambda _right: frozenset()  # noqa: E731


class Everything(frozenset[int]):
    def __contains__(self, _code: object) -> bool:
        return True


def as_workers_say(_right: Any) -> Any:
    return lambda stands, seen: {partition for worker in seen.workers for partition in worker.owned}


def runs_though_it_waits(right: Any) -> Any:
    return lambda starts, seen, step_s: right(starts, dataclasses.replace(seen, waits=False), step_s)


def without_a_place(_right: Any) -> Any:
    def stick(source: Any, partition: Any, position: Any, reason: str) -> None:
        position.stuck = True
        source._stalls.clear(partition)
        source._fetcher.drop(partition)
        source._callbacks.stuck(partition, position.generation, reason)

    return stick


def takes_an_early_end_for_idle(right: Any) -> Any:
    def look(source: Any) -> None:
        bounds = source._fetcher.bounds
        at_most = max((position.next for position in source._positions.values()), default=0)
        source._fetcher.bounds = lambda partition: (bounds(partition)[0], max(bounds(partition)[1], at_most))
        try:
            right(source)
        finally:
            source._fetcher.bounds = bounds

    return look


def forgets_that_it_turned(right: Any) -> Any:
    def read_from(source: Any, partition: Any, offset: int) -> None:
        right(source, partition, offset)
        source._turned.clear()

    return read_from


def looks_at_the_record_alone(right: Any) -> Any:
    def at(look: Any, batch: Any) -> Any:
        look.known = dataclasses.replace(look.known, nothing_until=0)
        return right(look, batch)

    return at


def takes_an_end_for_a_proof(right: Any) -> Any:
    def at_end(look: Any, end: Any) -> Any:
        return right(look, look.next)

    return at_end


def loses_nothing(right: Any) -> Any:
    return lambda plan, before: right(dataclasses.replace(plan, lost=()), before)


def counts_ranges_of_records(right: Any) -> Any:
    def wrote(remembered: Any, status: Any) -> None:
        named = {witness.partition for witness in status.witnesses}
        right(
            remembered,
            dataclasses.replace(status, ranges=tuple(r for r in status.ranges if r.partition in named)),
        )

    return wrote


def takes_a_refusal_for_retention(right: Any) -> Any:
    def refused(look: Any) -> Any:
        look.reached = True
        return right(look)

    return refused


def from_the_beginning(right: Any) -> Any:
    def on_assign(member: Any, consumer: Any, partitions: Any) -> None:
        from control_topic.messages import SourcePartition

        callbacks, known = member._callbacks, member._callbacks.committed() or {}
        zeros = {SourcePartition(p.topic, p.partition): 0 for p in partitions}
        member._callbacks = dataclasses.replace(callbacks, committed=lambda: {**zeros, **known})
        right(member, consumer, partitions)
        member._callbacks = callbacks

    return on_assign


BUGS = (
    Bug(
        "a_group_error_is_the_clients_affair",
        "That the consumer group does not take a worker in, as beside a foreign assignor, is said nowhere.",
        Hole.STANDSTILL,
        {"participant.source.membership:PASSING": lambda _right: Everything()},
        of(MEMBERSHIP, "test_an_error_of_the_group_is_an_alarm_and_one_that_passes_is_none"),
    ),
    Bug(
        "a_group_error_may_last",
        "An error of the consumer group that does not pass ends nothing, however long it lasts.",
        Hole.STANDSTILL,
        {"participant.source.group_trouble:GroupTrouble.final": lambda _right: lambda trouble, now_s: ""},
        of(
            STALLS,
            "test_a_group_error_is_said_again_from_time_to_time_and_final_when_it_lasts",
            "test_a_lasting_group_error_is_not_over_between_two_attempts_to_join",
        ),
    ),
    Bug(
        "a_right_that_is_missing_is_waited_for",
        "That the group may not be joined is an error like another, and no end at once.",
        Hole.STANDSTILL,
        {"participant.source.membership:FORBIDDEN": NOBODY},
        of(MEMBERSHIP, "test_only_a_fenced_member_is_fenced"),
    ),
    Bug(
        "what_nobody_reads_ends_nothing",
        "Source partitions that nobody reads are an alarm for as long as it lasts.",
        Hole.STANDSTILL,
        {"lockstep.driver.stands:UNREAD_MAX_S": NEVER},
        of(
            STANDS,
            "test_a_group_that_may_not_be_looked_at_keeps_nobody_from_counting",
            "test_a_rebalance_that_a_busy_member_never_ends_names_that_member_and_ends_the_run",
        ),
    ),
    Bug(
        "a_worker_is_believed_what_it_owns",
        "A worker that has lost the broker counts as an owner, whatever the group says.",
        Hole.STANDSTILL,
        {"lockstep.driver.stands:Stands._read": as_workers_say},
        of(
            STANDS,
            "test_workers_that_lost_the_broker_do_not_know_that_they_own_nothing_any_more_and_the_group_does",
        ),
    ),
    Bug(
        "a_first_report_is_waited_for",
        "A worker that does not come up is started again and again.",
        Hole.STANDSTILL,
        {"lockstep.driver.starts:STARTS_MAX": NEVER},
        of(
            STARTS,
            "test_one_that_does_not_come_up_is_killed_once_and_the_second_that_does_not_ends_the_run",
        ),
    ),
    Bug(
        "a_task_without_a_slot_is_late",
        "A worker whose task has no Spark slot yet is killed for its silence.",
        Hole.STANDSTILL,
        {"lockstep.driver.starts:Starts._count": runs_though_it_waits},
        of(
            STARTS,
            "test_a_task_without_a_spark_slot_is_not_killed_and_waited_for_as_an_outage_is",
        ),
    ),
    Bug(
        "damage_is_read_for_ever",
        "A batch that is damaged in the log is read again and again.",
        Hole.BEGINNINGS,
        {"participant.source.stalls:Standstill.is_final": lambda _right: lambda still, offset: False},
        of(STALLS, "test_damage_is_read_again_and_named_when_it_is_there_each_time"),
        raises={"builtins.ValueError": "not enough values to unpack"},
    ),
    Bug(
        "a_log_that_ends_early_is_idle",
        "A log of which less can be read than was read before stands still, and nobody is told.",
        Hole.STANDSTILL,
        {"participant.source.reading:SourceThread._look": takes_an_early_end_for_idle},
        of(STALLS, "test_a_log_that_ends_before_what_was_read_of_it_is_an_alarm_and_never_final"),
        raises={"builtins.ValueError": "not enough values to unpack"},
    ),
    Bug(
        "what_lies_behind_damage_is_delivered",
        "Where the client has gone on behind damage, the hole between is not noticed.",
        Hole.BEGINNINGS,
        {"participant.source.reading:before_damage": lambda _right: lambda batches, notices: batches},
        of(STALLS, "test_nothing_behind_damage_is_delivered_though_the_client_has_gone_on"),
    ),
    Bug(
        "what_was_said_before_a_turn_counts_behind_it",
        "An end of the log that was reached before the reading turned back passes over what is read again.",
        Hole.BEGINNINGS,
        {"participant.source.reading:SourceThread._read_from": forgets_that_it_turned},
        of(
            "tests/unit/participant/source/test_witnesses.py",
            "test_much_that_others_have_read_is_passed_over_at_once",
        ),
        raises={"participant.errors.SourceUnreadable": "the consumer delivered offset 8"},
    ),
    Bug(
        "what_stands_behind_the_last_record_is_not_looked_at",
        "A cut that leaves the last record and takes only what was aborted behind it is not noticed.",
        Hole.BEGINNINGS,
        {"participant.source.look:Look.at": looks_at_the_record_alone},
        of(
            "tests/unit/participant/source/test_witnesses.py",
            "test_a_record_where_there_was_none_ends_the_reading",
            "test_so_it_does_where_the_record_itself_was_compacted_away",
        ),
        raises={"builtins.IndexError": "list index out of range"},
    ),
    Bug(
        "an_end_before_the_record_proves_that_it_is_gone",
        "Where the log ends before the last record that was read, what grows there then is not compared.",
        Hole.BEGINNINGS,
        {"participant.source.look:Look.at_end": takes_an_end_for_a_proof},
        of(
            "tests/unit/participant/source/test_witnesses.py",
            "test_what_grew_meanwhile_is_looked_at_before_anything_is_delivered",
        ),
    ),
    Bug(
        "a_place_that_is_refused_was_taken_by_retention",
        "A log that was cut before the last record and grows again is taken for one that lost its beginning.",
        Hole.BEGINNINGS,
        {"participant.source.look:Look.refused": takes_a_refusal_for_retention},
        of(
            "tests/unit/participant/source/test_witnesses.py",
            "test_one_that_was_refused_and_is_there_after_all_is_compared",
        ),
    ),
    Bug(
        "what_was_lost_held_no_record",
        "A record counts as the last before offsets that retention took: where the log's beginning comes"
        " back, a whole log halts the run.",
        Hole.BEGINNINGS,
        {"table.checks:CommitPlan.witnesses_after": loses_nothing},
        of(
            "tests/unit/table/service/test_servicer.py",
            "test_none_is_known_to_be_the_last_where_offsets_behind_it_were_lost",
        ),
    ),
    Bug(
        "a_range_without_a_record_says_nothing_of_the_log",
        "That a worker met no record behind the last one is forgotten: a cut there is not noticed.",
        Hole.BEGINNINGS,
        {"participant.source.witnesses:Remembered.wrote": counts_ranges_of_records},
        of(
            "tests/unit/participant/source/test_witnesses.py",
            "test_a_range_without_a_record_leaves_the_last_one_the_last",
        ),
    ),
    Bug(
        "a_place_that_cannot_be_read_has_no_name",
        "Why a source partition cannot be read is said without topic, source partition and offset.",
        Hole.BEGINNINGS,
        {"participant.source.reading:SourceThread._stick": without_a_place},
        of(
            STALLS,
            "test_damage_is_read_again_and_named_when_it_is_there_each_time",
            "test_lag_without_progress_is_an_alarm_and_then_final",
        ),
    ),
    Bug(
        "what_has_no_offset_begins_at_0",
        "A source partition that the table has no offset of is read from 0, wherever its log begins.",
        Hole.BEGINNINGS,
        {"participant.source.membership:Membership._on_assign": from_the_beginning},
        of(
            MEMBERSHIP,
            "test_what_is_given_has_the_tables_offset_or_none_and_nothing_is_read_of_it_here",
        ),
    ),
)
