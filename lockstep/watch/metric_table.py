"""Every metric once: its name, what it is, what to alert on. docs/metrics.md is made of it by `make docs`.

A name is a contract: dashboards and alerts ask for it. It is never changed silently; a test holds the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lockstep.watch import metric_values as values
from lockstep.watch.metric_values import MetricsSeen, Sample

Values: TypeAlias = Callable[[MetricsSeen], Iterator[Sample]]

GAUGE, COUNTER, HISTOGRAM, INFO = "gauge", "counter", "histogram", "info"
PREFIX = "lockstep_"
PIPELINE = "pipeline"
"""A label of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """`name`: as it is asked for; of a histogram without `_bucket`, `_sum` and `_count`."""

    name: str
    kind: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    """Beside `PIPELINE`."""

    meaning: str
    alert: str = ""
    """What to alert on; empty where it is for looking at."""

    values: Values


def _gauge(name: str, values: Values, meaning: str, **more: str) -> Metric:
    return _metric(PREFIX + name, GAUGE, values, meaning, **more)


def _counter(name: str, values: Values, meaning: str, **more: str) -> Metric:
    return _metric(f"{PREFIX}{name}_total", COUNTER, values, meaning, **more)


def _metric(
    name: str,
    kind: str,
    values: Values,
    meaning: str,
    *,
    unit: str = "",
    labels: str = "",
    alert: str = "",
) -> Metric:
    return Metric(
        name=name,
        kind=kind,
        unit=unit,
        labels=tuple(labels.split()),
        meaning=meaning,
        alert=alert,
        values=values,
    )


METRICS: tuple[Metric, ...] = (
    _metric("lockstep_build_info", INFO, values.build, "1, for the version that observes.", labels="version"),
    _metric("lockstep_run_info", INFO, values.run, "1, for the newest run.", labels="run"),
    _gauge(
        "state",
        values.state,
        "1 for the state that `lockstep status` shows, 0 for the others: running, idle, stalled, starting, "
        "stopped, halted, never, unknown. It is `unknown` until everything was looked at.",
        labels="state",
        alert="`stalled` for longer than a few intervals; `stopped` while `lockstep_mode` is still `run`",
    ),
    _gauge(
        "mode",
        values.mode,
        "1 for what the run is to do: run, pause, drain, stop, halt. As last known, also after the run has "
        "ended, so that a run that was stopped can be told from one that died.",
        labels="mode",
    ),
    _gauge(
        "observed_age_seconds",
        values.observed_age,
        "Since topic, broker, table and driver were last read well, the topic up to where it ended then; of "
        "topic, broker and table that were never read, since the observer began; absent for a driver that "
        "never answered. A table of which all is known is read once a minute.",
        unit="seconds",
        labels="source",
        alert="topic or broker for longer than 5 min: what else is shown is old",
    ),
    _gauge(
        "seconds_since_last_commit",
        values.since_last_commit,
        "Since the newest commit that table, driver or topic tell of; where there is none yet, since the run "
        "was announced. Counts on while all of them are away. An idle pipeline commits nothing: join it with "
        "`lockstep_total_lag_records > 0`.",
        unit="seconds",
        alert="longer than a few intervals and a write timeout, while records wait",
    ),
    _gauge(
        "table_freshness_seconds",
        values.freshness,
        "Age of the oldest record that is on a source topic and not in the table; 0 where none is. Estimated "
        "from where logs ended when (docs/metrics.md, *Lag in seconds*); absent where that is not known.",
        unit="seconds",
        alert="older than what readers of the table were promised",
    ),
    _metric(
        "lockstep_commit_duration_seconds",
        HISTOGRAM,
        values.commit_duration,
        "Of transactions that were committed: `collect`, START to END; `close`, END until every worker has "
        "answered; `total`, from there to the ACK, and of that `files` (looking at each file), `lock` "
        "(waiting for the table lock), `check` (epoch and offsets), `metadata` (Hudi's metadata table, where "
        "there is one), `write` (the rest, with the completed instant).",
        unit="seconds",
        labels="part",
        alert="`total` or `close` near `transaction.interval`: commits no longer keep up",
    ),
    _counter(
        "transactions",
        values.transactions,
        "Transactions that ended: committed ones by why they were ended, aborted ones by the class of the "
        "reason, `other` where nobody said so.",
        labels="outcome reason",
        alert='`increase(…{outcome="aborted"})` beyond now and then',
    ),
    _counter("records", values.records, "Records in committed transactions.", unit="records"),
    _counter("bytes", values.size_bytes, "Bytes of the files in committed transactions.", unit="bytes"),
    _counter("files", values.files, "Files in committed transactions.", unit="files"),
    _counter(
        "dead_letters",
        values.dead_letters,
        "Records that were no rows, in committed transactions; they are in the dead-letter topic.",
        alert="any, or more than usual: what share is normal only you can know",
    ),
    _gauge(
        "watermark_seconds",
        values.watermark,
        "The table's watermark, in seconds since 1970: no earlier event time is to come "
        "(docs/watermark.md). Absent where the newest commit has none.",
        unit="seconds",
    ),
    _gauge(
        "watermark_lag_seconds",
        values.watermark_lag,
        "How far it is behind the observer's clock: the lateness that is allowed, and what holds it. It "
        "grows where all source partitions are idle.",
        unit="seconds",
        alert="longer than batch jobs can wait, while `lockstep_records_total` grows: `lockstep status` says "
        "which source partition holds it",
    ),
    _gauge(
        "watermark_idle_source_partitions",
        values.watermark_idle,
        "Source partitions that do not hold it, for nothing comes of them.",
    ),
    _counter(
        "late_records",
        values.late_records,
        "Records in committed transactions that were behind the watermark.",
        unit="records",
        alert="more than readers of complete days can bear: raise `record.lateness`",
    ),
    _counter(
        "absurd_event_times",
        values.absurd_times,
        "Records in committed transactions whose event time is too far ahead to count.",
        alert="any share that is not small: a unit is wrong, or a clock",
    ),
    _gauge(
        "table_files",
        values.table_files,
        "Base files that the table is made of now; log files, replaced and uncommitted ones aside. Counted "
        "each five minutes at most, where something was committed; absent before. Of a table of more than "
        "200,000 files a least.",
        unit="files",
    ),
    _gauge(
        "table_size_bytes",
        values.table_size,
        "What they hold, as of the same count.",
        unit="bytes",
    ),
    _gauge(
        "table_small_files",
        values.table_small_files,
        "Those of them that are smaller than what a clustering puts together, as of the same count: half of "
        "`table.target_file_size`, unless `table.hudi` says otherwise.",
        unit="files",
        alert="a share of `lockstep_table_files` that readers feel; how much that is only you can know",
    ),
    _gauge(
        "lag_records",
        values.lag_records,
        "Offsets between the table and the end of the log, with gaps and with records of open producer "
        "transactions: the 1,000 source partitions that are furthest behind.",
        unit="records",
        labels="topic source_partition",
    ),
    _gauge(
        "lag_seconds",
        values.lag_seconds,
        "Age of the oldest record that is not in the table, of the same; exactly 0 where there is none, "
        "absent where it is not known.",
        unit="seconds",
        labels="topic source_partition",
    ),
    _gauge(
        "total_lag_records",
        values.total_lag_records,
        "Of all source partitions together.",
        unit="records",
        alert="growing for longer than a peak lasts",
    ),
    _gauge(
        "max_lag_seconds",
        values.max_lag_seconds,
        "Of the source partition that is furthest behind.",
        unit="seconds",
        alert="as `lockstep_table_freshness_seconds`",
    ),
    _gauge(
        "producer_transaction_records",
        values.open_transaction_records,
        "Offsets from the oldest open producer transaction on, of all source partitions. A read-committed "
        "consumer cannot read them until the producer commits or aborts.",
        unit="records",
    ),
    _gauge(
        "producer_transaction_seconds",
        values.open_transaction_seconds,
        "Age of the oldest open producer transaction; 0 where none is open, absent where it is not known.",
        unit="seconds",
        alert="more than the longest `transaction.timeout.ms` of the producers",
    ),
    _gauge("participants", values.participants, "Workers that are there.", unit="workers"),
    _gauge(
        "participants_missing",
        values.participants_missing,
        "Workers that are expected (`pipeline.workers`) and silent or not there, while a run is alive.",
        unit="workers",
        alert="more than 0 for longer than a restart takes",
    ),
    _gauge("coordinator_epoch", values.coordinator_epoch, "The highest epoch that is known."),
    _counter(
        "coordinator_changes",
        values.coordinator_changes,
        "How often another coordinator took over within the run.",
        alert="more than a few an hour",
    ),
    _gauge(
        "consecutive_aborts",
        values.consecutive_aborts,
        "Transactions in a row that were aborted, up to now.",
        alert="2 and more; `transaction.max_consecutive_failures` of the pipeline's own halt the run",
    ),
    _gauge(
        "outage_seconds",
        values.outage,
        "For how long nothing could be committed, by the environment's fault; 0 where all is well, absent "
        "where no driver answers.",
        unit="seconds",
        alert="more than 60; at 600 the run halts",
    ),
    _gauge(
        "halted",
        values.halted,
        "1 where the newest run has halted, 0 where it has not.",
        alert="1: nothing goes on before somebody removes the cause",
    ),
    _gauge(
        "worker_memory_bytes",
        values.worker_memory,
        "Resident memory of the worker's process.",
        unit="bytes",
        labels="worker",
        alert="near `lockstep_worker_memory_max_bytes`",
    ),
    _gauge(
        "worker_memory_max_bytes",
        values.worker_memory_max,
        "What it may have before the system ends it: the container's limit, else the machine's memory.",
        unit="bytes",
        labels="worker",
    ),
    _gauge(
        "worker_buffered_bytes",
        values.worker_buffered,
        "Records that it holds and has not written yet.",
        unit="bytes",
        labels="worker",
    ),
    _counter(
        "worker_seconds",
        values.worker_seconds,
        "Where its time went, by stage, since its start.",
        unit="seconds",
        labels="worker stage",
    ),
    _counter(
        "worker_restarts",
        values.worker_restarts,
        "How often another incarnation of the worker came within the run.",
        labels="worker",
        alert="more than one in a quarter of an hour: it dies in a loop",
    ),
    _gauge("service_running", values.service_running, "1 while it works.", labels="service"),
    _gauge(
        "service_failures",
        values.service_failures,
        "How often it failed in a row.",
        labels="service",
        alert="3 and more",
    ),
    _gauge(
        "service_commits_due",
        values.service_commits_due,
        "Commits since it was done, divided by how many there are to be between: at 1 it is due.",
        labels="service",
        alert="3 and more: it does not keep up",
    ),
    _gauge(
        "service_last_age_seconds",
        values.service_last_age,
        "Since it was last done in this run; absent before.",
        unit="seconds",
        labels="service",
    ),
    _metric(
        "kafka_consumergroup_group_lag",
        GAUGE,
        values.group_lag,
        "`lockstep_lag_records` by the name that dashboards for kafka-lag-exporter ask for.",
        unit="records",
        labels="group topic partition",
    ),
    _metric(
        "kafka_consumergroup_group_lag_seconds",
        GAUGE,
        values.group_lag_seconds,
        "`lockstep_lag_seconds`, likewise.",
        unit="seconds",
        labels="group topic partition",
    ),
)
