"""What happened, as one document for programs and one page for people."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lockstep.demo.kills import Kill
from lockstep.output import readable_count, readable_duration, readable_size
from lockstep.watch.told import Transaction

REASONS_SHOWN_MAX = 6


class Finding(Protocol):
    """What was found in the table after the job had left."""

    @property
    def exact(self) -> bool:
        """Whether the table holds what it must, and nothing else."""

    def heading(self) -> str:
        """That in a sentence."""

    def figures(self) -> Iterable[tuple[str, str]]:
        """Names and figures of the table."""

    def details(self) -> RenderableType:
        """Who was asked, and what they said."""

    def commands(self, folder: str) -> Sequence[str]:
        """Command lines to try on what is kept in `folder`, beside those of every demo."""

    def to_json(self) -> dict[str, Any]:
        """All of it for programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How it went until the job left."""

    started_as: str
    """The words of the command line."""

    records: int
    produced_bytes: int
    running_ms: int
    """From the first record produced at the even pace to the last one committed."""

    total_ms: int
    commits: Sequence[Transaction]
    aborts: Sequence[Transaction]
    epoch: int
    kills: Sequence[Kill]
    kept: Path | None
    """The folder that is still there, None where it is gone."""

    port: int
    """The broker's."""

    lake_port: int
    """That of the table's store, 0 where it is a folder."""

    lake_command: str = ""
    """What starts that store again."""

    page: str = ""
    """Where the page of the run was, empty where it had none."""

    encoded: str = "JSON"
    """What values are in, for people."""

    def to_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "produced_bytes": self.produced_bytes,
            "running_ms": self.running_ms,
            "total_ms": self.total_ms,
            "commits": len(self.commits),
            "aborts": [{"transaction": t.id, "epoch": t.epoch, "reason": t.reason} for t in self.aborts],
            "epoch": self.epoch,
            "kills": [asdict(kill) | {"outage_ms": kill.outage_ms} for kill in self.kills],
            "folder": str(self.kept) if self.kept else None,
            "page": self.page or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReport:
    """How it went, and what came of it."""

    ran: Ran
    finding: Finding

    @property
    def exact(self) -> bool:
        return self.finding.exact

    def to_json(self) -> dict[str, Any]:
        return {"exact": self.exact, **self.ran.to_json(), **self.finding.to_json()}

    def to_text(self) -> RenderableType:
        heading = Text(self.finding.heading(), style="bold green" if self.exact else "bold red")
        figures, details = _figures(self.ran, self.finding.figures()), self.finding.details()
        return Group(Text(), heading, Text(), figures, Text(), details, Text(), *_next(self))


def verdict_text(good: bool, why: str = "", *, word: str = "exact") -> Text:
    """What one reader's figures come to."""
    return Text(word, style="green") if good else Text(f"NOT {word} {why}".strip(), style="bold red")


def _figures(ran: Ran, more: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 3))
    seconds = max(ran.running_ms, 1) / 1_000
    grid.add_row(
        "records",
        f"{readable_count(ran.records)} ({readable_size(ran.produced_bytes)} of {ran.encoded}) in "
        f"{readable_duration(ran.running_ms)}, at the demo's own pace "
        f"({readable_count(round(ran.records / seconds))} a second)",
    )
    took = sorted(t.ended_ms - t.started_ms for t in ran.commits)
    middle = f", half of them within {readable_duration(took[len(took) // 2])} of their start" if took else ""
    grid.add_row("transactions", f"{len(ran.commits)} committed{middle}; {len(ran.aborts)} aborted")
    for reason in _reasons(ran.aborts):
        grid.add_row("", reason)
    for kill in ran.kills:
        grid.add_row("SIGKILL", _kill(kill))
    grid.add_row("coordinators", f"{ran.epoch}, one after the other: the epoch is the number of its term")
    for name, figure in more:
        grid.add_row(name, figure)
    grid.add_row("the whole demo", readable_duration(ran.total_ms))
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


def _next(report: DemoReport) -> Iterator[Text]:
    lockstep, ran = _program(), report.ran
    if ran.page:
        yield Text(f"While the job ran its page was {ran.page}: each transaction, live, in a browser.")
    if ran.kept is None:
        yield Text("Its folder is removed. To keep broker, table and configuration, and look at them:")
        yield Text(f"  {lockstep} {ran.started_as} --keep", style="cyan")
        return
    folder = from_here(ran.kept)
    config = f"-c {folder}/pipeline.toml"
    servers = "servers of the first two lines run" if ran.lake_port else "broker of the first line runs"
    yield Text(f"What to try next, in another terminal while the {servers}:")
    for command in (
        f"{lockstep} broker --port {ran.port} --data {folder}/kafka",
        *(
            [f"{lockstep} {ran.lake_command} --port {ran.lake_port} --data {folder}/{ran.lake_command}"]
            if ran.lake_port
            else ()
        ),
        f"{lockstep} ui {config}",
        f"{lockstep} events {config} --from-beginning",
        f"{lockstep} status {config}",
        f"{lockstep} offsets {config}",
        f"{lockstep} verify {config}",
        f"{lockstep} run {config} --until latest",
        *report.finding.commands(folder),
    ):
        yield Text(f"  {command}", style="cyan", no_wrap=True, overflow="ignore")


def _program() -> str:
    """How the reader starts `lockstep` from where they are: by its name, or by its path in a checkout."""
    beside = Path(sys.executable).with_name("lockstep")
    if shutil.which("lockstep") or not beside.exists():
        return "lockstep"
    return from_here(beside)


def from_here(path: Path) -> str:
    """The path as a word of a command line, short where it lies below the current folder."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
