"""Which faults a seed draws, and how often. Swarm style: most schedules see only some of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random


@dataclass(slots=True)
class Faults:
    """Chances per opportunity (0 to 1), or mean gaps between occurrences in ms (0: never).

    `log_begins_later`: retention has had the beginning of a log before its source partition is known here.
    """

    message_lost: float = 0.0
    message_repeated: float = 0.0
    message_delayed: float = 0.0
    reader_slow: float = 0.0
    reader_replays_gap_ms: int = 0
    topic_recreated_gap_ms: int = 0
    crash_at_action: float = 0.0
    worker_killed_gap_ms: int = 0
    worker_paused_gap_ms: int = 0
    driver_killed_gap_ms: int = 0
    driver_paused_gap_ms: int = 0
    stop_asked_gap_ms: int = 0
    second_driver: float = 0.0
    rebalance_gap_ms: int = 0
    request_lost: float = 0.0
    reply_lost: float = 0.0
    call_late: float = 0.0
    pause_in_call: float = 0.0
    connection_breaks_in_call: float = 0.0
    driver_dies_in_call: float = 0.0
    storage_away_gap_ms: int = 0
    foreign_commit_gap_ms: int = 0
    clock_jump_gap_ms: int = 0
    partition_added: float = 0.0
    claim_from_nowhere_gap_ms: int = 0
    zombie_lingers: float = 0.0
    crash_at_spot: float = 0.0
    pause_at_action: float = 0.0
    pause_at_spot: float = 0.0
    parts: float = 0.0
    topic_lost_at_claim: float = 0.0
    bad_records: float = 0.0
    poison_record: float = 0.0
    dead_letters_fail: float = 0.0
    source_replaced: float = 0.0
    commit_reply_lost: float = 0.0
    topic_truncated_gap_ms: int = 0
    sender_stalled_gap_ms: int = 0
    heartbeats_lost_gap_ms: int = 0
    partition_unowned_gap_ms: int = 0
    retention_gap_ms: int = 0
    source_away_gap_ms: int = 0
    wall_clock_jump_gap_ms: int = 0
    forged_gap_ms: int = 0
    replayed_gap_ms: int = 0
    batch_damaged: float = 0.0
    topic_added: float = 0.0
    log_begins_later: float = 0.0
    endless_writer: float = 0.0
    topic_cut_gap_ms: int = 0
    compaction_gap_ms: int = 0
    transaction_open_gap_ms: int = 0
    driver_clock_jump_gap_ms: int = 0
    driver_clock_wrong: float = 0.0
    foreign_member_gap_ms: int = 0
    reject_refused: float = 0.0
    letters_forbidden: float = 0.0
    order_gap_ms: int = 0
    schema_gap_ms: int = 0
    foreign_columns_gap_ms: int = 0

    def quiet(self) -> Faults:
        """The fault-free tail."""
        return Faults()

    def describe(self) -> str:
        """Those that can occur, for the transcript's head."""
        drawn = [(f.name, getattr(self, f.name)) for f in fields(self)]
        return ", ".join(f"{name}={value:g}" for name, value in drawn if value) or "none"


CHANCES: dict[str, tuple[float, float]] = {
    "message_lost": (0.01, 0.25),
    "message_repeated": (0.02, 0.3),
    "message_delayed": (0.02, 0.3),
    "reader_slow": (0.01, 0.2),
    "crash_at_action": (0.001, 0.02),
    "second_driver": (1.0, 1.0),
    "request_lost": (0.02, 0.2),
    "reply_lost": (0.02, 0.3),
    "call_late": (0.02, 0.2),
    "pause_in_call": (0.01, 0.1),
    "connection_breaks_in_call": (0.01, 0.1),
    "driver_dies_in_call": (0.002, 0.02),
    "partition_added": (1.0, 1.0),
    "zombie_lingers": (0.2, 1.0),
}
"""Name -> the least and the most that is drawn, where it is drawn at all."""

GAPS_MS: dict[str, tuple[int, int]] = {
    "reader_replays_gap_ms": (1_000, 10_000),
    "topic_recreated_gap_ms": (2_000, 20_000),
    "worker_killed_gap_ms": (1_500, 15_000),
    "worker_paused_gap_ms": (1_500, 15_000),
    "driver_killed_gap_ms": (5_000, 30_000),
    "driver_paused_gap_ms": (3_000, 20_000),
    "stop_asked_gap_ms": (5_000, 20_000),
    "rebalance_gap_ms": (1_000, 10_000),
    "storage_away_gap_ms": (3_000, 20_000),
    "foreign_commit_gap_ms": (500, 5_000),
    "clock_jump_gap_ms": (2_000, 20_000),
    "claim_from_nowhere_gap_ms": (3_000, 20_000),
}
MORE_CHANCES: dict[str, tuple[float, float]] = {
    "pause_at_action": (0.001, 0.02),
    "parts": (1.0, 1.0),
    "topic_lost_at_claim": (0.05, 0.7),
    "bad_records": (0.01, 0.3),
    "dead_letters_fail": (0.02, 0.3),
}
MORE_GAPS_MS: dict[str, tuple[int, int]] = {
    "topic_truncated_gap_ms": (1_000, 15_000),
    "sender_stalled_gap_ms": (1_000, 10_000),
    "heartbeats_lost_gap_ms": (2_000, 15_000),
    "partition_unowned_gap_ms": (2_000, 15_000),
    "source_away_gap_ms": (3_000, 20_000),
    "wall_clock_jump_gap_ms": (1_000, 10_000),
    "topic_cut_gap_ms": (1_000, 15_000),
    "compaction_gap_ms": (500, 8_000),
    "transaction_open_gap_ms": (500, 8_000),
    "foreign_member_gap_ms": (2_000, 15_000),
}
SHARES: dict[str, tuple[float, tuple[float, float]]] = {
    "crash_at_spot": (0.35, (0.2, 1.0)),
    "pause_at_spot": (0.35, (0.2, 1.0)),
    "commit_reply_lost": (0.15, (0.1, 1.0)),
    "poison_record": (0.06, (1.0, 1.0)),
    "source_replaced": (0.06, (1.0, 1.0)),
    "retention_gap_ms": (0.12, (500, 8_000)),
    "batch_damaged": (0.06, (1.0, 1.0)),
    "topic_added": (0.08, (1.0, 1.0)),
    "log_begins_later": (0.5, (0.3, 1.0)),
    "driver_clock_jump_gap_ms": (0.2, (500, 8_000)),
    "driver_clock_wrong": (0.2, (0.3, 1.0)),
}
"""Drawn as often as said here, whatever the share of the others: narrow ones, and those that end progress."""

STRANGERS: dict[str, tuple[float, tuple[int, int]]] = {
    "forged_gap_ms": (0.12, (50, 3_000)),
    "replayed_gap_ms": (0.12, (50, 3_000)),
}
"""As `SHARES`. Drawn beside the others, so that a seed has the faults that it had before there were these."""


ORDERS: dict[str, tuple[float, tuple[int, int]]] = {"order_gap_ms": (0.15, (300, 5_000))}
"""No fault, but what operators do. Drawn as `STRANGERS` are, after them and beside them."""


SCHEMAS: dict[str, tuple[float, tuple[int, int]]] = {
    "schema_gap_ms": (0.15, (300, 5_000)),
    "foreign_columns_gap_ms": (0.05, (1_000, 8_000)),
}
"""Records that have more fields than those before, and others that add columns. Drawn as `ORDERS` is."""


def draw_late(faults: Faults, random: Random) -> None:
    """Kinds that came after the others, from a stream of their own, so that schedules stay as they were.

    `endless_writer`: the files of a transaction get on and on, and are not finished before its limit.
    `reject_refused`: a rejected record that the dead-letter topic refuses for good. `letters_forbidden`: from
    some time on it takes nothing from us.
    """
    if random.random() < 0.1:
        faults.endless_writer = random.uniform(0.05, 0.6)
    if faults.bad_records and random.random() < 0.3:
        faults.reject_refused = random.uniform(0.02, 0.3)
    if faults.bad_records and random.random() < 0.15:
        faults.letters_forbidden = 1.0


def draw(random: Random) -> Faults:
    """About one seed in twelve has no faults at all; the others have a few kinds, rare or frequent."""
    faults = Faults()
    if random.random() < 0.08:
        return faults
    share = random.choice((0.05, 0.1, 0.2, 0.35))
    drawn = [(kinds, share) for kinds in (CHANCES, GAPS_MS, MORE_CHANCES, MORE_GAPS_MS)]
    drawn += [({name: limits}, own) for name, (own, limits) in SHARES.items()]
    for kinds, probability in drawn:
        for name, (low, high) in kinds.items():
            if random.random() < probability:
                value = low * (high / low) ** random.random()
                setattr(faults, name, int(value) if name.endswith("_ms") else value)
    drawn_from = str(random.getstate())
    beside = Random(f"strangers/{drawn_from}")
    for name, (probability, (low, high)) in STRANGERS.items():
        if beside.random() < probability:
            setattr(faults, name, int(low * (high / low) ** beside.random()))
    operators = Random(f"orders/{drawn_from}")
    for name, (probability, (low, high)) in ORDERS.items():
        if operators.random() < probability:
            setattr(faults, name, int(low * (high / low) ** operators.random()))
    producers = Random(f"schemas/{drawn_from}")
    for name, (probability, (low, high)) in SCHEMAS.items():
        if producers.random() < probability:
            setattr(faults, name, int(low * (high / low) ** producers.random()))
    return faults
