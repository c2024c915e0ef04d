"""Source partitions that wait for what cannot be read yet: in order, with back-off, not for ever."""

from __future__ import annotations

import random

import numpy as np

from control_topic.messages import SourcePartition
from participant.records.raw import RawBatch, Values
from participant.source.fetched import Fetched
from participant.worker.holds import FIRST_S, LONGEST_S, MOST_S, Holds

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)


def run(partition: SourcePartition, start: int, value: bytes = b"12345") -> Fetched:
    offsets = np.array([start], dtype=np.int64)
    raw = RawBatch(partition=partition, offsets=offsets, timestamps_ms=offsets, values=Values.of([value]))
    return Fetched(partition=partition, generation=1, start=start, next=start + 1, raw=raw)


def test_what_comes_behind_waits_in_order_and_others_do_not() -> None:
    holds = Holds()
    assert not holds.add(run(P0, 0))
    holds.begin(run(P0, 0), 10.0)
    assert holds.add(run(P0, 1)) and holds.add(run(P0, 2)) and not holds.add(run(P1, 0))
    assert holds.size_bytes == 15
    now_s, seen = 10.0 + FIRST_S, []
    while (due := holds.due(now_s)) is not None:
        seen.append(due.start)
        if holds.passed(P0, now_s):
            break
    assert seen == [0, 1, 2] and holds.due(now_s + 100) is None
    assert holds.size_bytes == 0 and not holds.add(run(P0, 3))


def test_it_is_tried_again_with_back_off_and_given_up_after_as_long_as_an_outage_may_last() -> None:
    holds, now_s, gaps = Holds(), 10.0, []
    holds.begin(run(P0, 0), now_s)
    while True:
        wait_s = holds.wait_s(now_s, 1_000.0)
        assert holds.due(now_s) is None and holds.due(now_s + wait_s) is not None
        gaps.append(wait_s)
        now_s += wait_s
        if holds.put_off(P0, now_s):
            break
    assert gaps[0] == FIRST_S and gaps == sorted(gaps) and gaps[-1] == MOST_S
    assert LONGEST_S <= now_s - 10.0 <= LONGEST_S + MOST_S


def test_what_passed_says_nothing_of_what_stands_behind_it() -> None:
    holds = Holds()
    holds.begin(run(P0, 0), 0.0)
    holds.add(run(P0, 1))
    assert not holds.put_off(P0, LONGEST_S - 1) and not holds.passed(P0, LONGEST_S)
    assert not holds.put_off(P0, LONGEST_S + 10), "it has waited for 10 s"


def test_what_is_read_from_elsewhere_waits_no_more() -> None:
    holds = Holds()
    holds.begin(run(P0, 0), 0.0)
    holds.begin(run(P1, 5), 0.0)
    holds.drop(P0)
    holds.drop(P0)
    due = holds.due(FIRST_S)
    assert due is not None and due.partition == P1 and holds.size_bytes == 5


def test_nothing_is_due_sooner_than_it_was_put_off_to_and_all_of_it_in_its_time() -> None:
    source = random.Random(3)
    holds, now_s = Holds(), 0.0
    holds.begin(run(P0, 0), now_s)
    holds.begin(run(P1, 0), now_s)
    tried = {P0: 0, P1: 0}
    while now_s < 100:
        now_s += holds.wait_s(now_s, 1.0) + source.random() / 100
        while (due := holds.due(now_s)) is not None:
            tried[due.partition] += 1
            holds.put_off(due.partition, now_s)
    assert min(tried.values()) >= 100 / (MOST_S + 1)
    assert holds.wait_s(now_s, 0.25) <= 0.25
