"""A worker's data plane with more rejects than are named, and a dead-letter topic on a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from control_topic.messages import REJECTS_LISTED_MAX
from lockstep.brokers.local import Broker
from participant import events as ev
from participant.source.dead_letters import DeadLetters
from tests.harness import await_that
from tests.integration.planes import PARTITION, consumed, plane_of

COUNT = 400


def test_of_a_flood_of_rejects_all_are_counted_and_the_first_are_named(
    broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    letters = DeadLetters({"bootstrap.servers": broker.bootstrap_servers}, make_topic(), bytes_max=1 << 20)
    posted: list[Any] = []
    plane = plane_of(tmp_path, posted, dead_letters=letters)
    plane.start()
    try:
        plane.order(ev.Rewind(partition=PARTITION, offset=0, generation=1))
        for start in range(0, 4 * COUNT, COUNT):  # several chunks, of which the third is named in part
            assert plane.deliver(consumed(start, [b"nope"] * COUNT))
        await_that("decoding", lambda: len(posted) == 4)
        plane.order(ev.Open(transaction="t", instant="20260101000000000"))
        plane.order(ev.Write(transaction="t", partition=PARTITION, generation=1, upto=4 * COUNT))
        plane.order(ev.Flush(call=1, transaction="t"))
        flushed = await_that(
            "Flushed",
            lambda: next((one for one in posted if not isinstance(one, ev.Buffered | ev.Wrote)), None),
        )
    finally:
        assert plane.stop(30)
    assert isinstance(flushed, ev.Flushed), flushed
    assert (flushed.call, flushed.outcome) == (1, ev.Outcome.SUCCEEDED)
    assert flushed.reject_count == 4 * COUNT > REJECTS_LISTED_MAX
    assert [one.offset for one in flushed.rejects] == list(range(REJECTS_LISTED_MAX))
