"""What happened, as one document for programs and one page for people."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lockstep.demo.kills import Kill
from lockstep.demo.proof import Counts
from lockstep.demo.watch import Transaction
from lockstep.output import readable_count, readable_duration, readable_size

REASONS_SHOWN_MAX = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Times in milliseconds, sizes in bytes. `kept`: the folder that is still there, None where it is gone.

    `running_ms`: from the first event produced to the last one committed.
    """

    records: int
    produced_bytes: int
    running_ms: int
    total_ms: int
    commits: Sequence[Transaction]
    aborts: Sequence[Transaction]
    epoch: int
    kills: Sequence[Kill]
    files: int
    counts: Sequence[Counts]
    verdict: dict[str, Any]
    kept: Path | None
    port: int

    @property
    def exact(self) -> bool:
        """Whether every reader found every record once."""
        return all(counts.proves(self.records) for counts in self.counts) and bool(self.verdict["exact"])

    def to_json(self) -> dict[str, Any]:
        return {
            "exact": self.exact,
            "records": self.records,
            "produced_bytes": self.produced_bytes,
            "running_ms": self.running_ms,
            "total_ms": self.total_ms,
            "commits": len(self.commits),
            "aborts": [{"transaction": t.id, "epoch": t.epoch, "reason": t.reason} for t in self.aborts],
            "epoch": self.epoch,
            "kills": [asdict(kill) | {"outage_ms": kill.outage_ms} for kill in self.kills],
            "files": self.files,
            "counts": [asdict(counts) for counts in self.counts],
            "verify": self.verdict,
            "folder": str(self.kept) if self.kept else None,
        }

    def to_text(self) -> RenderableType:
        return Group(
            Text(), _heading(self), Text(), _figures(self), Text(), _proof(self), Text(), *_next(self)
        )


def _heading(report: Report) -> Text:
    if report.exact:
        return Text(
            f"Exact: {readable_count(report.records)} records in, every one in the table once.",
            style="bold green",
        )
    return Text("NOT exact: the table and the topic differ.", style="bold red")


def _figures(report: Report) -> Table:
    grid = Table.grid(padding=(0, 3))
    seconds = max(report.running_ms, 1) / 1_000
    grid.add_row(
        "records",
        f"{readable_count(report.records)} ({readable_size(report.produced_bytes)} of JSON) in "
        f"{readable_duration(report.running_ms)}, at the pace of the demo's producer "
        f"({readable_count(round(report.records / seconds))} a second)",
    )
    took = sorted(t.ended_ms - t.started_ms for t in report.commits)
    middle = f", half of them within {readable_duration(took[len(took) // 2])} of their start" if took else ""
    grid.add_row("transactions", f"{len(report.commits)} committed{middle}; {len(report.aborts)} aborted")
    for reason in _reasons(report.aborts):
        grid.add_row("", reason)
    for kill in report.kills:
        grid.add_row("SIGKILL", _kill(kill))
    grid.add_row("coordinators", f"{report.epoch}, one after the other: the epoch is the number of its term")
    grid.add_row("files", readable_count(report.files))
    grid.add_row("the whole demo", readable_duration(report.total_ms))
    return grid


def _reasons(aborts: Sequence[Transaction]) -> Iterator[str]:
    for transaction in aborts[:REASONS_SHOWN_MAX]:
        yield f"aborted {transaction.id[:8]}: {transaction.reason}"
    if len(aborts) > REASONS_SHOWN_MAX:
        yield f"and {len(aborts) - REASONS_SHOWN_MAX} more"


def _kill(kill: Kill) -> str:
    if not kill.is_done:
        return f"{kill.victim}: not killed, everything was committed before its turn came"
    what = f"{kill.worker}{', which held the coordinator' if kill.coordinator else ''} (process {kill.pid})"
    if not kill.resumed_ms:
        return f"{what}: everything was committed by then"
    return f"{what}: the next commit {readable_duration(kill.outage_ms)} later"


def _proof(report: Report) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for name in ("asked", "rows", "distinct offsets", "distinct events", ""):
        grid.add_column(name, justify="right" if name not in ("asked", "") else "left", no_wrap=True)
    for counts in report.counts:
        grid.add_row(
            counts.reader,
            *(readable_count(n) for n in (counts.rows, counts.offsets, counts.events)),
            _verdict(counts.proves(report.records)),
        )
    verdict = report.verdict
    wrong = [
        f"{verdict[name]} {name}" for name in ("missing", "duplicated", "unexpected") if verdict.get(name)
    ]
    grid.add_row(
        "lockstep verify",
        readable_count(int(verdict.get("rows") or 0)),
        "",
        "",
        _verdict(bool(verdict["exact"]), ", ".join(wrong)),
    )
    return grid


def _verdict(exact: bool, why: str = "") -> Text:
    return Text("exact", style="green") if exact else Text(f"NOT exact {why}".strip(), style="bold red")


def _next(report: Report) -> Iterator[Text]:
    lockstep = _program()
    if report.kept is None:
        yield Text("Its folder is removed. To keep broker, table and configuration, and look at them:")
        yield Text(f"  {lockstep} demo --keep", style="cyan")
        return
    folder = _from_here(report.kept)
    config = f"-c {folder}/pipeline.toml"
    yield Text("What to try next, in another terminal while the broker of the first line runs:")
    for command in (
        f"{lockstep} broker --port {report.port} --data {folder}/kafka",
        f"{lockstep} events {config} --from-beginning",
        f"{lockstep} status {config}",
        f"{lockstep} offsets {config}",
        f"{lockstep} verify {config}",
        f"{lockstep} run {config} --until latest",
    ):
        yield Text(f"  {command}", style="cyan", no_wrap=True, overflow="ignore")


def _program() -> str:
    """How the reader starts `lockstep` from where they are: by its name, or by its path in a checkout."""
    beside = Path(sys.executable).with_name("lockstep")
    if shutil.which("lockstep") or not beside.exists():
        return "lockstep"
    return _from_here(beside)


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
