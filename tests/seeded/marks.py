"""How far a table is complete by event time: what counts, who holds it, and who is told."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.seeded.base import Bug, of
from tests.seeded.holes import Hole

TIMES = "tests/unit/participant/records/test_event_time.py"
PLANE = "tests/unit/participant/worker/test_plane.py"
SERVICER = "tests/unit/table/service/test_servicer.py"
GOALS = "tests/unit/lockstep/waiting/test_goals.py"
COMPLETE = "tests/unit/lockstep/hooks/test_complete.py"


def counts_the_absurd(right: Any) -> Any:
    def sane(reader: Any, values: Any, stamps: Any, scale: Any) -> Any:
        found = right(reader, values, stamps, scale)
        return dataclasses.replace(found, values=values, absurd=0)

    return sane


def asks_for_what_can_be_read(right: Any) -> Any:
    def made(asked: Any, ask: Any, **more: Any) -> None:
        right(asked, ask.func, **more)

    return made


def counts_every_runs_time(right: Any) -> Any:
    def after(marking: Any, newest: Any, plan: Any, facts: Any, now_ms: int) -> Any:
        if newest is not None:
            marking._last = (newest.transaction, marking._last[1])
        return right(marking, newest, plan, facts, now_ms)

    return after


def keeps_what_an_earlier_transaction_saw(right: Any) -> Any:
    def opened(writing: Any, order: Any, files: Any) -> None:
        seen = writing._seen
        right(writing, order, files)
        writing._seen = seen

    return opened


def believes_any_watermark(right: Any) -> Any:
    def judge(goal: Any, *known: Any) -> Any:
        return right(dataclasses.replace(goal, of="") if hasattr(goal, "of") else goal, *known)

    return judge


def tells_of_what_has_begun(right: Any) -> Any:
    def completed(before_ms: Any, at_ms: Any, every_ms: int) -> Any:
        return right(before_ms, at_ms + every_ms if at_ms is not None else None, every_ms)

    return completed


def the_newest_thousand(right: Any) -> Any:
    return lambda *times: right(*times)[-1_000:]


BUGS: tuple[Bug, ...] = (
    Bug(
        "an_absurd_time_carries_the_watermark_away",
        "The year 9999 in one record makes all that comes later late, for ever.",
        Hole.COMPLETE,
        {"participant.records.event_time:EventTimeReader._sane": counts_the_absurd},
        of(
            TIMES,
            "test_what_is_too_far_ahead_of_its_record_or_of_the_clock_is_absurd_and_counted",
            "test_a_record_that_has_no_timestamp_is_held_to_the_clock_alone",
        ),
    ),
    Bug(
        "an_open_transaction_hides_what_is_to_come",
        "Who has records in an open transaction of a producer is taken for read to its end, and idle.",
        Hole.COMPLETE,
        {"table.service.log_ends:AskedBeside.__init__": asks_for_what_can_be_read},
        of(SERVICER, "test_records_in_an_open_transaction_of_a_producer_are_to_come"),
    ),
    Bug(
        "the_time_without_a_run_counts",
        "While no run was there nothing was read, and that is taken for nothing having come.",
        Hole.COMPLETE,
        {"table.service.marking:Marking.after": counts_every_runs_time},
        of(
            SERVICER,
            "test_how_long_nothing_came_is_known_to_the_next_run_and_what_lay_between_is_not_counted",
        ),
    ),
    Bug(
        "event_times_of_a_transaction_stay",
        "What a worker saw in a transaction that was given up moves the watermark of the next one.",
        Hole.COMPLETE,
        {"participant.worker.writing:Writing.open": keeps_what_an_earlier_transaction_saw},
        of(
            PLANE,
            "test_event_times_are_told_of_what_was_written_and_those_behind_the_watermark_are_counted",
        ),
    ),
    Bug(
        "any_watermark_is_waited_for",
        "A watermark of another event time, which a new configuration has left behind, ends the waiting.",
        Hole.COMPLETE,
        {"lockstep.waiting.goals:judge": believes_any_watermark},
        of(GOALS, "test_no_watermark_is_not_reached_and_neither_is_one_of_another_event_time"),
    ),
    Bug(
        "a_day_is_told_when_it_begins",
        "A stretch of event time is told as complete as soon as the watermark is in it.",
        Hole.COMPLETE,
        {"lockstep.hooks.stretches:completed": tells_of_what_has_begun},
        of(COMPLETE, "test_each_stretch_is_completed_by_one_commit_in_order_and_none_before_its_end"),
    ),
    Bug(
        "a_commit_reports_a_thousand_stretches",
        "Of a commit that completes more than 1,000 stretches only the newest 1,000 get a marker.",
        Hole.TOLD,
        {"lockstep.hooks.stretches:completed": the_newest_thousand},
        of(COMPLETE, "test_a_commit_that_completes_more_than_a_thousand_stretches_has_a_marker_for_each"),
    ),
    Bug(
        "stretches_of_lost_commits_are_lost",
        "Stretches that commits completed which the timeline has lost are never reported.",
        Hole.TOLD,
        {"lockstep.hooks.commits:_before_ms": lambda _right: lambda mark, _lost: mark.before_ms},
        of(
            "tests/unit/lockstep/hooks/test_history.py",
            "test_stretches_of_commits_that_the_timeline_has_lost_are_reported_by_the_commit_after_them",
        ),
    ),
)
