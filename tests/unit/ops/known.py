"""The metrics that there are, with their labels beside `pipeline`."""

from __future__ import annotations

from collections.abc import Mapping

_PLAIN = """
seconds_since_last_commit table_freshness_seconds records_total bytes_total files_total dead_letters_total
lag_records_sum lag_seconds_max participants participants_missing coordinator_epoch coordinator_changes_total
consecutive_aborts outage_seconds halted
"""
_LABELLED = {
    "build_info": {"version"},
    "run_info": {"run"},
    "state": {"state"},
    "mode": {"mode"},
    "observed_age_seconds": {"source"},
    "commit_duration_seconds_bucket": {"part", "le"},
    "commit_duration_seconds_sum": {"part"},
    "commit_duration_seconds_count": {"part"},
    "transactions_total": {"outcome", "reason"},
    "lag_records": {"topic", "source_partition"},
    "lag_seconds": {"topic", "source_partition"},
    "worker_memory_bytes": {"worker"},
    "worker_memory_max_bytes": {"worker"},
    "worker_buffered_bytes": {"worker"},
    "worker_seconds_total": {"worker", "stage"},
    "worker_restarts_total": {"worker"},
    "service_running": {"service"},
    "service_failures": {"service"},
    "service_commits_due": {"service"},
    "service_last_age_seconds": {"service"},
}

METRICS: Mapping[str, frozenset[str]] = {
    **{f"lockstep_{name}": frozenset() for name in _PLAIN.split()},
    **{f"lockstep_{name}": frozenset(labels) for name, labels in _LABELLED.items()},
}
