"""What the native decoders are worth, for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tools.cells import NOT_YET, origin, spread, table
from tools.staleness import changed_mark

NATIVE, PLAIN = "lockstep", "lockstep-no-native"
RATE, CPU = "steady_rows_per_s", "steady_cpu_us_per_row"
ALONE: Mapping[str, str] = {
    "native": "natively",
    "plain": "plain",
    "library": "fastavro, Protobuf's parser",
    "json": "JSON",
}
"""Candidates of `bench.decoding`, JSON being the same rows, natively."""
WORKLOADS: Mapping[str, str] = {
    "narrow-native": "narrow JSON",
    "wide-native": "wide JSON",
    "upserts-native": "upserts",
}


def decoded(read: Callable[[str], Mapping[str, Any] | None]) -> list[str]:
    """With it and without, sustained, and how often the one's rate is the other's."""
    rows: list[list[str]] = []
    origins: list[str] = []
    for name, title in WORKLOADS.items():
        kept = read(f"bench-{name}")
        if kept is not None:
            rows += _rows(title, kept["figures"])
            origins += origin(name, kept)
    if not rows:
        return [f"Without the native decoder (no cargo at installation): {NOT_YET}."]
    return [
        "Without the native decoder (no cargo at installation), in turns, sustained:",
        "",
        *table(("", "rows/s", "µs CPU/row", "× rows/s", "× CPU per row"), rows),
        *origins,
    ]


def _rows(title: str, found: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for name, metrics in found["rivals"].items():
        quotient = found["ratios"].get(name, {}).get(PLAIN) if name == NATIVE else None
        rows.append(
            [
                f"{title}: {found['titles'][name]}",
                spread(metrics[RATE], "{:,.0f}"),
                spread(metrics[CPU], "{:.2f}"),
                spread(quotient and quotient[RATE], "{:.2f}"),
                spread(quotient and quotient[CPU], "{:.2f}"),
            ]
        )
    return rows


def alone(read: Callable[[str], Mapping[str, Any] | None]) -> list[str]:
    """What decoding Avro and Protobuf takes, without a broker and a table."""
    kept = read("bench-decoding")
    if kept is None:
        return [f"Decoding Avro and Protobuf alone: {NOT_YET}."]
    rows = []
    for run in kept["figures"]["runs"]:
        cells = [f"{run['cpu_us_per_record'][name]:.2f} ({run['times'][name]:g} ×)" for name in ALONE]
        rows.append([f"{run['title']}, {run['value_bytes']:.0f} bytes", *cells])
    return [
        "Decoding Avro and Protobuf alone, µs of CPU a record (× the native decoder's); JSON is the same "
        "rows, natively; libraries make objects of their own, and no columns:",
        "",
        *table(("", *ALONE.values()), rows),
        "",
        f"`{kept['command']}`, {kept['at']}, commit `{kept['commit']}`{changed_mark(kept)}, "
        f"{kept['cpus']} processors: [the figures](evidence/bench-decoding.json).",
    ]
