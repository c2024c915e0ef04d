"""What a commit says of itself: nothing is written that nobody could read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from control_topic.messages import EPOCH_MAX, Lost, Range, SourcePartition, Witness
from table.state import StateError, TableState, decode, encode
from table.watermark import Mark, Watermark

P0 = SourcePartition("events", 0)
STATE = TableState(
    pipeline="p",
    run="r",
    epoch=1,
    transaction="t1",
    offsets={P0: 5},
    ranges=(Range(partition=P0, start=0, next=5, records=5),),
    lost=(Lost(partition=P0, start=7, next=9),),
    witnesses={P0: Witness(partition=P0, offset=4, fingerprint=2**64 - 1)},
    watermark=Watermark(
        of="at",
        at_ms=-7,
        before_ms=-9,
        marks={P0: Mark(-7, 30), SourcePartition("events", 10): Mark(None, 5, True)},
        late=2,
    ),
)


def test_a_state_is_read_as_it_was_written() -> None:
    assert decode(encode(STATE)) == STATE


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": {P0: -1001}},
        {"epoch": EPOCH_MAX},
        {"witnesses": {P0: Witness(partition=P0, offset=5, fingerprint=1)}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_nobody_could_read_again_is_not_written(change: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="transaction t1 is not committed, for nobody could read it"):
        encode(replace(STATE, **change))


def test_a_commit_of_a_version_that_knew_no_witnesses_has_none() -> None:
    written = {name: value for name, value in encode(STATE).items() if name != "lockstep.witnesses"}
    assert decode(written) == replace(STATE, witnesses={})


@pytest.mark.parametrize(
    "spelled", ['{"events":{"0":[4,"12"]}}', '{"events":{"0":[5,"%s"]}}', "[]", '{"e":1}']
)
def test_witnesses_that_are_none_are_refused_and_not_guessed_at(spelled: str) -> None:
    written = {**encode(STATE), "lockstep.witnesses": spelled.replace("%s", "0" * 16)}
    with pytest.raises(StateError, match="cannot be read"):
        decode(written)


def test_a_commit_of_a_version_that_knew_no_watermark_has_none() -> None:
    written = {name: value for name, value in encode(STATE).items() if name != "lockstep.watermark"}
    assert decode(written) == replace(STATE, watermark=None)
    assert "lockstep.watermark" not in encode(replace(STATE, watermark=None))


@pytest.mark.parametrize(
    "marks",
    ['{"events":{"0":[1]}}', '{"events":{"0":[true,0]}}', '{"events":{"x":[1,0]}}', '{"events":[]}', "7"],
)
def test_a_watermark_that_is_none_is_refused_and_not_guessed_at(marks: str) -> None:
    spelled = '{"of":"at","at_ms":1,"before_ms":0,"late":0,"absurd":0,"marks":' + marks + "}"
    with pytest.raises(StateError, match="cannot be read"):
        decode({**encode(STATE), "lockstep.watermark": spelled})


def test_the_watermarks_of_ten_thousand_source_partitions_take_a_third_of_a_megabyte() -> None:
    """As much as their offsets and last records do together, about: commits grow by that, and no more."""
    many = {SourcePartition("events", number): Mark(1_764_100_000_000, 600_000) for number in range(10_000)}
    whole = replace(STATE, watermark=Watermark(of="at", at_ms=1_764_100_000_000, marks=many))
    assert len(encode(whole)["lockstep.watermark"]) < 350_000
