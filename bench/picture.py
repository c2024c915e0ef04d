"""`python -m bench.picture`: the figures of the throughput runs as one SVG, bars by rival, a row by workload.

Ink is a grey that can be read on white and on black; the background is transparent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from bench.workloads import WORKLOADS
from tests import evidence

INK = "#7d8590"
COLOURS: Mapping[str, str] = {
    "lockstep": "#2f81f7",
    "plain": "#a084d6",
    "iceberg-warm": "#2da44e",
    "iceberg-cold": "#7fb98f",
    "streaming": "#d4782f",
}
"""By rival, in the order of the bars."""
NAMES: Mapping[str, str] = {
    "lockstep": "Lockstep",
    "plain": "plain writer (no protocol)",
    "iceberg-warm": "Iceberg Connect, warm",
    "iceberg-cold": "Iceberg Connect, cold",
    "streaming": "Structured Streaming",
}
BAR_INCHES = 0.27
PANEL_INCHES = 0.62
WIDTH_INCHES = 9.6
STEADY = ("lockstep", "plain", "iceberg-warm", "streaming")
COLD = ("lockstep", "iceberg-cold", "streaming")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One rival in one panel: medians, and the ends of what was measured."""

    rival: str
    rows_per_s: Mapping[str, float]
    cpu_us_per_row: Mapping[str, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    title: str
    bars: Sequence[Bar]


def panels(read: Callable[[str], Mapping[str, Any] | None]) -> list[Panel]:
    """What there is to show. `read`: the evidence of a name, None where there is none."""
    found: list[Panel] = []
    for name in WORKLOADS:
        for which, rivals in (("steady", STEADY), ("window", COLD)):
            kept = read(f"bench-{name}" if which == "steady" else f"bench-{name}-cold")
            if kept is None:
                continue
            figures = kept["figures"]
            what = "sustained"
            if which == "window":
                what = f"{figures['records']:,} records, from the job's start to all committed"
            title = f"{figures['workload']['title']}, {figures['workload']['value_bytes']:,} bytes: {what}"
            found.append(Panel(title=title, bars=_bars(figures, rivals, which)))
    return [panel for panel in found if panel.bars]


def _bars(figures: Mapping[str, Any], rivals: Sequence[str], which: str) -> list[Bar]:
    given = {name.partition("@")[0]: one for name, one in figures["rivals"].items()}
    measured = ((name, given.get(name)) for name in rivals)
    return [
        Bar(
            rival=name,
            rows_per_s=metrics[f"{which}_rows_per_s"],
            cpu_us_per_row=metrics[f"{which}_cpu_us_per_row"],
        )
        for name, metrics in measured
        if metrics is not None and metrics[f"{which}_rows_per_s"] is not None
    ]


def draw(shown: Sequence[Panel], path: Path) -> None:
    """Write the SVG; the same panels give the same file."""
    heights = [PANEL_INCHES + BAR_INCHES * len(panel.bars) for panel in shown]
    style = {
        "svg.hashsalt": "lockstep",
        "svg.fonttype": "none",  # text stays text: small, and searchable
        "font.family": "sans-serif",
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with plt.rc_context(style):
        figure, grid = plt.subplots(
            len(shown),
            2,
            figsize=(WIDTH_INCHES, sum(heights) + 0.3),
            gridspec_kw={"height_ratios": heights, "width_ratios": (3, 2)},
            squeeze=False,
            layout="constrained",
        )
        for row, (panel, (left, right)) in enumerate(zip(shown, grid, strict=True)):
            _barh(left, panel.bars, [bar.rows_per_s for bar in panel.bars], "{:,.0f}")
            _barh(right, panel.bars, [bar.cpu_us_per_row for bar in panel.bars], "{:.2f}")
            left.set_yticks(range(len(panel.bars)), [NAMES[bar.rival] for bar in panel.bars])
            right.set_yticks([])
            left.set_title(
                panel.title, loc="left", fontsize=9.5, fontweight="bold", pad=16 if row == 0 else 6
            )
        for axes, heading in zip(grid[0], ("rows/s", "µs CPU per row (less is better)"), strict=True):
            axes.annotate(heading, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def _barh(axes: Axes, bars: Sequence[Bar], spreads: Sequence[Mapping[str, float] | None], form: str) -> None:
    """Medians as bars, least and most as a line over them, the median in figures beside."""
    longest = max((spread["max"] for spread in spreads if spread is not None), default=1.0)
    for place, (bar, spread) in enumerate(zip(bars, spreads, strict=True)):
        if spread is None:
            axes.text(0, place, " not measured", va="center")
            continue
        median = spread["median"]
        axes.barh(place, median, height=0.68, color=COLOURS[bar.rival])
        axes.plot((spread["min"], spread["max"]), (place, place), color=INK, linewidth=1.2)
        axes.text(spread["max"] + longest * 0.015, place, form.format(median), va="center")
    axes.set_xlim(0, longest * 1.2)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xticks([])
    axes.tick_params(length=0)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)


def read_from(folder: Path) -> Callable[[str], Mapping[str, Any] | None]:
    """Evidence of that folder; a rival that failed has no figures in it, and so no bar."""

    def read(name: str) -> Mapping[str, Any] | None:
        path = folder / f"{name}.json"
        if not path.exists():
            return None
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    return read


@click.command()
@click.option("--evidence", "place", type=click.Path(path_type=Path), help="Default: where runs put it.")
@click.option("--output", type=click.Path(path_type=Path), help="Default: bench.svg beside the evidence.")
def main(place: Path | None, output: Path | None) -> None:
    """Draw the figures of the throughput runs."""
    place = place or evidence.folder()
    shown = panels(read_from(place))
    if not shown:
        raise click.ClickException(f"{place} holds no figures: run `make bench` first.")
    path = output or place / "bench.svg"
    draw(shown, path)
    click.echo(f"The picture is {path}.")


if __name__ == "__main__":
    main()
