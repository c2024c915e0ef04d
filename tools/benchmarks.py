"""Write the benchmarks' figures into docs/benchmarks.md, and four of all figures into README.md.

Run by `make docs`, tested for staleness.

They are those of docs/evidence/*.json, which recorded runs leave; none is typed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.workloads import ENCODED, WORKLOADS  # noqa: E402
from tests import evidence  # noqa: E402
from tools.cells import NOT_YET, OURS, origin, peak, ratio, spread, steady, table  # noqa: E402
from tools.native_benchmarks import alone, decoded  # noqa: E402
from tools.page_benchmarks import watched  # noqa: E402
from tools.places import fill  # noqa: E402
from tools.size_benchmarks import beside, sized  # noqa: E402
from tools.staleness import commit_mark  # noqa: E402
from tools.store_benchmarks import on_stores  # noqa: E402

DOCUMENT = ROOT / "docs" / "benchmarks.md"
FIRST_SCREEN = ROOT / "README.md"
PICTURE = evidence.RECORDED / "bench.svg"

Read = Callable[[str], Mapping[str, Any] | None]
"""The recorded evidence of a name."""

RIVALS: Mapping[str, str] = {
    "streaming": "Structured Streaming → Hudi",
    "iceberg-warm": "Iceberg Connect, warm",
    "plain": "plain writer",
}
COLD: Mapping[str, str] = {
    "streaming": "Structured Streaming → Hudi",
    "iceberg-cold": "Iceberg Connect, cold",
}
PLAIN_READER = "lockstep-plain"
ELSEWHERE = {"short", "files"}
"""Workloads of other parts than the sustained rates."""


def updated(document: str, read: Read = evidence.read) -> str:
    """The document with its figures. Raises `ValueError` where they have no place."""
    return fill(document, {"figures": lambda: figures(read)}, DOCUMENT.name)


def first_screen(document: str, read: Read = evidence.read) -> str:
    """README with its four figures. Raises `ValueError` where they have no place."""
    return fill(document, {"four figures": lambda: four_figures(read)}, FIRST_SCREEN.name)


def four_figures(read: Read) -> str:
    """What a reader wants to know first: is it right, is it fast, at what price, how fresh."""
    return "\n".join(table(("", ""), [*_right(read), *_fast(read), *_fresh(read)]))


def _right(read: Read) -> Iterator[tuple[str, str]]:
    kept = read("scenarios")
    if kept is not None:
        found = kept["figures"]
        yield (
            f"**{found['as_expected']} of {found['scenarios']}** fault scenarios end as they must",
            "real broker, Spark and Hudi; killed, paused, cut off, forged, clocks turned, disks full "
            f"([reliability](docs/reliability.md)){commit_mark(kept)}",
        )


def _fast(read: Read) -> Iterator[tuple[str, str]]:
    """Against the best that a Spark stream did, whatever its batches, over whole runs."""
    for name, what in (("narrow", "inserts"), ("upserts", "upserts")):
        kept = read(f"bench-{name}")
        found = kept["figures"]["ratios"].get(OURS, {}) if kept is not None else {}
        theirs = [one for rival, one in found.items() if rival.partition("@")[0] == "streaming"]
        if theirs:
            best = min(theirs, key=lambda one: one["window_rows_per_s"]["median"])
            yield (
                f"**{best['window_rows_per_s']['median']:.1f} ×** the rate of Structured Streaming → Hudi, "
                f"{what}",
                f"with {best['window_cpu_us_per_row']['median']:.2f} of its CPU per row, over a whole run "
                f"([benchmarks](docs/benchmarks.md)){commit_mark(kept)}",
            )


def _fresh(read: Read) -> Iterator[tuple[str, str]]:
    kept = read("bench-freshness")
    ours = kept["figures"]["rivals"].get(OURS) if kept is not None else None
    if kept is not None and ours:
        rate, interval_s = kept["figures"]["per_second"], kept["figures"]["interval_s"]
        yield (
            f"**{ours['p50_ms']['median'] / 1_000:.1f} s** from produced to visible, median",
            f"{rate:,} records a second, a commit each {interval_s:g} s{commit_mark(kept)}",
        )


def figures(read: Read) -> str:
    """Everything between the markers."""
    parts: list[Sequence[str]] = []
    if PICTURE.exists():
        where = PICTURE.relative_to(DOCUMENT.parent).as_posix()
        parts.append([f"![Rows a second and CPU per row, by workload and rival]({where})"])
    parts += [
        _throughput(read),
        _plain_reader(read),
        decoded(read),
        alone(read),
        _cold(read),
        _intervals(read),
        _workers(read),
        _upserts(read),
        _beside_compactions(read),
        _queries(read),
        sized(read),
        beside(read),
        _freshness(read),
        _commits(read),
        _stall(read),
        _rejects(read),
        watched(read),
        *on_stores(read),
        _windows(read),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


# --- the parts --------------------------------------------------------------------------------------


def _throughput(read: Read) -> list[str]:
    """A row by workload: what is sustained, and how often Lockstep's rate is the others'."""
    lines = ["Sustained, between the first and the last whole commit: rows a second (µs of CPU per row).", ""]
    titles = "".join(f" {title} | × |" for title in RIVALS.values())
    lines += [f"| workload | Lockstep |{titles} a worker's peak memory |"]
    lines += ["|---|---|" + "---|---|" * len(RIVALS) + "---|"]
    for name, workload in {**WORKLOADS, **ENCODED}.items():
        kept = read(f"bench-{name}")
        if name in ELSEWHERE or (kept is None and name in ENCODED):
            continue
        cells = [steady(kept, OURS)]
        for rival in RIVALS:
            cells += [steady(kept, rival), ratio(kept, rival, "steady_rows_per_s")]
        cells.append(peak(kept, OURS))
        lines.append(f"| {workload.title}{commit_mark(kept)} | {' | '.join(cells)} |")
    return [*lines, *origin("narrow", read("bench-narrow"))]


def _plain_reader(read: Read) -> list[str]:
    """What is left of it where the optional reader is missing."""
    kept = read("bench-narrow")
    theirs = kept["figures"]["ratios"].get(PLAIN_READER) if kept is not None else None
    if not theirs:
        return [f"With the plain reader (no C compiler at installation): {NOT_YET}."]
    lines = []
    for name, title in {OURS: "Lockstep itself", **RIVALS}.items():
        if name in theirs:
            rows, cpu = theirs[name]["steady_rows_per_s"], theirs[name]["steady_cpu_us_per_row"]
            lines.append([title, spread(rows, "{:.2f}"), spread(cpu, "{:.2f}")])
    return [
        "With the plain reader (no C compiler at installation), narrow JSON, "
        f"Lockstep is{commit_mark(kept)}:",
        "",
        *table(("against", "× rows/s", "× CPU per row"), lines),
    ]


def _cold(read: Read) -> list[str]:
    kept = read("bench-narrow-cold")
    if kept is None:
        return [f"Cold, from the job's start to all committed: {NOT_YET}."]
    found = kept["figures"]
    rows = []
    for name, title in {OURS: "Lockstep", **COLD}.items():
        metrics = found["rivals"].get(name)
        if metrics is not None:
            cells = [
                spread(metrics["window_rows_per_s"], "{:,.0f}"),
                spread(metrics["window_s"], "{:.1f}"),
                spread(metrics["window_cpu_us_per_row"], "{:.2f}"),
                ratio(kept, name, "window_rows_per_s"),
            ]
            rows.append([title, *cells])
    return [
        f"Cold, {found['records']:,} narrow records from the job's start to all committed:",
        "",
        *table(("", "rows/s", "seconds", "µs CPU/row", "Lockstep is ×"), rows),
        *origin("narrow-cold", kept),
    ]


def _intervals(read: Read) -> list[str]:
    kept = read("bench-narrow-intervals")
    if kept is None:
        return [f"Short and long intervals in the same run: {NOT_YET}."]
    rows = []
    for name, metrics in kept["figures"]["rivals"].items():
        runs = [run for run in kept["figures"]["runs"] if run["rival"] == name]
        commits = [run["commits"] for run in runs if "commits" in run] or [0]
        cells = [
            name.partition("@")[2] or f"{kept['figures']['interval_s']:g}s",
            spread(metrics["steady_rows_per_s"], "{:,.0f}"),
            spread(metrics["steady_cpu_us_per_row"], "{:.2f}"),
            f"{min(commits)} to {max(commits)}",
        ]
        rows.append(cells)
    return [
        "The same load with other intervals between commits:",
        "",
        *table(("interval", "rows/s, sustained", "µs CPU/row", "commits"), rows),
        *origin("narrow-intervals", kept),
    ]


def _workers(read: Read) -> list[str]:
    kept = read("bench-narrow-workers")
    if kept is None:
        return [f"With 1, 2 and 4 workers, and on a standalone cluster: {NOT_YET}."]
    rows = []
    for name, metrics in kept["figures"]["rivals"].items():
        cells = [
            kept["figures"]["titles"][name],
            spread(metrics["steady_rows_per_s"], "{:,.0f}"),
            spread(metrics["steady_cpu_us_per_row"], "{:.2f}"),
            peak(kept, name),
        ]
        rows.append(cells)
    return [
        "The same load with other numbers of workers, and where they run:",
        "",
        *table(("", "rows/s, sustained", "µs CPU/row", "a worker's peak memory"), rows),
        *origin("narrow-workers", kept),
    ]


def _upserts(read: Read) -> list[str]:
    kept = read("bench-upserts")
    if kept is None:
        return [f"Upserts: {NOT_YET}."]
    found = kept["figures"]
    rows = []
    for name, metrics in found["rivals"].items():
        _, _, batch = name.partition("@")
        title = f"{RIVALS['streaming']}, {int(batch):,} a batch" if batch else "Lockstep"
        cells = [
            spread(metrics["window_rows_per_s"], "{:,.0f}"),
            spread(metrics["window_cpu_us_per_row"], "{:.2f}"),
            ratio(kept, name, "window_rows_per_s"),
            spread(metrics["steady_rows_per_s"], "{:,.0f}"),
            ratio(kept, name, "steady_rows_per_s"),
        ]
        rows.append([title, *cells])
    return [
        f"Upserts, {found['records']:,} changes of 1,000,000 rows, merge-on-read with a bucket index, nobody "
        "compacts; from the job's start to all committed, and sustained where there are commits enough:",
        "",
        *table(("", "rows/s", "µs CPU/row", "Lockstep is ×", "sustained", "Lockstep is ×"), rows),
        *origin("upserts", kept),
    ]


def _beside_compactions(read: Read) -> list[str]:
    kept = read("bench-upserts-compacting")
    if kept is None:
        return [f"Upserts against appends, and while compactions run: {NOT_YET}."]
    found = kept["figures"]
    rows = []
    for name, metrics in found["rivals"].items():
        runs = [run for run in found["runs"] if run["rival"] == name and "failed" not in run]
        theirs = found["ratios"].get(name, {}).get(OURS)
        cells = [
            spread(metrics["steady_rows_per_s"], "{:,.0f}"),
            spread(metrics["steady_cpu_us_per_row"], "{:.2f}"),
            spread(theirs["steady_rows_per_s"], "{:.2f}") if theirs else "–",
            str(sum(run["compactions"] or 0 for run in runs)),
            str(sum(run["aborted"] or 0 for run in runs)),
        ]
        rows.append([found["titles"][name], *cells])
    titles = ("", "rows/s", "µs CPU/row", "× Lockstep's upserts", "compactions", "transactions aborted")
    return [
        "Upserts, the same records as new rows, and upserts while compactions run, sustained:",
        "",
        *table(titles, rows),
        *origin("upserts-compacting", kept),
    ]


def _queries(read: Read) -> list[str]:
    kept = read("bench-queries")
    if kept is None:
        return [f"Queries of an upsert table: {NOT_YET}."]
    found = kept["figures"]
    taken = {name: spread(one["seconds"], "{:.3f}") for name, one in found["tables"].items()}
    return [
        f"A query that reads all rows of a compacted table takes {taken[OURS]} s, of the same table written "
        f"by Spark {taken['streaming']} s: {spread(found['ratio'], '{:.2f}')} times as long.",
        *origin("queries", kept),
    ]


def _freshness(read: Read) -> list[str]:
    kept = read("bench-freshness")
    if kept is None:
        return [f"From produced to visible: {NOT_YET}."]
    found = kept["figures"]
    rows = []
    titles = {OURS: "Lockstep", **RIVALS}
    for name, metrics in found["rivals"].items():
        forms = {"p50_ms": "{:,.0f}", "p99_ms": "{:,.0f}", "cpu_us_per_row": "{:.2f}"}
        cells = [spread(metrics[metric], form) for metric, form in forms.items()]
        rows.append([titles.get(name, name), *cells])
    return [
        f"From produced to visible, {found['per_second']:,} records a second, "
        f"a commit each {found['interval_s']:g} s:",
        "",
        *table(("", "p50, ms", "p99, ms", "µs CPU/row"), rows),
        *origin("freshness", kept),
    ]


def _commits(read: Read) -> list[str]:
    measured = {name: kept for name in ("commits", "commits-files") if (kept := read(f"bench-{name}"))}
    if not measured:
        return [f"How long a commit takes: {NOT_YET}."]
    rows = []
    for kept in measured.values():
        found = kept["figures"]
        for one in found["at"]:
            files = round(found["files_in_table"] * one["commit_number"] / found["commits_in_table"])
            cells = (files, one["commit_number"], one["commit_p50_ms"], one["commit_p99_ms"])
            rows.append([f"{cell:,}" for cell in cells])
    return [
        "A commit, from END sent to ACK sent, in a table with few files and in one with many:",
        "",
        *table(("files in the table, about", "commits", "p50, ms", "p99, ms"), rows),
        *(line for name, kept in measured.items() for line in origin(name, kept)),
    ]


def _stall(read: Read) -> list[str]:
    kept = read("bench-stall")
    if kept is None:
        return [f"A table that takes no commit for a minute, under full load: {NOT_YET}."]
    found = kept["figures"]
    replaced = found["workers_started"] - found["workers"]
    return [
        f"A table that takes no commit for {found['stalled_s']:g} s, under full load, at "
        f"{found['memory_per_worker_bytes'] / 1e6:,.0f} MB a worker: consumption pauses, a worker's peak is "
        f"{found['worker_peak_bytes'] / 1e6:,.0f} MB, {replaced} workers are replaced, and the next commit "
        f"comes {found['next_commit_s']:g} s after the table takes commits again.",
        *origin("stall", kept),
    ]


REJECTS: Mapping[str, str] = {
    "text": "four bytes that are no JSON",
    "broken": "JSON that breaks off",
    "mistyped": "JSON of another type than a column's",
}


def _rejects(read: Read) -> list[str]:
    """A flood of records that are no rows, by what is wrong with them."""
    measured = {kind: kept for kind in REJECTS if (kept := read(f"bench-rejects-{kind}"))}
    if not measured:
        return [f"A flood of records that are no rows: {NOT_YET}."]
    rows = []
    for kind, kept in measured.items():
        found = kept["figures"]
        most = f"{found['worker_peak_bytes'] / 1e6:,.0f} MB"
        rows.append([REJECTS[kind], f"{found['rejects_per_s']:,}", f"{found['cpu_us_per_reject']:.2f}", most])
    found = next(iter(measured.values()))["figures"]
    return [
        f"A flood of {found['records']:,} records that are no rows, all set aside by one worker of "
        f"{found['memory_per_worker_bytes'] / 1e6:,.0f} MB:",
        "",
        *table(("what is wrong", "rejects a second", "µs CPU/reject", "its peak memory"), rows),
        *(line for kind, kept in measured.items() for line in origin(f"rejects-{kind}", kept)),
    ]


def _windows(read: Read) -> list[str]:
    """What is inside each rival's window, as the runs themselves say it."""
    said: dict[str, str] = {}
    for name in ("narrow", "narrow-cold"):
        kept = read(f"bench-{name}")
        if kept is not None:
            about = kept["figures"]
            said |= {about["titles"][label]: window for label, window in about["windows"].items()}
    if not said:
        return []
    return [
        "What is inside the window of a whole run:",
        "",
        *(f"* {who}: {what}." for who, what in said.items()),
    ]


def main() -> None:
    for path, made in ((DOCUMENT, updated), (FIRST_SCREEN, first_screen)):
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
