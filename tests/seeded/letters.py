"""Dead letters that are looked at and sent back."""

from __future__ import annotations

from itertools import count, islice
from typing import Any

from tests.seeded.base import Bug, always, of
from tests.seeded.holes import Hole

ON_A_BROKER = "tests/integration/test_letters.py"
PROOFS = "tests/unit/lockstep/letters/test_committed_rejects.py"


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


def newest_only(right: Any) -> Any:
    return lambda spans, offset: islice(right(spans, offset), 1)


def all_rejected(right: Any) -> Any:
    def standing(rejects: Any, letter: Any) -> Any:
        return type(right(rejects, letter)).REJECTED

    return standing


def of_all_runs(_right: Any) -> Any:
    def count_letter(committed: Any, letter: Any) -> None:
        for span in committed._covering(letter):
            if span.rejects is not None:
                span.rejects.letters.add(letter.identity)

    return count_letter


def without_count(right: Any) -> Any:
    def standing(rejects: Any, letter: Any) -> Any:
        found = right(rejects, letter)
        return type(found).REJECTED if found == "undecided" else found

    return standing


BUGS = (
    Bug(
        "a_letter_of_an_aborted_transaction_is_replayed",
        "A replay asks no commit whether the record of a letter was rejected: it may be a row.",
        Hole.LETTERS,
        {"lockstep.letters.committed_rejects:CommittedRejects.standing": all_rejected},
        of(PROOFS, "test_a_letter_of_an_aborted_transaction_whose_record_is_a_row_is_not_replayed"),
    ),
    Bug(
        "one_commit_of_several_decides_on_a_letter",
        "A replay asks only one of the commits that cover an offset, though an operator moved offsets back.",
        Hole.LETTERS,
        {"lockstep.letters.committed_rejects:_Spans.covering": newest_only},
        of(PROOFS, "test_a_record_that_one_of_two_commits_made_a_row_is_not_replayed"),
    ),
    Bug(
        "an_unlisted_letter_is_taken_for_a_reject",
        "If a commit lists only some of its rejects, every letter in its ranges counts as one of them.",
        Hole.LETTERS,
        {"lockstep.letters.committed_rejects:_Rejects.standing": without_count},
        of(PROOFS, "test_more_letters_than_a_commit_counted_prove_nothing_beyond_its_list"),
    ),
    Bug(
        "letters_of_all_runs_are_counted",
        "As many letters as a commit counted prove its rejects, whichever run wrote them.",
        Hole.LETTERS,
        {"lockstep.letters.committed_rejects:CommittedRejects.count": of_all_runs},
        of(
            PROOFS,
            "test_letters_that_name_no_run_prove_nothing_beyond_the_list",
            "test_no_history_lets_a_record_be_replayed_that_is_a_row",
        ),
    ),
    Bug(
        "a_missing_commit_is_no_obstacle_to_a_replay",
        "A replay takes a timeline that lacks commits for complete.",
        Hole.LETTERS,
        {"lockstep.letters.committed_rejects:continues": always(True)},
        of(PROOFS, "test_a_missing_commit_is_an_error_and_a_timeline_without_its_beginning_is_named"),
    ),
    Bug(
        "a_replay_ignores_other_readers",
        "A replay writes to a topic that another consumer group reads, and does not say so.",
        Hole.LETTERS,
        {"lockstep.letters.walk:other_groups": always({})},
        of(
            ON_A_BROKER,
            "test_a_replay_is_refused_while_another_group_reads_the_topic_unless_it_is_named",
        ),
    ),
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
