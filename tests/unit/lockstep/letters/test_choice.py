"""Which dead letters are meant."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from control_topic.messages import SourcePartition
from lockstep.errors import ConfigError, Failed
from lockstep.letters.choice import Choice, Chooser, Records, parse_records, parse_since
from lockstep.letters.letter import NoLetter, Place
from lockstep.letters.marks import SentBack
from tests.unit.lockstep.letters.made import AT, DEAD, letter

WENT = SentBack(number=3, offset=99, time_ms=5)
NOW_MS = 1_700_000_200_000


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("events", Records(topic="events")),
        ("events:3", Records(topic="events", number=3)),
        ("events:3=12", Records(topic="events", number=3, first=12, last=12)),
        ("a.b-c_d:0=1-20", Records(topic="a.b-c_d", number=0, first=1, last=20)),
        ("events:3=12-", Records(topic="events", number=3, first=12)),
    ],
)
def test_records_are_named_as_offsets_are_elsewhere(text: str, meant: Records) -> None:
    assert parse_records(text) == meant


@pytest.mark.parametrize(
    "text", ["", "events:", "events:x", "events=3", "events:3=-1", "events:3=9-8", "e v"]
)
def test_what_names_no_records_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--record"):
        parse_records(text)


def test_since_is_so_long_ago_or_a_time() -> None:
    assert parse_since("2h", NOW_MS) == NOW_MS - 7_200_000
    assert parse_since("2026-12-31T15:00+00:00", NOW_MS) == 1_798_729_200_000
    assert parse_since("2026-12-31", NOW_MS) == int(datetime(2026, 12, 31).timestamp() * 1_000)
    with pytest.raises(ConfigError, match="neither a duration such as 2h nor a time"):
        parse_since("yesterday", NOW_MS)


def test_since_a_local_time_that_comes_twice_or_never_leaves_no_letter_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        assert parse_since("2026-10-25T02:30", NOW_MS) == 1_792_888_200_000
        assert parse_since("2026-03-29T02:30", NOW_MS) == 1_774_744_200_000
    time.tzset()


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        (Choice(topics=["events"]), True),
        (Choice(topics=["others"]), False),
        (Choice(topics=["events"], reason="AMOUNT"), True),
        (Choice(topics=["events"], reason="count"), False),
        (Choice(topics=["events"], since_ms=AT.time_ms), True),
        (Choice(topics=["events"], since_ms=AT.time_ms + 1), False),
        (Choice(topics=["events"], records=(Records(topic="events", number=2),)), False),
        (
            Choice(
                topics=["events"], records=(Records(topic="x"), Records(topic="events", number=3, last=12))
            ),
            True,
        ),
        (Choice(topics=["events"], records=(Records(topic="events", number=3, first=13),)), False),
    ],
)
def test_a_letter_is_meant_by_all_that_is_said_of_it(choice: Choice, meant: bool) -> None:
    assert choice.means(letter()) is meant


def chooser(**said: object) -> Chooser:
    return Chooser(Choice(topics=["events"]), **{"sent_back": {}, **said})  # type: ignore[arg-type]


def test_of_letters_of_one_record_only_the_first_is_given() -> None:
    one = chooser()
    again = letter(reason="said otherwise", place=Place(partition=DEAD, offset=8, time_ms=AT.time_ms + 1))
    assert one.take([letter(), again]) == [letter()]
    assert one.take([again, letter(13)]) == [letter(13)]
    assert (one.counts.read, one.counts.again) == (4, 2)


def test_what_was_sent_back_is_passed_over_unless_all_are_asked_for() -> None:
    marks = {letter().identity: WENT}
    one = chooser(sent_back=marks)
    assert one.take([letter(), letter(), letter(13)]) == [letter(13)]
    assert one.counts.sent_back == 1
    assert chooser(sent_back=marks, with_sent_back=True).take([letter()]) == [letter()]


def test_what_is_of_others_or_no_letter_is_counted_and_never_given() -> None:
    one, odd = chooser(), NoLetter(place=AT, why="odd")
    assert one.take([letter(partition=SourcePartition("others", 0)), odd, odd, odd, odd]) == []
    assert (one.counts.others, one.counts.unreadable, one.counts.unreadable_named) == (1, 4, [odd] * 3)


def test_more_than_can_be_told_apart_are_refused_or_shown_twice() -> None:
    with pytest.raises(Failed, match="--record, --since or --reason"):
        chooser(known_max=2).take([letter(1), letter(2), letter(3)])
    shown = chooser(known_max=2, forgets=True).take([letter(1), letter(2), letter(3), letter(1)])
    assert [one.offset for one in shown] == [1, 2, 3, 1]
