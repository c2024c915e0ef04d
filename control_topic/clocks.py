"""The two clocks. Shells read them; the cores are told."""

from __future__ import annotations

import time


def monotonic_ms() -> int:
    """Never jumps; means something only within this process."""
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    """Unix epoch: for what people and other processes read."""
    return time.time_ns() // 1_000_000
