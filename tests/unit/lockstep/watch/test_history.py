"""What an observer remembers: several runs, within bounds, and counters that never jump."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import pytest

from control_topic.causes import BYTES, COORDINATOR_LOST, END_REASONS, INTERVAL, WORKER_DIED
from control_topic.messages import (
    EPOCH_LEAD_MAX,
    CoordinatorClaim,
    Halt,
    ParticipantJoin,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    WriteProgress,
)
from lockstep.watch import history
from lockstep.watch.counters import BUCKETS_S, Counters, Histogram
from lockstep.watch.history import (
    COORDINATORS_MAX,
    DETAILED,
    DETAILED_EARLIER,
    EARLIER_MAX,
    LINES_OLDER_MAX,
    RUNS_MAX,
    TRANSACTIONS_MAX,
    TROUBLES_MAX,
    History,
)
from lockstep.watch.rates import STEP_MS, STEPS, Rates
from lockstep.watch.told import LINES_MAX, SOURCE_PARTITIONS_MAX, WORKERS_MAX, Phase
from tests.watched import PARTITIONS, WORKERS, Said, rich

MEMORY_BYTES_MAX = 50_000_000


def running(count: int = 3) -> Said:
    said = Said()
    said.begin()
    for _ in range(count):
        said.whole()
    return said


# --- runs ----------------------------------------------------------------------------------------------


def test_the_run_before_the_newest_stays_and_each_transaction_says_whose_it_is() -> None:
    said = running(2)
    said.begin("r2", 2)
    said.whole()
    assert [one.run for one in said.history.transactions(300)] == ["r1", "r1", "r2"]
    assert said.history.run.fold.run == "r2"
    assert said.history.run.heard.commits == 1


def test_what_a_dead_run_left_open_is_decided_by_the_next_runs_first_start() -> None:
    said = running(1)
    left = said.start()
    said.begin("r2", 2)
    found = said.history.find(left)
    assert found is not None and found.is_open
    said.start()
    assert (found.phase, found.cause) == (Phase.ABORTED, COORDINATOR_LOST)
    assert any(one.kind == "abort" for one in said.history.troubles())


def test_a_commit_of_a_dead_run_that_the_next_one_finds_was_one() -> None:
    said = running(1)
    left = said.start()
    for worker in WORKERS:
        said.report(left, worker, 10)
    said.committed = {one: offset + 10 for one, offset in said.committed.items()}  # and nobody said so
    said.begin("r2", 2)
    said.start()
    found = said.history.find(left)
    assert found is not None and found.phase is Phase.COMMITTED


def test_what_became_of_a_transaction_the_next_run_says_and_no_later_one() -> None:
    said = running(1)
    said.history.placed = "r3"  # as where all is read after the table was
    left = said.start()
    for worker in WORKERS:
        said.report(left, worker, 10)
    said.begin("r2", 2)
    said.whole()  # which begins where the one that was left began, and takes its records
    said.begin("r3", 3)
    said.whole()
    found = said.history.find(left)
    assert found is not None and found.phase is Phase.ABORTED


def test_no_other_run_decides_what_becomes_of_the_newest_runs_transaction() -> None:
    said = running(1)
    said.history.placed = "r1"
    opened = said.start()
    said.begin("made-up", 2)
    said.start()
    found = said.history.find(opened)
    assert found is not None and found.is_open


def test_a_table_whose_epoch_was_driven_high_is_gone_on_with() -> None:
    said = Said()
    said.history.table_epoch = 10 * EPOCH_LEAD_MAX
    said.begin("r1", 10 * EPOCH_LEAD_MAX + 1)
    said.whole()
    assert said.history.ignored == 0 and said.history.run.heard.commits == 1


def test_the_tables_folder_says_which_run_is_the_newest_and_no_announcement_does() -> None:
    said = running()
    said.history.placed = "r1"
    said.begin("forged", 900)
    assert said.history.run.fold.run == "r1"
    said.history.placed = "r9"
    assert said.history.run.fold.run == "r9" and not said.history.run.fold.transactions


def test_a_flood_of_runs_drives_out_neither_the_newest_nor_more_than_the_oldest() -> None:
    said = running()
    said.history.placed = "r1"
    for number in range(50):
        said.begin(f"made-up-{number}", 2)
    assert len(said.history._runs) == RUNS_MAX
    assert said.history.run.heard.commits == 3


def test_what_is_certainly_no_runs_is_counted_and_changes_nothing() -> None:
    said = running()
    before = len(said.history.transactions(300))
    said.say(Halt(reason="forged"), marked=False)
    said.epoch = EPOCH_LEAD_MAX + 1
    said.say(CoordinatorClaim())
    assert said.history.ignored == 2
    assert said.history.run.fold.halted is None and len(said.history.transactions(300)) == before


def test_coordinators_and_troubles_are_told_newest_first_within_bounds() -> None:
    said = running()
    for epoch in range(2, 60):
        said.now_ms += 1_000
        said.claim(f"coordinator@worker-{epoch % 3}", epoch)
    led = said.history.coordinators()
    assert [one.epoch for one in led] == list(range(59, 59 - COORDINATORS_MAX, -1))
    for _ in range(150):
        said.now_ms += 1_000
        said.die(WORKERS[1], "its disk is full")
    troubles = said.history.troubles()
    assert len(troubles) == TROUBLES_MAX
    assert troubles == sorted(troubles, key=lambda one: one.time_ms, reverse=True)
    assert said.history.last_deaths == {"worker-1": "its disk is full"}


def test_a_coordinator_whose_claim_is_older_than_all_that_was_read_is_told_of() -> None:
    said = running(1)
    said.history = History()
    said.whole()
    assert said.history.coordinators() == [(1, "coordinator@worker-0", 0)]
    said.claim("coordinator@worker-1", 2)
    assert [one.epoch for one in said.history.coordinators()] == [2]


# --- counters ------------------------------------------------------------------------------------------


def test_of_a_run_that_was_heard_from_its_announcement_on_everything_is_counted() -> None:
    said = running(3)
    assert said.history.counters is None, "a topic that is half read would give counters that jump"
    said.history.caught_up_now()
    counters = said.history.counters
    assert counters is not None and counters.outcomes == {("committed", INTERVAL): 3}
    assert counters.records == 3 * 1_000 * len(PARTITIONS)


def test_of_a_run_whose_beginning_is_gone_counting_begins_where_the_topic_was_read_to_its_end() -> None:
    said = Said()
    said.begin()
    said.history = History()  # what was said until now is not on the topic any more
    said.whole()
    said.history.caught_up_now()
    counters = said.history.counters
    assert counters is not None and counters.commits == 0
    said.whole(reason=BYTES)
    said.claim("coordinator@worker-1", 2)
    assert counters.outcomes == {("committed", BYTES): 1}
    assert counters.coordinator_changes == 1, "somebody led before"
    assert said.history.run.heard.commits == 2


def test_an_announcement_that_is_said_again_is_not_the_beginning() -> None:
    said = running(1)
    said.history = History()
    said.whole()
    said.say(RunAnnounce(table_epoch=0), sender="driver", who="d-r1")
    said.history.caught_up_now()
    counters = said.history.counters
    assert counters is not None and counters.commits == 0


def test_a_run_that_comes_up_while_it_is_followed_is_counted_whole() -> None:
    said = running(3)
    said.history.caught_up_now()
    said.begin("r2", 2)
    said.whole()
    counters = said.history.counters
    assert counters is not None and counters.commits == 1


def test_what_is_read_again_from_a_log_that_was_cut_is_not_counted_again() -> None:
    said = Said()
    told = []
    hear = said.history.hear
    said.history.hear = lambda heard: (told.append(heard), hear(heard))[1]  # type: ignore[method-assign]
    said.begin()
    for _ in range(3):
        said.whole()
    said.history.caught_up_now()
    said.history.begins_again()
    for offset, heard in enumerate(told):
        hear(replace(heard, offset=offset))
    counters = said.history.counters
    assert counters is not None and counters.commits == 3
    assert len(said.history.transactions(300)) == 3
    said.whole()
    assert counters.commits == 4


def test_aborts_are_counted_by_their_class_and_restarts_by_worker_from_zero_on() -> None:
    said = running(1)
    for _ in range(2):
        said.abort(said.start(), "a worker died", WORKER_DIED)
    said.die(WORKERS[1], "killed")
    heard = said.history.run.heard
    assert heard.outcomes[("aborted", WORKER_DIED)] == heard.aborts == 2
    assert heard.restarts == {"worker-0": 0, "worker-1": 1, "worker-2": 0}
    assert said.history.rates.to_json(said.now_ms)["records"][-1] == 12_000  # type: ignore[index]


def test_a_histogram_has_each_duration_in_its_bucket_and_adds_up() -> None:
    histogram = Histogram()
    for took_ms in (0, 10, 11, 600_000, 600_001):
        histogram.add(took_ms)
    sums = histogram.cumulated()
    assert (sums[0], sums[1], sums[-2], sums[-1]) == (2, 3, 4, 5)
    assert histogram.sum_ms == 1_200_022 and len(sums) == len(BUCKETS_S) + 1


def test_a_commits_parts_are_measured_from_what_the_topic_says() -> None:
    said = running(1)
    durations = said.history.run.heard.durations
    assert {part: one.sum_ms for part, one in durations.items()} == {
        **{"files": 20, "lock": 5, "check": 3, "metadata": 250, "write": 150},
        **{"collect": 8_000, "close": 900, "total": 1_100},
    }


def test_rates_are_of_the_last_hour_by_minute() -> None:
    rates = Rates()
    for minute in range(500):
        rates.add(minute * STEP_MS + 1, 10, 1_000)
        rates.add(minute * STEP_MS + 2, 1, 1)
    told = rates.to_json(500 * STEP_MS)
    assert told["records"] == [11] * (STEPS - 1) + [0]
    assert told["bytes"] == [1_001] * (STEPS - 1) + [0]
    assert told["from_ms"] == (500 - STEPS + 1) * STEP_MS


def test_every_end_has_words_of_its_own() -> None:
    assert INTERVAL in END_REASONS and Counters().commits == 0


# --- bounds --------------------------------------------------------------------------------------------


def test_the_newest_transactions_keep_their_ranges_and_older_ones_only_sums() -> None:
    said = running(DETAILED + 20)
    transactions = said.history.transactions(TRANSACTIONS_MAX)
    whole = [any(wrote.ranges for wrote in one.wrote.values()) for one in transactions]
    assert sum(whole) >= DETAILED and whole[-DETAILED:] == [True] * DETAILED
    assert not any(whole[:18])
    assert all(one.records == 1_000 * len(PARTITIONS) for one in transactions)
    assert all(len(one.lines) <= LINES_OLDER_MAX for one in transactions[:18])
    assert {one.lines[-1].type for one in transactions} == {"ACK_COMMIT"}


def test_messages_of_one_transaction_are_bounded_and_begin_with_its_start() -> None:
    said = running(1)
    opened = said.start()
    for step in range(2 * LINES_MAX):
        said.by(WORKERS[0], WriteProgress(transaction=opened, records=1, files=1, size_bytes=1, steps=step))
    found = said.history.find(opened)
    assert found is not None and len(found.lines) == LINES_MAX
    assert (found.lines[0].type, found.lines[-1].type) == ("START_COMMIT", "WRITE_PROGRESS")


def test_earlier_runs_keep_less() -> None:
    said = running(EARLIER_MAX + 40)
    said.begin("r2", 2)
    said.start()
    earlier = [one for one in said.history.transactions(TRANSACTIONS_MAX) if one.run == "r1"]
    assert len(earlier) == EARLIER_MAX
    assert sum(any(wrote.ranges for wrote in one.wrote.values()) for one in earlier) == 5


def detailed(said: Said, run: str) -> int:
    """So many transactions of a run are kept with their ranges."""
    of_it = [one for one in said.history.transactions(TRANSACTIONS_MAX) if one.run == run]
    return sum(any(wrote.ranges for wrote in one.wrote.values()) for one in of_it)


def test_details_of_all_transactions_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forged START and a WRITE_STATUS of 100,000 source partitions are a megabyte on the topic, and took
    twenty here, fifty times."""
    each = 2 * len(PARTITIONS) + 3 * len(WORKERS)
    monkeypatch.setattr(history, "DETAILS_MAX", 10 * each)
    said = running(DETAILED)
    said.start()
    assert detailed(said, "r1") == 9
    assert said.history.find(f"{1:08x}" + "f" * 24) is not None, "sums stay"
    monkeypatch.setattr(history, "DETAILS_MAX", 30 * each)
    said.begin("r2", 2)
    assert detailed(said, "r1") == 2


def test_a_run_of_1000_source_partitions_keeps_the_details_of_all_that_are_to_have_them() -> None:
    said = Said(partitions=tuple(SourcePartition("events", number) for number in range(1_000)))
    said.begin()
    for _ in range(DETAILED):
        said.whole()
    assert detailed(said, "r1") == DETAILED
    said.begin("r2", 2)
    said.start()
    assert detailed(said, "r1") == DETAILED_EARLIER


def test_of_a_run_that_is_not_the_newest_fewer_source_partitions_are_remembered() -> None:
    many = tuple(SourcePartition("t", number) for number in range(SOURCE_PARTITIONS_MAX))
    said = running(1)
    said.by(WORKERS[0], ParticipantJoin(partitions=many))
    first = said.history.run.fold
    assert len(first.owners) == len(many)
    said.begin("r2", 2)
    assert (len(first.owners), len(first.committed)) == (0, len(PARTITIONS))
    said.run = "r1"
    said.by(WORKERS[0], ParticipantJoin(partitions=many))
    said.say(StartCommit(transaction="t", instant="1", committed=dict.fromkeys(many, 1), writers={}))
    assert len(first.owners) == len(first.committed) == SOURCE_PARTITIONS_MAX // 10
    assert len(said.history.run.fold.owners) == len(PARTITIONS)


def test_a_transaction_has_no_more_writers_than_there_can_be_workers() -> None:
    said = running(1)
    writers = {SourcePartition("t", number): f"w{number}" for number in range(WORKERS_MAX + 10)}
    said.say(StartCommit(transaction="t", instant="1", committed={}, writers=writers))
    found = said.history.find("t")
    assert found is not None and len(found.writers) == WORKERS_MAX


def test_2000_transactions_of_1000_source_partitions_stay_below_50_mb() -> None:
    """Each message as it is decoded: nothing in it is shared with another one."""

    class Decoded(Said):
        def whole(self, records: int = 1_000, *, reason: str = INTERVAL) -> str:
            self.partitions = tuple(SourcePartition("".join(["ev", "ents"]), int(n)) for n in range(1_000))
            self.committed = dict(zip(self.partitions, self.committed.values(), strict=True))
            self.incarnations = {name: "".join([name, "-", "i" * 24]) for name in WORKERS}
            return super().whole(records, reason=reason)

    said = Decoded(partitions=tuple(SourcePartition("events", number) for number in range(1_000)))
    said.begin()
    sizes = []
    for count in (DETAILED + 50, 100):
        for _ in range(count):
            said.whole()
        sizes.append(size_of(said.history))
    grown = (sizes[1] - sizes[0]) / 100
    assert sizes[1] + grown * (TRANSACTIONS_MAX - DETAILED - 150) < MEMORY_BYTES_MAX


def test_no_more_transactions_are_remembered_than_that() -> None:
    said = Said(partitions=PARTITIONS[:1])
    said.begin()
    for _ in range(TRANSACTIONS_MAX + 20):
        said.acknowledge(said.start(), 1)
    assert len(said.history.transactions(10_000)) == TRANSACTIONS_MAX


def size_of(root: Any) -> int:
    """Bytes of everything that is reached from here."""
    seen: set[int] = set()
    waiting, total = [root], 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        waiting += gc.get_referents(one)
    return total


def test_a_rich_history_is_remembered_whole() -> None:
    said = rich()
    phases = [one.phase for one in said.history.transactions(300)]
    assert (phases.count(Phase.COMMITTED), phases.count(Phase.ABORTED)) == (101, 3)
    assert phases[-1] is Phase.WRITING
