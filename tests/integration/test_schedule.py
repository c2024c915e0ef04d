"""Transactions that end by the clock, on the real parts: each commit's records lie on one side of a
boundary."""

from __future__ import annotations

import signal
import time

import pytest

from tests.harness import Pipeline, Run, await_that
from tests.transaction_times import first_of_each, instant_ms, rows, told

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

ALIGN_S = 10
HEARD_S = 5
"""END is said within a tick, and heard within this though the machine stand still: long before the next."""
BEFORE_S, AFTER_S = 2, 1
"""None begins so near to a boundary."""


def produce_until(pipeline: Pipeline, run: Run, commits: int, *, killing: bool = False) -> None:
    """A few records all the time, until the run has committed so often. `killing`: the coordinator's worker,
    once, as soon as a boundary has come: END is being said."""
    stretch = time.time() // ALIGN_S

    def there() -> bool:
        nonlocal killing
        pipeline.produce(20)
        if killing and time.time() // ALIGN_S > stretch:
            run.kill_worker(coordinator=True, with_signal=signal.SIGKILL)
            killing = False
        return not killing and (run.status() or {}).get("commits", 0) >= commits

    await_that(f"commit number {commits}", there, deadline_s=300)


def test_no_transaction_spans_a_boundary_and_its_instant_is_of_the_time_in_which_its_records_were_taken(
    pipeline: Pipeline,
) -> None:
    pipeline.settings.update(
        {
            "transaction.align": f"{ALIGN_S}s",
            "transaction.interval": "10m",
            "transaction.write_timeout": "10m",
        }
    )
    run = pipeline.start()
    pipeline.produce(200)
    run.await_commits(1)
    produce_until(pipeline, run, 5, killing=True)
    pipeline.await_all_committed()
    assert run.stop() == 0
    pipeline.assert_exact(pipeline.produced)

    starts, ends = (first_of_each(told(pipeline, kind)) for kind in ("START_COMMIT", "END_COMMIT"))
    acks = first_of_each(told(pipeline, "ACK_COMMIT"))
    slots = set()
    for transaction, ack in acks.items():
        begun_s = instant_ms(ack["content"]["instant"]) / 1_000
        boundary_s = (begun_s // ALIGN_S + 1) * ALIGN_S
        slots.add(boundary_s)
        assert begun_s % ALIGN_S >= AFTER_S - 0.05, "somebody else's clock may be a second behind"
        assert starts[transaction]["time"] / 1_000 < boundary_s
        assert ends[transaction]["time"] / 1_000 <= boundary_s + HEARD_S
    assert len(slots) >= 3
    reasons = [one["content"]["reason"] for one in ends.values()]
    assert reasons.count("align") >= 3 and set(reasons) <= {"align", "drain"}
    late = [
        (instant, came)
        for instant, came in rows(pipeline)
        if came / 1e6 > (instant_ms(instant) // 1_000 // ALIGN_S + 1) * ALIGN_S + HEARD_S
    ]
    assert not late, "records that came after the boundary are in a transaction of before it"


def test_transactions_end_at_scheduled_times_and_at_once_where_one_was_missed(pipeline: Pipeline) -> None:
    pipeline.settings.update(
        {
            "transaction.schedule": "every 10s at :00:05",
            "transaction.interval": "10m",
            "transaction.write_timeout": "10m",
        }
    )
    run = pipeline.start()
    pipeline.produce(200)
    run.await_commits(1)
    produce_until(pipeline, run, 5)
    pipeline.await_all_committed()
    assert run.stop() == 0
    pipeline.assert_exact(pipeline.produced)

    ends = sorted(first_of_each(told(pipeline, "END_COMMIT")).values(), key=lambda one: int(one["time"]))
    by_time = [one for one in ends if one["content"]["reason"] == "schedule"]
    assert {one["content"]["reason"] for one in ends} <= {"schedule", "drain"}
    on_time = [one for one in by_time[1:] if (one["time"] / 1_000 - 5) % 10 <= HEARD_S]
    assert len(on_time) >= 3, "every ten seconds, five seconds after"
    assert len(by_time) - len(on_time) <= 2, "the first makes good what nobody knows of"
