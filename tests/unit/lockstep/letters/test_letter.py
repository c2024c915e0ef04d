"""A dead letter, read from its topic as workers write it."""

from __future__ import annotations

import pytest

from control_topic.messages import SourcePartition
from lockstep.letters.letter import NO_HEADERS, NO_LETTER, Letter, NoLetter, letters_of, read
from participant.records.headers import NOTE, UNREADABLE, pack, pack_note
from tests.unit.lockstep.letters.made import AT, batch, letter, ours, read_one

OWN = [("trace", b"\x00\xff"), ("trace", None), ("", b""), ("lockstep.topic", b"of its own")]


def test_the_record_is_as_it_was_and_its_own_headers_are_those_before_ours() -> None:
    assert read_one(OWN) == letter(value=b"{", headers=tuple(OWN))


def test_a_record_without_a_key_or_a_value_has_none() -> None:
    found = read_one(value=None)
    assert isinstance(found, Letter) and found.value is None
    keyless = read(AT, b"events-3-12", b"{", pack([one for one in ours() if one[0] != "lockstep.key"]))
    assert isinstance(keyless, Letter) and keyless.key is None and keyless.headers == ()


def test_a_letter_names_the_run_that_wrote_it_if_its_version_does() -> None:
    with_key, without = read_one(OWN, run=b"run-1"), read_one(OWN, key=b"events-3-12", run=b"run-1")
    assert with_key == without == letter(value=b"{", headers=tuple(OWN), run="run-1")
    keyless = read(
        AT, b"events-3-12", b"{", pack([one for one in ours(run=b"r") if one[0] != "lockstep.key"])
    )
    assert isinstance(keyless, Letter) and (keyless.key, keyless.run) == (None, "r")
    old = read_one(OWN)
    assert isinstance(old, Letter) and old.run == ""


def test_headers_of_a_record_that_look_like_ours_stay_its_own() -> None:
    """A record that came from another pipeline's dead-letter topic."""
    found = read(AT, b"events-3-12", b"{", pack([*ours(topic=b"other"), *ours()]))
    assert isinstance(found, Letter)
    assert found.partition == SourcePartition("events", 3)
    assert found.headers == tuple(ours(topic=b"other"))
    without_key = [one for one in ours() if one[0] != "lockstep.key"]
    found = read(AT, b"events-3-12", b"{", pack([("lockstep.key", b"own"), *without_key]))
    assert isinstance(found, Letter) and found.key is None and found.headers == (("lockstep.key", b"own"),)


@pytest.mark.parametrize(
    "changed",
    [{"offset": b"-1"}, {"offset": b"1e3"}, {"partition": b""}, {"timestamp": b"9" * 30}, {"topic": b""}],
)
def test_what_has_other_numbers_than_ours_is_no_letter(changed: dict[str, bytes]) -> None:
    found = read_one(**changed)
    assert found == NoLetter(place=AT, why=NO_LETTER)


def test_what_somebody_else_wrote_is_no_letter() -> None:
    assert read(AT, None, b"hello", b"") == NoLetter(place=AT, why=NO_LETTER)
    assert read(AT, b"events-3-12", b"{", pack(ours()[1:])) == NoLetter(place=AT, why=NO_LETTER)
    other = read_one(key=b"events-3-13")
    assert isinstance(other, NoLetter) and "key" in other.why
    assert read(AT, b"events-3-12", b"{", UNREADABLE) == NoLetter(place=AT, why=NO_HEADERS)


def test_a_letter_whose_headers_were_not_had_whole_says_so_and_is_not_sent() -> None:
    noted = read(AT, b"events-3-12", b"{", pack([("a", b"v"), (NOTE, b"none could be read"), *ours()]))
    assert isinstance(noted, Letter)
    assert (noted.headers, noted.note) == ((("a", b"v"),), "none could be read")
    assert "not had whole" in noted.why_not_sent
    as_note = read(AT, b"events-3-12", b"{", pack_note(b"cut") + pack(ours()))
    assert isinstance(as_note, Letter) and as_note.note == "cut" and as_note.headers == ()


@pytest.mark.parametrize("name", ["\udcff", "a\0b"])
def test_a_header_that_this_client_would_send_otherwise_keeps_the_letter_where_it_is(name: str) -> None:
    assert "cannot send it as it was" in letter(headers=((name, b"v"),)).why_not_sent
    assert letter(headers=(("ünicode", b"v"), ("", None))).why_not_sent == ""


def test_a_record_of_a_topic_that_was_made_anew_is_another_one_at_the_same_offset() -> None:
    assert letter().identity == letter(reason="another", place=AT).identity
    assert letter().identity != letter(timestamp_ms=1_700_000_000_001).identity
    assert letter().identity != letter(13).identity
    assert letter().mark == "events-3-12@1700000000000"


def test_all_of_a_batch_are_read_each_with_its_place() -> None:
    found = list(letters_of(batch((b"events-3-12", b"{", pack(ours())), (None, None, b""))))
    assert [type(one) for one in found] == [Letter, NoLetter]
    assert [one.place.offset for one in found] == [0, 1]
