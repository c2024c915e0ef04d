"""Dead letters as people and programs are told of them."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, date

import pytest
from rich.console import Console

from control_topic.messages import SourcePartition
from lockstep.letters.choice import Counts
from lockstep.letters.committed_rejects import Standing
from lockstep.letters.letter import NoLetter
from lockstep.letters.marks import SentBack
from lockstep.letters.report import SHOWN_CHARS_MAX, Outcome, Seen, as_json, as_text, heading
from lockstep.letters.trial import Verdict
from tests.unit.lockstep.letters.made import AT, letter

ROW = Verdict(row={"id": 1, "day": date(2026, 12, 31), "blob": b"\xff"})
WENT = SentBack(number=4, offset=99, time_ms=5)
SEEN = Seen(letter=letter(key=b"ann@example.org", value=b"\xffsecret-value"), verdict=ROW)


def text(seen: Seen, *, values: bool = False, width: int | None = None) -> str:
    return as_text(seen, values=values, width=width, zone=UTC).plain


def outcome_text(outcome: Outcome) -> str:
    console = Console(file=io.StringIO(), width=1_000)
    console.print(outcome.to_text())
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_without_values_nothing_of_a_records_content_is_told() -> None:
    told = json.dumps(as_json(SEEN, values=False)) + text(SEEN)
    for content in ("secret", "ann@", "2026-12-31", "\\u00ff"):
        assert content not in told
    assert "trace" in told and "field amount is no number" in told


def test_with_values_all_of_it_is_told_and_what_is_no_text_as_base64() -> None:
    told = as_json(SEEN, values=True)
    assert told["key"] == {"text": "ann@example.org"}
    assert told["value"] == {"base64": "/3NlY3JldC12YWx1ZQ=="}
    assert told["header_values"] == [{"text": "secret-trace"}]
    assert told["row"] == {"id": 1, "day": "2026-12-31", "blob": "/w=="}
    endless = as_json(
        replace(SEEN, verdict=Verdict(row={"x": float("nan"), "y": -float("inf")})), values=True
    )
    assert endless["row"] == {"x": "NaN", "y": "-Infinity"}
    shown = text(SEEN, values=True)
    for content in ("key     ann@example.org", "\\xffsecret-value", "trace=secret-trace", '"2026-12-31"'):
        assert content in shown


def test_a_program_is_told_where_when_and_why_in_base_units() -> None:
    told = as_json(replace(SEEN, went=WENT), values=False)
    assert (told["topic"], told["partition"], told["offset"]) == ("events", 3, 12)
    assert (told["timestamp"], told["set_aside"]) == (1_700_000_000_000, AT.time_ms)
    assert told["letter"] == {"topic": "events.dlq", "partition": 0, "offset": 7}
    assert told["now"] == {"row": True, "deletes": False, "reason": None}
    assert told["sent_back"] == {"partition": 4, "offset": 99, "time": 5}
    assert (told["key_bytes"], told["value_bytes"]) == (15, 13)


@pytest.mark.parametrize(
    ("seen", "now"),
    [
        (SEEN, "row"),
        (replace(SEEN, verdict=Verdict(deletes=True)), "delete"),
        (replace(SEEN, verdict=Verdict(reason="r")), "no row"),
        (replace(SEEN, went=WENT), "sent back"),
    ],
)
def test_a_line_says_what_a_letter_would_be_now(seen: Seen, now: str) -> None:
    assert seen.now == now
    assert text(seen).startswith(
        f"11-14 22:15:00  events:3@12                   45 B  {now:<9}  field amount"
    )
    assert heading().plain.index("reason") == text(seen).index("field amount")


def test_another_reason_than_then_is_told_beside_the_old_one() -> None:
    assert "now     field id is missing" in text(replace(SEEN, verdict=Verdict(reason="field id is missing")))
    assert (
        "now "
        not in text(replace(SEEN, verdict=Verdict(reason=SEEN.letter.reason)), width=200).split("\n", 1)[1]
    )


def test_a_line_fits_the_terminal_and_what_others_wrote_is_no_line_of_its_own() -> None:
    long = replace(SEEN, letter=letter(reason="word " * 60 + "\nforged", value=b"a\nb" * SHOWN_CHARS_MAX))
    lines = text(long, values=True, width=80).splitlines()
    assert max(map(len, lines)) <= 80 and all(line.startswith(" ") for line in lines[1:])
    assert "…" in text(long, values=True)
    assert all(not line.startswith("forged") for line in text(long).splitlines())


def test_a_time_that_no_calendar_has_is_no_error() -> None:
    assert text(replace(SEEN, letter=letter(place=replace(AT, time_ms=10**18)))).startswith("--")


def test_a_dry_run_says_that_nothing_was_sent_what_would_be_and_how() -> None:
    outcome = Outcome(replay=True)
    outcome.add(SEEN)
    outcome.add(replace(SEEN, verdict=Verdict(reason="still")))
    said = outcome_text(outcome)
    assert "A dry run: nothing was sent. 2 dead letters would go back to events:3 (2)." in said
    assert "--execute --why TEXT" in said
    assert "No row with this schema, and set aside again: 1 (without --mended)." in said
    assert outcome.to_json()["summary"]["would_be_sent"] == 2


def test_a_replay_says_what_went_back_and_what_did_not() -> None:
    outcome = Outcome(replay=True, executed=True, limit=2, limited=True, warnings=["mind the order"])
    outcome.add(replace(SEEN, went=WENT))
    outcome.add(replace(SEEN, why_not_sent="odd"))
    said = outcome_text(outcome)
    assert "Done: 1 dead letter sent back to events:4 (1)." in said
    assert "What cannot be sent as it was stays: 1 dead letter" in said
    assert "The first 2; there may be more" in said and "note: mind the order" in said
    assert "--execute" not in said
    assert (
        outcome.to_json()["summary"] | {"sent": 1, "not_sent": 1, "limit_reached": True}
        == (outcome.to_json()["summary"])
    )
    assert outcome.sent == {SourcePartition("events", 4): 1}


def test_what_is_not_shown_is_counted_and_the_unreadable_named() -> None:
    odd = NoLetter(place=AT, why="somebody else has written it")
    counts = Counts(read=9, others=1, again=2, sent_back=3, unreadable=1, unreadable_named=[odd])
    outcome = Outcome(counts=[counts, Counts(sent_back=1)], left_out=2)
    said = outcome_text(outcome)
    assert said.startswith("No dead letter to show.")
    for words in (
        "sent back before (--all shows them): 4.",
        "was set aside more than once: 2.",
        "not this pipeline's: 1.",
    ):
        assert words in said
    assert "Not to be read: 1, first events.dlq:0@7: somebody else has written it." in said
    told = outcome.to_json()["summary"]
    assert (told["sent_back_before"], told["set_aside_more_than_once"], told["left_out"]) == (4, 2, 2)


@pytest.mark.parametrize("executed", [False, True])
def test_letters_that_no_commit_proves_are_counted_by_reason(executed: bool) -> None:
    outcome = Outcome(replay=True, executed=executed)
    outcome.unproved.update({Standing.ROW: 4, Standing.OPEN: 2})
    said = outcome_text(outcome)
    assert "Not replayed, the record is a row (its letter belongs to an aborted transaction): 4." in said
    assert "Not replayed, its offset is not committed" in said and "no commit covers" not in said
    assert outcome.to_json()["summary"]["not_rejected_by_a_commit"] == {
        "committed_as_row": 4,
        "not_committed": 2,
        "not_covered": 0,
        "undecided": 0,
    }
