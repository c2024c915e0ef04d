"""A worker's memory and its shares."""

from __future__ import annotations

import pytest

from participant.worker.memory import MemoryBudget

SHARES = (
    "buffered_bytes", "encoding_bytes", "held_bytes", "fetched_bytes", "queued_bytes", "letters_bytes",
    "batch_bytes", "exchanged_bytes",
)  # fmt: skip


def test_every_share_is_named_here() -> None:
    """What is for files is for decoded rows while none is open: no share of its own."""
    shares = {name for name, value in vars(MemoryBudget).items() if isinstance(value, property)}
    assert shares == {*SHARES, "idle_bytes"}
    for uploads in (False, True):
        budget = MemoryBudget(512_000_000, uploads)
        assert budget.idle_bytes == budget.buffered_bytes + budget.held_bytes


@pytest.mark.parametrize("exchanges", [False, True])
@pytest.mark.parametrize("uploads", [False, True])
@pytest.mark.parametrize("per_worker_bytes", [64_000_000, 512_000_000, 8_000_000_000])
def test_the_shares_leave_an_eighth_for_what_nobody_counts(
    per_worker_bytes: int, uploads: bool, exchanges: bool
) -> None:
    budget = MemoryBudget(per_worker_bytes, uploads, exchanges)
    assert bool(budget.exchanged_bytes) is exchanges
    assert sum(getattr(budget, name) for name in SHARES) <= per_worker_bytes * 7 // 8
