"""Metrics: the names are a contract, both texts can be read, and what is not known is not said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_classic

from control_topic.causes import ABORT_CAUSES, END_REASONS
from control_topic.messages import ParticipantJoin, SourcePartition
from lockstep.ui.scrape import merged
from lockstep.watch.counters import PARTS, WORKERS_MAX
from lockstep.watch.history import History
from lockstep.watch.looks import TableLook
from lockstep.watch.metric_table import METRICS
from lockstep.watch.metric_values import PARTITIONS_MAX
from lockstep.watch.metrics import exposed
from lockstep.watch.observer import ASK_S, LOOK_EVERY_MAX_S, LOOK_EVERY_S
from lockstep.watch.seen import BROKER, LAG_OLD_MS, Seen, metrics_seen
from tests.watched import (
    NOW_MS,
    PIPELINE,
    WORKERS,
    Said,
    live,
    rich,
    seen,
    settings,
    source_look,
)

CONTRACT = """
lockstep_build_info version
lockstep_run_info run
lockstep_state state
lockstep_mode mode
lockstep_observed_age_seconds source
lockstep_seconds_since_last_commit
lockstep_table_freshness_seconds
lockstep_commit_duration_seconds part
lockstep_transactions_total outcome reason
lockstep_records_total
lockstep_bytes_total
lockstep_files_total
lockstep_dead_letters_total
lockstep_watermark_seconds
lockstep_watermark_lag_seconds
lockstep_watermark_idle_source_partitions
lockstep_late_records_total
lockstep_absurd_event_times_total
lockstep_table_files
lockstep_table_size_bytes
lockstep_table_small_files
lockstep_lag_records topic source_partition
lockstep_lag_seconds topic source_partition
lockstep_total_lag_records
lockstep_max_lag_seconds
lockstep_producer_transaction_records
lockstep_producer_transaction_seconds
lockstep_participants
lockstep_participants_missing
lockstep_coordinator_epoch
lockstep_coordinator_changes_total
lockstep_consecutive_aborts
lockstep_outage_seconds
lockstep_halted
lockstep_worker_memory_bytes worker
lockstep_worker_memory_max_bytes worker
lockstep_worker_buffered_bytes worker
lockstep_worker_seconds_total worker stage
lockstep_worker_restarts_total worker
lockstep_service_running service
lockstep_service_failures service
lockstep_service_commits_due service
lockstep_service_last_age_seconds service
kafka_consumergroup_group_lag group topic partition
kafka_consumergroup_group_lag_seconds group topic partition
"""
"""Dashboards and alerts ask for these. One is never changed or removed silently: a release says so."""

READERS: tuple[tuple[bool, Callable[[str], Iterator[Any]]], ...] = (
    (True, read_openmetrics),
    (False, read_classic),
)


@pytest.fixture(scope="module")
def said() -> Said:
    return rich()


def text(found: Seen, now_ms: int, *, openmetrics: bool = False) -> str:
    return exposed(lambda: metrics_seen(found, now_ms), as_openmetrics=openmetrics).decode()


def samples(found: Seen, now_ms: int) -> dict[tuple[str, ...], float]:
    """(name, values of the labels but the pipeline's, in the table's order) -> figure."""
    order = {metric.name: metric.labels for metric in METRICS}
    return {
        (sample.name, *(sample.labels[one] for one in order.get(sample.name, ("part",)))): sample.value
        for family in read_classic(text(found, now_ms))
        for sample in family.samples
        if "le" not in sample.labels
    }


def names(found: Seen, now_ms: int) -> set[str]:
    return {name for name, *_ in samples(found, now_ms)}


# --- the contract ---------------------------------------------------------------------------------------


def test_a_name_is_never_changed_silently() -> None:
    contract = [line.split() for line in CONTRACT.split("\n") if line]
    assert [[metric.name, *metric.labels] for metric in METRICS] == contract


def test_every_metric_says_what_it_is_and_ends_with_its_unit() -> None:
    for metric in METRICS:
        assert metric.meaning.endswith(".")
        bare = metric.name.removesuffix("_total")
        spelled = bare.endswith(f"_{metric.unit}") or metric.unit in ("", "workers")
        whole = metric.name in ("lockstep_seconds_since_last_commit",) or metric.unit == "records"
        assert spelled or whole or bare.endswith("_max"), metric.name


@pytest.mark.parametrize(("openmetrics", "reader"), READERS, ids=["openmetrics", "classic"])
def test_prometheus_own_parsers_read_every_metric(
    said: Said, openmetrics: bool, reader: Callable[[str], Iterator[Any]]
) -> None:
    families = list(reader(text(seen(said), said.now_ms, openmetrics=openmetrics)))
    found = {family.name: family for family in families}
    assert len(found) == len(families) == len(METRICS)
    for metric in METRICS:
        bare = metric.name.removesuffix("_total")
        family = found.get(metric.name) or found.get(bare) or found[metric.name.removesuffix("_info")]
        assert family.documentation == metric.meaning
        for sample in family.samples:
            assert sample.labels.keys() - {"le"} == {"pipeline", *metric.labels}
            assert sample.labels["pipeline"] == PIPELINE


def test_openmetrics_has_its_end_and_types_of_its_own(said: Said) -> None:
    whole = text(seen(said), said.now_ms, openmetrics=True)
    assert whole.endswith("# EOF\n")
    assert "# TYPE lockstep_transactions counter" in whole
    assert "# UNIT lockstep_commit_duration_seconds seconds" in whole
    assert "# EOF" not in text(seen(said), said.now_ms)


def test_hostile_names_are_values_and_nothing_else(said: Said) -> None:
    odd = SourcePartition('a"b\\c\nlockstep_halted 1', 0)
    other = Said(partitions=(odd,))
    other.begin()
    other.whole()
    found = seen(other, with_driver=False)
    assert samples(found, other.now_ms)[("lockstep_lag_records", odd.topic, "0")] == 0
    assert samples(found, other.now_ms)[("lockstep_halted",)] == 0


# --- figures --------------------------------------------------------------------------------------------


def test_figures_are_those_of_the_page(said: Said) -> None:
    found = samples(seen(said), said.now_ms)
    assert found[("lockstep_state", "running")] == 1 and found[("lockstep_state", "halted")] == 0
    assert found[("lockstep_mode", "run")] == 1 and found[("lockstep_mode", "stop")] == 0
    assert found[("lockstep_total_lag_records",)] == 251_000
    assert found[("lockstep_table_freshness_seconds",)] == found[("lockstep_max_lag_seconds",)] == 10
    assert found[("lockstep_transactions_total", "committed", "bytes")] == 12
    assert found[("lockstep_transactions_total", "aborted", "refused")] == 1
    assert found[("lockstep_dead_letters_total",)] == 41
    assert found[("lockstep_late_records_total",)] == 3 * 61
    assert found[("lockstep_watermark_seconds",)] == said.now_ms / 1_000 - 600
    assert found[("lockstep_watermark_lag_seconds",)] == 600
    assert found[("lockstep_watermark_idle_source_partitions",)] == 1
    assert found[("lockstep_participants",)] == 2 and found[("lockstep_participants_missing",)] == 1
    assert found[("lockstep_outage_seconds",)] == 12
    assert found[("lockstep_service_commits_due", "clustering")] == 1.55
    assert found[("lockstep_worker_restarts_total", "worker-1")] == 0, "that was in the run before"
    assert ("lockstep_worker_memory_bytes", "worker-2") not in found, "it is dead"
    assert found[("lockstep_commit_duration_seconds_count", "total")] == 61
    assert found[("kafka_consumergroup_group_lag", PIPELINE, "orders", "0")] == 1_000


def test_the_first_of_a_kind_is_an_increase_for_it_was_0_before() -> None:
    said = Said()
    said.begin()
    found = samples(seen(said, with_driver=False), said.now_ms)
    reasons = [("committed", one) for one in END_REASONS] + [("aborted", one) for one in ABORT_CAUSES]
    assert all(found[("lockstep_transactions_total", *one)] == 0 for one in reasons)
    assert all(found[("lockstep_worker_restarts_total", one)] == 0 for one in WORKERS)
    assert all(found[("lockstep_commit_duration_seconds_count", part)] == 0 for part in PARTS)
    assert found[("lockstep_dead_letters_total",)] == found[("lockstep_coordinator_changes_total",)] == 0


def test_seconds_since_the_last_commit_count_on_while_everything_is_away(said: Said) -> None:
    found = seen(said)
    before = samples(found, said.now_ms)[("lockstep_seconds_since_last_commit",)]
    for place in ("topic", "broker", "table", "driver"):
        found.failed(place, "away")
    found.looked_at_driver(said.now_ms + 3_600_000, None)
    after = samples(found, said.now_ms + 3_600_000)[("lockstep_seconds_since_last_commit",)]
    assert after == pytest.approx(before + 3_600, abs=0.2)  # the table's own time instead of the driver's


def test_where_nothing_was_ever_committed_they_count_from_the_runs_start() -> None:
    said = Said()
    said.begin()
    found = Seen(settings=settings(), asks_driver=True, history=said.history)
    assert ("lockstep_seconds_since_last_commit",) not in samples(found, said.now_ms)
    found.looked_at_table(said.now_ms, TableLook(), "")
    assert samples(found, said.now_ms + 7_000)[("lockstep_seconds_since_last_commit",)] == 7


def test_a_table_is_counted_or_nothing_is_said_of_its_files(said: Said) -> None:
    found = samples(seen(said), said.now_ms)
    assert found[("lockstep_table_files",)] == 32 and found[("lockstep_table_small_files",)] == 31
    assert found[("lockstep_table_size_bytes",)] == 122_000_000
    other = seen(said)
    other.counted_files(said.now_ms, None)
    assert not [name for name in names(other, said.now_ms) if name.startswith("lockstep_table_files")]


# --- what is not known ----------------------------------------------------------------------------------


def test_an_observer_that_has_seen_nothing_says_so_and_nothing_else() -> None:
    found = Seen(settings=settings(), asks_driver=True, history=History())
    assert names(found, 1) == {"lockstep_build_info", "lockstep_state"}
    assert samples(found, 1)[("lockstep_state", "unknown")] == 1


def test_nothing_is_counted_before_the_topic_was_read_to_its_end(said: Said) -> None:
    found = seen(said)
    found.history.caught_up = False
    try:
        told = names(found, said.now_ms)
    finally:
        found.history.caught_up = True
    counters = {metric.name for metric in METRICS if metric.kind == "counter"}
    assert told & counters == {"lockstep_worker_seconds_total"}, "which the driver says"
    assert "lockstep_consecutive_aborts" not in told


def test_there_is_no_lag_of_a_table_that_nobody_has_read(said: Said) -> None:
    found = Seen(settings=settings(), asks_driver=True, history=said.history)
    found.looked_at_broker(said.now_ms, source_look(said), *found.committed())
    told = names(found, said.now_ms)
    assert not [name for name in told if "lag" in name or "freshness" in name]


def test_what_the_broker_said_long_ago_says_nothing_of_now(said: Said) -> None:
    found = seen(said, with_driver=False)
    found.failed(BROKER, "no answer")
    assert "lockstep_total_lag_records" in names(found, said.now_ms + LAG_OLD_MS - 1)
    later = names(found, said.now_ms + LAG_OLD_MS)
    assert not [name for name in later if "lag" in name or "freshness" in name]
    assert "lockstep_participants" not in later and "lockstep_observed_age_seconds" in later


def test_no_worker_is_missing_where_no_run_is_alive() -> None:
    said = Said()
    said.begin()
    said.whole()
    found = seen(said, with_driver=False)
    look = source_look(said)
    found.looked_at_broker(said.now_ms, replace(look, members=()), *found.committed())
    told = samples(found, said.now_ms)
    assert told[("lockstep_state", "stopped")] == 1
    assert ("lockstep_participants_missing",) not in told and told[("lockstep_participants",)] == 0


def test_what_only_the_driver_knows_goes_with_it(said: Said) -> None:
    told = names(seen(said, with_driver=False), said.now_ms)
    assert "lockstep_outage_seconds" not in told
    assert not [name for name in told if name.startswith("lockstep_service")]
    assert "lockstep_worker_memory_bytes" not in told
    assert "lockstep_participants_missing" in told, "which the group knows, too"


def test_an_observer_that_begins_in_an_outage_says_for_how_long_it_has_seen_nothing() -> None:
    found = Seen(settings=settings(), asks_driver=True)
    for place in ("topic", "broker", "table"):
        found.failed(place, "away")
    found.looked_at_driver(NOW_MS, None)
    whole = exposed(
        lambda: replace(metrics_seen(found, NOW_MS + 90_000), since_ms=NOW_MS), as_openmetrics=False
    )
    ages = {
        sample.labels["source"]: sample.value
        for family in read_classic(whole.decode())
        for sample in family.samples
        if sample.name == "lockstep_observed_age_seconds"
    }
    assert ages == {"topic": 90, "broker": 90, "table": 90}, "that no driver answers is no trouble"


def test_lag_is_there_for_as_long_as_a_slow_broker_is_looked_at_and_the_observer_rests() -> None:
    assert LAG_OLD_MS > 1_000 * (LOOK_EVERY_MAX_S + 2 * ASK_S + LOOK_EVERY_S)


@pytest.mark.parametrize(("openmetrics", "reader"), READERS, ids=["openmetrics", "classic"])
def test_a_workers_name_is_one_short_line_whoever_gave_it(
    openmetrics: bool, reader: Callable[[str], Iterator[Any]]
) -> None:
    odd = ("w\r# EOF", "w\n# EOF", 'w"} 1\rlockstep_halted{pipeline="prod"} 1\r', "w" * 100_000, "w" * 99_999)
    said = Said()
    said.begin()
    for number, name in enumerate((*odd, "w\ud800")):
        said.say(ParticipantJoin(partitions=()), sender=name, who=f"{number}" * 32)
    found = seen(said, with_driver=False)
    whole = text(found, said.now_ms, openmetrics=openmetrics)
    families = list(reader(merged([whole.encode(), whole.replace(PIPELINE, "other").encode()]).decode()))
    told = [sample for family in families for sample in family.samples]
    assert {sample.labels["pipeline"] for sample in told} == {PIPELINE, "other"}
    workers = [one.labels["worker"] for one in told if one.name == "lockstep_worker_restarts_total"]
    assert len(workers) == 2 * len(set(workers)) and "w" * 128 in workers
    assert all(len(one) <= 128 and one.isprintable() for one in workers)


# --- bounds ---------------------------------------------------------------------------------------------


def test_the_number_of_series_is_bounded() -> None:
    many = tuple(SourcePartition("t", number) for number in range(PARTITIONS_MAX + 200))
    said = Said(partitions=many)
    said.begin()
    said.whole()
    found = seen(said, with_driver=False)
    found.looked_at_broker(said.now_ms, source_look(said, {many[-1]: 7}), *found.committed())
    driver = live(said)
    driver["workers"] = [{**driver["workers"][0], "slot": number} for number in range(WORKERS_MAX + 50)]
    found.looked_at_driver(said.now_ms, driver)
    told = samples(found, said.now_ms)
    lag = [key for key in told if key[0] == "lockstep_lag_records"]
    assert len(lag) == PARTITIONS_MAX
    assert told[("lockstep_lag_records", "t", str(many[-1].number))] == 7, "the worst are among them"
    assert sum(key[0] == "lockstep_worker_buffered_bytes" for key in told) == WORKERS_MAX
