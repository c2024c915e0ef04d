"""What a commit says of itself: nothing is written that nobody could read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from control_topic.messages import EPOCH_MAX, Lost, Range, SourcePartition
from table.state import StateError, TableState, decode, encode

P0 = SourcePartition("events", 0)
STATE = TableState(
    pipeline="p",
    run="r",
    epoch=1,
    transaction="t1",
    offsets={P0: 5},
    ranges=(Range(partition=P0, start=0, next=5, records=5),),
    lost=(Lost(partition=P0, start=7, next=9),),
)


def test_a_state_is_read_as_it_was_written() -> None:
    assert decode(encode(STATE)) == STATE


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": {P0: -1001}},
        {"epoch": EPOCH_MAX},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_nobody_could_read_again_is_not_written(change: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="transaction t1 is not committed, for nobody could read it"):
        encode(replace(STATE, **change))
