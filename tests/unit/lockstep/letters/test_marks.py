"""Marks of letters that were sent back."""

from __future__ import annotations

import json

import pytest

from control_topic.messages import SourcePartition
from lockstep.errors import Failed
from lockstep.letters.marks import By, Marks, SentBack, mark_topic, mark_value
from tests.unit.lockstep.letters.made import letter

PLACE = SourcePartition("events.dlq.replayed", 0)
WENT = SentBack(number=4, offset=2**40, time_ms=1_700_000_300_000)
BY = By(pipeline="events", operator="ann", why="ticket 4711")


def test_a_mark_says_which_record_went_where_and_on_whose_word_and_nothing_of_its_content() -> None:
    told = mark_value(letter(), WENT, BY)
    assert json.loads(told) == {
        "version": 1,
        "topic": "events",
        "partition": 3,
        "offset": 12,
        "timestamp": 1_700_000_000_000,
        "letter": {"partition": 0, "offset": 7},
        "sent_to": {"partition": 4, "offset": 2**40},
        "time": 1_700_000_300_000,
        "pipeline": "events",
        "operator": "ann",
        "why": "ticket 4711",
    }


def test_what_was_marked_is_found_by_its_letter() -> None:
    marks = Marks()
    marks.add(PLACE, letter().mark.encode(), mark_value(letter(), WENT, BY))
    assert marks[letter().identity] == WENT
    assert list(marks) == [letter().identity] and len(marks) == 1
    assert letter(13).identity not in marks


@pytest.mark.parametrize(
    "value", [b"", b"no json", b"[]", b'{"sent_to": {}}', b'{"sent_to": {"partition": 1e400}}']
)
def test_a_mark_of_another_version_counts_by_its_key(value: bytes) -> None:
    marks = Marks()
    marks.add(PLACE, letter().mark.encode(), value)
    assert letter().identity in marks and marks[letter().identity].offset == -1


def test_what_has_no_key_marks_nothing() -> None:
    marks = Marks()
    marks.add(PLACE, None, b"{}")
    marks.add(PLACE, letter().mark.encode(), None)
    assert not marks


def test_more_marks_than_memory_is_meant_for_are_refused() -> None:
    marks = Marks(marks_max=1)
    marks.add(PLACE, b"a", b"{}")
    with pytest.raises(Failed, match=r"events\.dlq\.replayed has more than 1 marks"):
        marks.add(PLACE, b"b", b"{}")


def test_the_topic_of_marks_stands_beside_that_of_letters() -> None:
    assert mark_topic("events.dlq") == "events.dlq.replayed"
