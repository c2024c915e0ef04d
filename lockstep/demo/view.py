"""How the demo looks: a live view on a terminal, a line for everything that happens otherwise."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from control_topic.clocks import wall_ms
from control_topic.messages import SourcePartition
from lockstep.output import Output, readable_count, readable_duration, readable_size, table
from lockstep.watch.told import Phase, Transaction
from lockstep.watch.topic_fold import Fold

REFRESHES_PER_SECOND = 5
NOTES_KEPT = 50
BAR_WIDTH = 30
ID_SHOWN = 8

_PHASES: Mapping[Phase, tuple[str, str]] = {
    Phase.WRITING: ("writing", "blue"),
    Phase.ENDING: ("ending", "cyan"),
    Phase.COMMITTED: ("committed", "green"),
    Phase.ABORTED: ("aborted", "bold red"),
}


@dataclass(slots=True, kw_only=True)
class Scene:
    """What there is to show."""

    title: str
    known: Fold
    began_ms: int
    wanted: Mapping[SourcePartition, int]
    """Events that a source partition shall have in the end."""

    sent: Mapping[SourcePartition, int] = field(default_factory=dict)
    """Events that it has so far."""

    workers: Sequence[Mapping[str, Any]] = ()
    """As the driver's live status lists them."""

    doing: str = ""
    page: str = ""
    """Where the run's page is, once it is known."""


class View(Protocol):
    """Where the demo shows what it does."""

    def say(self, sentence: str, *, style: str = "") -> None:
        """Something happened."""

    def show(self, scene: Scene) -> None:
        """This is how things stand; called some times a second."""

    def close(self) -> None:
        """Nothing more comes; what is on the screen stays."""


def clock(time_ms: int) -> str:
    """`12:34:56` of this machine."""
    return datetime.fromtimestamp(time_ms / 1_000).strftime("%H:%M:%S")


def make_view(output: Output) -> View:
    """Live where somebody watches a terminal, lines elsewhere; silent where a program reads."""
    if output.console.is_terminal and not output.is_json:
        return LiveView(output.console)
    return LineView(output)


# --- lines ------------------------------------------------------------------------------------


class LineView:
    """A line for every commit and for everything said."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._told: set[str] = set()

    def say(self, sentence: str, *, style: str = "") -> None:
        self._output.note(f"{clock(wall_ms())}  {sentence}")

    def show(self, scene: Scene) -> None:
        total = sum(scene.wanted.values())
        for transaction in scene.known.commits:
            if transaction.id not in self._told:
                self._told.add(transaction.id)
                committed = readable_count(min(scene.known.committed_total, total))
                self._output.note(f"{commit_line(transaction)}; {committed} of {readable_count(total)}")

    def close(self) -> None:
        return


def commit_line(transaction: Transaction) -> str:
    """One commit in a line."""
    took = readable_duration(transaction.ended_ms - transaction.started_ms)
    return (
        f"{clock(transaction.ended_ms)}  committed {transaction.id[:ID_SHOWN]}, epoch {transaction.epoch}: "
        f"{readable_count(transaction.records)} records in {transaction.files} files "
        f"({readable_size(transaction.size_bytes)}), {took}"
    )


# --- a terminal -------------------------------------------------------------------------------


class LiveView:
    """Redraws the whole scene; what was said stays below it, newest last."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._notes: deque[Text] = deque(maxlen=NOTES_KEPT)
        self._scene: Scene | None = None
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(
            console=console,
            get_renderable=self._render,
            refresh_per_second=REFRESHES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def say(self, sentence: str, *, style: str = "") -> None:
        self._notes.append(note_line(sentence, style))

    def show(self, scene: Scene) -> None:
        self._scene = scene

    def close(self) -> None:
        if self._scene is not None:
            self._scene.doing = ""
        self._live.refresh()
        self._live.stop()

    def _render(self) -> RenderableType:
        if self._scene is None:
            return Group(*self._notes)
        doing: RenderableType | None = None
        if self._scene.doing:
            self._spinner.update(text=Text(self._scene.doing, style="cyan"))
            doing = self._spinner
        return screen(self._scene, self._notes, height=self._console.height, doing=doing)


def note_line(sentence: str, style: str = "") -> Text:
    """Something that happened, and when: now."""
    return Text.assemble((f"{clock(wall_ms())}  ", "dim"), (sentence, style))


def screen(
    scene: Scene, notes: Sequence[Text], *, height: int, doing: RenderableType | None = None
) -> RenderableType:
    """The whole scene and the newest notes, in so many lines of a terminal."""
    rows_left = max(8, height - 11 - len(scene.wanted) - len(scene.workers))
    transactions = max(4, rows_left * 3 // 5)
    return Group(
        _heading(scene, doing),
        Text(),
        progress_table(scene),
        Text(),
        workers_table(scene),
        Text(),
        transactions_table(scene.known.transactions[-transactions:]),
        Text(),
        *list(notes)[-max(3, rows_left - transactions) :],
    )


def _heading(scene: Scene, doing: RenderableType | None) -> RenderableType:
    elapsed = readable_duration(wall_ms() - scene.began_ms)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(Text(scene.title, style="bold"), Text(elapsed, style="dim"), Text(scene.page, style="cyan"))
    if doing is None:
        return grid
    grid.columns[0].no_wrap = True
    return Group(grid, doing)


def progress_table(scene: Scene) -> Table:
    """How much of each source partition is committed."""
    grid = table(
        ("source partition", "", "committed", "produced", "lag"), (), right=("committed", "produced", "lag")
    )
    committed = scene.known.committed
    for partition in sorted(scene.wanted):
        wanted, sent = scene.wanted[partition], scene.sent.get(partition, 0)
        done = committed.get(partition, 0)
        bar = ProgressBar(total=max(wanted, 1), completed=done, width=BAR_WIDTH, complete_style="green")
        figures = (readable_count(n) for n in (done, sent, max(0, sent - done)))
        grid.add_row(str(partition), bar, *figures)
    return grid


def workers_table(scene: Scene) -> Table:
    """Who is there, as the driver's live status says."""
    grid = table(("worker", "pid", "state", "source partitions", ""), (), right=("pid",))
    for worker in scene.workers:
        dead = worker["state"] == "dead"
        role = Text(f"coordinator, epoch {scene.known.epoch}", style="magenta")
        grid.add_row(
            f"worker-{worker['slot']}",
            str(worker["pid"]),
            Text(worker["state"], style="bold red" if dead else ""),
            "" if dead else ", ".join(worker["partitions"]),
            role if worker["coordinator"] and not dead else Text(),
        )
    return grid


def transactions_table(transactions: Sequence[Transaction]) -> Table:
    """The newest transactions, the open one last."""
    right = ("epoch", "records", "files", "size", "took")
    grid = table(("began", "transaction", "epoch", "records", "files", "size", "took", ""), (), right=right)
    for transaction in transactions:
        name, style = _PHASES[transaction.phase]
        ended = transaction.ended_ms
        reported = bool(transaction.answered)
        grid.add_row(
            clock(transaction.started_ms),
            transaction.id[:ID_SHOWN],
            str(transaction.epoch),
            readable_count(transaction.records) if reported else "",
            str(transaction.files) if reported else "",
            readable_size(transaction.size_bytes) if reported else "",
            readable_duration(ended - transaction.started_ms) if ended else "",
            Text(name, style=style),
        )
    return grid
