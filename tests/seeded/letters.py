"""Dead letters that are looked at and sent back."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.seeded.base import Bug, of
from tests.seeded.holes import Hole

ON_A_BROKER = "tests/integration/test_letters.py"


def an_id_for_each(right: Any) -> Any:
    numbers = count()

    def settings(kafka: Any, topic: str, **limits: int) -> Any:
        return right(kafka, topic, **limits) | {"transactional.id": f"{topic}-{next(numbers)}"}

    return settings


def begins_later(_right: Any) -> Any:
    return lambda replay: None


def sends_and_begins_with_it(right: Any) -> Any:
    def send(replay: Any, letters: Any) -> Any:
        if not replay._sent:
            replay._producer.init_transactions(60.0)
        return right(replay, letters)

    return send


BUGS = (
    Bug(
        "marks_are_read_before_others_are_ended",
        "Whoever sends letters back reads what is marked, and only then ends who may still mark.",
        Hole.LETTERS,
        {
            "lockstep.letters.replay:Replay.begin": begins_later,
            "lockstep.letters.replay:Replay.send": sends_and_begins_with_it,
        },
        of(ON_A_BROKER, "test_who_reads_marks_has_ended_before_whoever_might_still_mark"),
    ),
    Bug(
        "a_letter_goes_back_without_a_mark",
        "A dead letter is sent back, and nothing says so: the next time it is sent again.",
        Hole.LETTERS,
        {"lockstep.letters.replay:Replay._marks": lambda _right: lambda replay, letters, went: None},
        of(
            ON_A_BROKER,
            "test_a_letter_goes_back_once_however_often_it_was_set_aside_and_is_asked_for",
            "test_a_replay_that_is_killed_at_any_step_and_begun_again_sends_each_letter_once",
        ),
    ),
    Bug(
        "whoever_sends_letters_back_is_alone",
        "Each replay has a transactional id of its own: nobody ends who is at it, and letters go back twice.",
        Hole.LETTERS,
        {"lockstep.letters.replay:producer_settings": an_id_for_each},
        of(ON_A_BROKER, "test_who_begins_ends_who_was_at_it_and_each_letter_goes_back_once"),
    ),
    Bug(
        "marks_may_be_lost",
        "What was sent back is kept where retention removes it: letters are sent twice then.",
        Hole.LETTERS,
        {"lockstep.letters.topics:LetterTopics.ensure_marks": lambda _right: lambda *_, **__: None},
        of(ON_A_BROKER, "test_a_topic_of_marks_that_may_lose_them_is_refused"),
    ),
    Bug(
        "a_letters_content_is_shown_to_whoever_asks",
        "What is in a record is told without --values.",
        Hole.LETTERS,
        {"lockstep.letters.report:as_json": lambda right: lambda seen, *, values: right(seen, values=True)},
        of(
            "tests/unit/lockstep/letters/test_report.py",
            "test_without_values_nothing_of_a_records_content_is_told",
        ),
    ),
)
