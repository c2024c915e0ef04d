"""What the dashboard shows: panels, what each asks and says. tools/dashboard.py makes Grafana's JSON of them.

No panel needs ops/recording.yml. `max by`: a pipeline may be seen by several, its run and a `lockstep ui`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH = 24
OURS = 'pipeline="$pipeline"'
STATE_COLORS: Mapping[str, str] = {
    "running": "green",
    "idle": "green",
    "starting": "yellow",
    "stalled": "red",
    "stopped": "orange",
    "halted": "red",
    "never": "text",
    "unknown": "purple",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`asks`: (expression, legend). `steps`: the color from a value on, of the first from the beginning."""

    title: str
    says: str
    asks: Sequence[tuple[str, str]]
    width: int
    height: int = 8
    kind: str = "timeseries"
    unit: str = "short"
    stacked: bool = False
    bars: bool = False
    steps: Sequence[tuple[float | None, str]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    colors: Mapping[str, str] = field(default_factory=dict)
    """By legend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels below one heading, filled from left to right."""

    title: str
    panels: Sequence[Panel]


def one(metric: str, *labels: str, by: str = "") -> str:
    """How it stands, whoever sees it; without `by` one value of the pipeline."""
    return f"max by ({by or 'pipeline'}) ({metric}{{{','.join((OURS, *labels))}}})"


def rate(metric: str, *labels: str, by: str = "pipeline", range_: str = "$__rate_interval") -> str:
    """A counter's growth a second, of whoever sees most of it."""
    selected = f"{metric}{{{','.join((OURS, *labels))}}}"
    return f"max by ({by}) (sum by ({by}, job, instance) (rate({selected}[{range_}])))"


def quantile(share: float, *labels: str) -> str:
    selected = f"lockstep_commit_duration_seconds_bucket{{{','.join((OURS, *labels))}}}"
    return f"histogram_quantile({share:g}, sum by (part, le) (rate({selected}[$__rate_interval])))"


def stat(
    title: str,
    says: str,
    ask: str,
    *,
    unit: str = "short",
    steps: Sequence[tuple[float | None, str]] = ((None, "green"),),
) -> Panel:
    return Panel(
        title=title,
        says=says,
        asks=[(ask, "")],
        width=4,
        height=4,
        kind="stat",
        unit=unit,
        steps=steps,
        options={"colorMode": "value", "reduceOptions": {"calcs": ["lastNotNull"]}},
    )


STANDING = Row(
    title="How it stands",
    panels=[
        Panel(
            title="State",
            says="As `lockstep status` says it.",
            asks=[(f"{one('lockstep_state', by='state')} == 1", "{{state}}")],
            width=4,
            height=4,
            kind="stat",
            options={
                "textMode": "name",
                "colorMode": "background",
                "reduceOptions": {"calcs": ["lastNotNull"]},
            },
            colors=STATE_COLORS,
        ),
        stat(
            "Since the last commit",
            "It goes on while a topic is idle: look at the lag beside it.",
            f"min by (pipeline) (lockstep_seconds_since_last_commit{{{OURS}}})",
            unit="s",
            steps=((None, "green"), (300, "yellow"), (900, "red")),
        ),
        stat(
            "The table is behind by",
            "Age of the oldest record that is not in the table; 0 where all are.",
            one("lockstep_table_freshness_seconds"),
            unit="s",
            steps=((None, "green"), (300, "yellow"), (3600, "red")),
        ),
        stat(
            "Records that wait", "Lag of all source partitions together.", one("lockstep_total_lag_records")
        ),
        stat(
            "Workers missing",
            "Expected, and silent or not there.",
            one("lockstep_participants_missing"),
            steps=((None, "green"), (1, "red")),
        ),
        stat(
            "Aborts in a row",
            "Transactions that came to nothing since the last commit.",
            one("lockstep_consecutive_aborts"),
            steps=((None, "green"), (1, "yellow"), (3, "red")),
        ),
        Panel(
            title="State over time",
            says="One row for each state that was.",
            asks=[(f"{one('lockstep_state', by='state')} == 1", "{{state}}")],
            width=WIDTH,
            height=5,
            kind="state-timeline",
            options={"showValue": "never", "mergeValues": True},
            colors=STATE_COLORS,
        ),
    ],
)

FLOW = Row(
    title="Records",
    panels=[
        Panel(
            title="Rate",
            says="Records committed in a second.",
            asks=[(rate("lockstep_records_total"), "records")],
            width=8,
            unit="cps",
        ),
        Panel(
            title="Bytes",
            says="Of the files that were committed, in a second.",
            asks=[(rate("lockstep_bytes_total"), "bytes")],
            width=8,
            unit="Bps",
        ),
        Panel(
            title="Files",
            says="Committed in a minute. Many small ones cost readers time: a longer interval makes fewer.",
            asks=[(f"60 * {rate('lockstep_files_total')}", "files")],
            width=8,
        ),
        Panel(
            title="Lag",
            says="Records that are not in the table: all together, and the worst source partitions.",
            asks=[
                (one("lockstep_total_lag_records"), "all"),
                (one("lockstep_producer_transaction_records"), "behind an open producer transaction"),
                (
                    f"topk(5, {one('lockstep_lag_records', by='topic, source_partition')})",
                    "{{topic}}:{{source_partition}}",
                ),
            ],
            width=12,
        ),
        Panel(
            title="Lag in time",
            says="Age of the oldest record that is not in the table, and of the worst source partitions.",
            asks=[
                (one("lockstep_max_lag_seconds"), "oldest"),
                (one("lockstep_producer_transaction_seconds"), "oldest open producer transaction"),
                (
                    f"topk(5, {one('lockstep_lag_seconds', by='topic, source_partition')})",
                    "{{topic}}:{{source_partition}}",
                ),
            ],
            width=12,
            unit="s",
        ),
        Panel(
            title="Complete by event time",
            says="How far the table's watermark is behind the clock, where an event time is declared.",
            asks=[(one("lockstep_watermark_lag_seconds"), "behind")],
            width=12,
            unit="s",
        ),
        Panel(
            title="Late and absurd",
            says="Records in a minute that were behind the watermark, and those whose event time is too far "
            "ahead to count.",
            asks=[
                (f"60 * {rate('lockstep_late_records_total')}", "late"),
                (f"60 * {rate('lockstep_absurd_event_times_total')}", "absurd"),
            ],
            width=12,
        ),
    ],
)

TRANSACTIONS = Row(
    title="Transactions",
    panels=[
        Panel(
            title="Transactions",
            says="In a minute: committed ones by why they ended, aborted ones by cause.",
            asks=[
                (
                    f"60 * {rate('lockstep_transactions_total', by='outcome, reason')}",
                    "{{outcome}}: {{reason}}",
                )
            ],
            width=12,
            stacked=True,
            bars=True,
        ),
        Panel(
            title="Since the last commit",
            says="A saw while commits go on. Beside it, how old what is in the table is.",
            asks=[
                (
                    f"min by (pipeline) (lockstep_seconds_since_last_commit{{{OURS}}})",
                    "since the last commit",
                ),
                (one("lockstep_table_freshness_seconds"), "the table is behind by"),
            ],
            width=12,
            unit="s",
        ),
        Panel(
            title="Commit: half of them",
            says="Median of each part, on top of each other: files are closed and looked at, the lock is "
            "awaited, epoch and offsets are compared, the metadata table and the instant are written.",
            asks=[(quantile(0.5, 'part!~"total|collect"'), "{{part}}")],
            width=12,
            unit="s",
            stacked=True,
        ),
        Panel(
            title="Commit: 99 of 100",
            says="Of each part and of the whole; not stacked, for the slowest differ from part to part.",
            asks=[(quantile(0.99, 'part!="collect"'), "{{part}}")],
            width=12,
            unit="s",
        ),
    ],
)

WORKERS = Row(
    title="Workers",
    panels=[
        Panel(
            title="Memory",
            says="Of each worker's process: memory.per_worker bounds what is for records, and it takes some "
            "200 MB beside.",
            asks=[(one("lockstep_worker_memory_bytes", by="worker"), "{{worker}}")],
            width=6,
            unit="bytes",
        ),
        Panel(
            title="Memory, of what they may have",
            says="By container or machine; the system ends whoever wants more.",
            asks=[
                (
                    f"{one('lockstep_worker_memory_bytes', by='worker')}"
                    f" / {one('lockstep_worker_memory_max_bytes', by='worker')}",
                    "{{worker}}",
                )
            ],
            width=6,
            unit="percentunit",
        ),
        Panel(
            title="Held records",
            says="Taken from the source, and not yet in a file.",
            asks=[(one("lockstep_worker_buffered_bytes", by="worker"), "{{worker}}")],
            width=6,
            unit="bytes",
        ),
        Panel(
            title="Where their time goes",
            says="Seconds in a second, all workers together.",
            asks=[(rate("lockstep_worker_seconds_total", by="stage"), "{{stage}}")],
            width=6,
            unit="short",
            stacked=True,
        ),
        Panel(
            title="Workers",
            says="There, and missing.",
            asks=[
                (one("lockstep_participants"), "there"),
                (one("lockstep_participants_missing"), "missing"),
            ],
            width=8,
        ),
        Panel(
            title="Restarts",
            says="Of workers, within half an hour.",
            asks=[
                (
                    f"max by (worker) (increase(lockstep_worker_restarts_total{{{OURS}}}[30m]))",
                    "{{worker}}",
                )
            ],
            width=8,
        ),
        Panel(
            title="Coordinator",
            says="Its epoch grows by one or more each time another worker takes over, and with each run.",
            asks=[
                (one("lockstep_coordinator_epoch"), "epoch"),
                (
                    f"max by (pipeline) (increase(lockstep_coordinator_changes_total{{{OURS}}}[30m]))",
                    "changes in 30 min",
                ),
            ],
            width=8,
        ),
    ],
)

UPKEEP = Row(
    title="The table, and what went wrong",
    panels=[
        Panel(
            title="Services: due",
            says="Commits since a service was done, by those after which it is to be done: 1 is due.",
            asks=[(one("lockstep_service_commits_due", by="service"), "{{service}}")],
            width=8,
        ),
        Panel(
            title="Services: running, failed",
            says="Whether one runs, and how often in a row it failed.",
            asks=[
                (one("lockstep_service_running", by="service"), "{{service}} runs"),
                (one("lockstep_service_failures", by="service"), "{{service}} failed"),
            ],
            width=8,
        ),
        Panel(
            title="Services: last done",
            says="Ago.",
            asks=[(one("lockstep_service_last_age_seconds", by="service"), "{{service}}")],
            width=8,
            unit="s",
        ),
        Panel(
            title="Files of the table",
            says="Base files that it is made of now, and those of them that a clustering would put together.",
            asks=[(one("lockstep_table_files"), "files"), (one("lockstep_table_small_files"), "small files")],
            width=12,
        ),
        Panel(
            title="Size of the table",
            says="What its base files hold; replaced ones that are not cleaned yet aside.",
            asks=[(one("lockstep_table_size_bytes"), "bytes")],
            width=12,
            unit="bytes",
        ),
        Panel(
            title="Dead letters",
            says="Rejected records in a minute.",
            asks=[(f"60 * {rate('lockstep_dead_letters_total')}", "dead letters")],
            width=8,
        ),
        Panel(
            title="Outage",
            says="How long storage, lock, clock or broker have been awaited. After 600 s the run halts.",
            asks=[(one("lockstep_outage_seconds"), "outage"), (f"600 * {one('lockstep_halted')}", "halted")],
            width=8,
            unit="s",
        ),
        Panel(
            title="How old this is",
            says="Since topic, broker, table and driver were last read well, by whoever saw them last.",
            asks=[
                (f"min by (source) (lockstep_observed_age_seconds{{{OURS}}})", "{{source}}"),
            ],
            width=8,
            unit="s",
        ),
        Panel(
            title="Run and version",
            says="Of whoever is scraped.",
            asks=[
                (one("lockstep_run_info", by="run"), "run {{run}}"),
                (one("lockstep_build_info", by="version"), "version {{version}}"),
                (f"{one('lockstep_mode', by='mode')} == 1", "mode {{mode}}"),
            ],
            width=WIDTH,
            height=4,
            kind="stat",
            options={"textMode": "name", "colorMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}},
        ),
    ],
)

ROWS = (STANDING, FLOW, TRANSACTIONS, WORKERS, UPKEEP)
