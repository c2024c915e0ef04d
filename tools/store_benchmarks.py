"""The parts of docs/benchmarks.md about tables on a store; `tools/benchmarks.py` puts them there.

Who is compared ran in turns in one session: nothing here is a ratio of figures of two sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tools.cells import NOT_YET, OURS, origin, spread, table
from tools.staleness import commit_mark

Read = Callable[[str], Mapping[str, Any] | None]
"""The recorded evidence of a name."""

PLACES = ("-s3-far", "-s3", "-hdfs")
"""As labels of rivals end, the longest first."""
RATES = ("steady_rows_per_s", "window_rows_per_s")
COMMITS: Mapping[str, str] = {
    "commits-s3": "S3",
    "commits-s3-far": "S3, far",
    "commits-files-s3": "S3, 100 files a commit",
    "commits-files-s3-far": "S3, far, 100 files a commit",
    "commits-hdfs": "HDFS",
}
SERVERS = {"s3": "an S3 server", "hdfs": "HDFS"}
PLAYED_ON = {**SERVERS, "gs": "an emulator of Google's storage", "azure": "an emulator of Azure's storage"}
"""Where faults are played."""
BESIDE = {
    "s3": (
        "The server (SeaweedFS), and where it is far the proxy before it, are on the same machine and disk;",
        "what they take of the processors is in no other figure. Iceberg's sink writes by its S3FileIO and",
        "has its catalog in a file on the disk, where Spark's checkpoint is as well.",
    ),
    "hdfs": (
        "The name node and its data node are one process on the same machine and disk; what it takes of the",
        "processors is in no other figure. Spark's checkpoint is in a folder of the disk.",
    ),
}
KILLED = "driver_killed"
LOCKED = "left_the_table_locked"


def on_stores(read: Read) -> list[Sequence[str]]:
    """All parts, in their order."""
    return [
        *(_rates(read, "narrow", f"Narrow JSON, the table on {on}", store) for store, on in SERVERS.items()),
        *(
            _rates(read, "upserts", f"Upserts, the table on {on}, nobody compacts", store)
            for store, on in SERVERS.items()
        ),
        _commits(read),
        *(_recovery(read, store) for store in PLAYED_ON),
        _proxy(read),
    ]


def _rates(read: Read, workload: str, title: str, store: str) -> list[str]:
    name = f"{workload}-{store}"
    kept = read(f"bench-{name}")
    if kept is None:
        return [f"{title}: {NOT_YET}."]
    found = kept["figures"]
    rows = []
    for label in found["rivals"]:
        base, place = _parts(label)
        ours = base == OURS
        cells = []
        for metric in RATES:
            of_ours = _ratio(found, label, OURS, metric) if ours and place else "–"
            theirs = "–" if ours else _ratio(found, OURS + place, label, metric)
            cells += [_rate(found, label, metric), of_ours, theirs]
        rows.append([found["titles"][label], *cells, _store_cpu(found, label)])
    titles = ("rows/s", "of the folder's", "Lockstep there is ×")
    sustained = [f"{one}, sustained" for one in titles]
    return [
        f"{title}{_far(found)}; {found['records']:,} records:",
        "",
        *table(("", *sustained, *(f"{one}, all" for one in titles), "the store's µs CPU/row"), rows),
        "",
        *BESIDE[store],
        *origin(name, kept),
    ]


def _rate(found: Mapping[str, Any], label: str, metric: str) -> str:
    runs = [run for run in found["runs"] if run["rival"] == label]
    if all("failed" in run for run in runs):
        return "failed"
    rate = found["rivals"][label][metric]
    return spread(rate, "{:,.0f}") if rate is not None else "too few commits"


def _parts(label: str) -> tuple[str, str]:
    """The rival's name, and where its table is."""
    name = label.partition("@")[0]
    place = next((one for one in PLACES if name.endswith(one)), "")
    return name.removesuffix(place), place


def _ratio(found: Mapping[str, Any], of: str, to: str, metric: str) -> str:
    theirs = found["ratios"].get(of, {}).get(to)
    return spread(theirs[metric], "{:.2f}") if theirs else "–"


def _store_cpu(found: Mapping[str, Any], label: str) -> str:
    """Over whole loads."""
    taken = [
        1e6 * run["store_cpu_s"] / run["rows"]
        for run in found["runs"]
        if run["rival"] == label and run.get("store_cpu_s") is not None
    ]
    return f"{sum(taken) / len(taken):.2f}" if taken else "–"


def _far(found: Mapping[str, Any]) -> str:
    latency_ms = found.get("latency_ms")
    return f"; far: {latency_ms:g} ms more for each request" if latency_ms else ""


def _commits(read: Read) -> list[str]:
    measured = {name: kept for name in COMMITS if (kept := read(f"bench-{name}"))}
    if not measured:
        return [f"How long a commit takes on a store: {NOT_YET}."]
    rows = []
    for name, kept in measured.items():
        found = kept["figures"]
        latency = f", {found['latency_ms']:g} ms a request" if found["latency_ms"] else ""
        for one in found["at"]:
            metrics = ("commit_number", "commit_p50_ms", "commit_p99_ms", "write_p50_ms")
            rows.append([COMMITS[name] + latency, *(f"{one[metric]:,}" for metric in metrics)])
    return [
        "A commit on a store, from END sent to ACK sent; of that, until the last worker had ended its files:",
        "",
        *table(("", "commits", "p50, ms", "p99, ms", "files, p50, ms"), rows),
        *(line for name, kept in measured.items() for line in origin(name, kept)),
    ]


def _recovery(read: Read, store: str) -> list[str]:
    """Of the faults' scenarios, which kill it at every step of a transaction."""
    kept, on = read(f"scenarios-{store}"), PLAYED_ON[store]
    each = kept["figures"]["each"] if kept is not None else []
    killed = [one for one in each if one["name"].startswith(KILLED) and one.get("recovery_s") is not None]
    proved = [one["recovery_s"] for one in killed if LOCKED not in one.get("notes", {})]
    if kept is None or not proved:
        return [f"From a kill of the driver to the next commit on {on}: {NOT_YET}."]
    waited = [one["recovery_s"] for one in killed if LOCKED in one.get("notes", {})]
    lease = f"; {len(waited)} where its lease had to end, at most {max(waited):.1f} s" if waited else ""
    return [
        f"From a kill of the driver to the next commit on {on}: at most {max(proved):.1f} s in "
        f"{len(proved)} scenarios in which nobody had to wait for the end of its lease{lease}.",
        "",
        f"`{kept['command']}`: [every scenario](evidence/scenarios-{store}.json){_left(kept['figures'])}"
        f"{commit_mark(kept)}.",
    ]


def _left(figures: Mapping[str, Any]) -> str:
    """How many were not played yet, where some were not."""
    scenarios, played = figures.get("scenarios", 0), figures.get("played", 0)
    return f", {played} of {scenarios} so far" if played < scenarios else ""


def _proxy(read: Read) -> list[str]:
    kept = read("bench-latency")
    if kept is None:
        return [f"What the proxy takes by itself: {NOT_YET}."]
    rows = []
    for name, one in kept["figures"]["ways"].items():
        large = [spread(one[f"{what}_large_mb_per_s"], "{:,.0f}") for what in ("put", "read")]
        small = [
            f"{one[f'{what}_small_p{percent}_ms']:.1f}" for what in ("put", "read") for percent in (50, 99)
        ]
        rows.append([name, *large, *small])
    found = kept["figures"]
    return [
        f"What the proxy takes by itself, at {found['latency_ms']:g} ms a request; objects of "
        f"{found['object_bytes'] / 1e6:,.0f} MB, and of a few bytes. Each direction is half of it late; a "
        "connection is made at once:",
        "",
        *table(
            (
                *("", "MB/s put", "MB/s read"),
                *("put p50, ms", "put p99, ms", "read p50, ms", "read p99, ms"),
            ),
            rows,
        ),
        *origin("latency", kept),
    ]
