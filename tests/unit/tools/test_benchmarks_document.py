"""docs/benchmarks.md, README.md and the picture show what recorded runs found."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import picture
from bench.figures import Measured, by_rival, ratios
from bench.rivals.registry import parse
from bench.workloads import WORKLOADS
from tools.staleness import without_marks

ROOT = Path(__file__).resolve().parents[3]
LABELS = ("lockstep", "streaming", "iceberg-cold", "iceberg-warm", "plain", "lockstep-plain")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks", ROOT / "tools" / "benchmarks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _evidence(workload: str, labels: tuple[str, ...] = LABELS) -> dict[str, Any]:
    """Two rounds, as the bench keeps them; the n-th rival takes n times as long as the first."""
    runs = []
    for round_number in range(2):
        for place, label in enumerate(labels, 1):
            found = Measured(
                rival=label,
                rows=1_000_000,
                window_s=10.0 * place,
                first_commit_s=2.0,
                commits=6,
                steady_s=25.0,
                steady_rows_per_s=600_000 / place + 1_000 * round_number,
                cpu_s=3.0 * place,
                steady_cpu_us_per_row=None if label == "plain" else 2.0 * place,
                peak_bytes=10**9,
                peak_worker_bytes=400 * 10**6,
            )
            runs.append(found.to_json() | {"round": round_number})
    figures = {
        "workload": WORKLOADS[workload].describe(),
        "records": 1_000_000,
        "interval_s": 5.0,
        "windows": {label: parse(label).rival.window for label in labels},
        "titles": {label: parse(label).title for label in labels},
        "rivals": by_rival(runs),
        "ratios": {one: ratios(runs, one) for one in labels if one.startswith("lockstep")},
        "runs": runs,
    }
    return {
        "command": "python -m bench",
        "passed": True,
        "commit": "abc",
        "at": "2026",
        "cpus": 2,
        "figures": figures,
    }


def _on_s3_evidence(workload: str, *labels: str) -> dict[str, Any]:
    """The servers took 2 s of processors in each load that was not in a folder. The last rival failed."""
    kept = _evidence(workload, ("lockstep", *labels))
    figures, last = kept["figures"], labels[-1]
    figures["runs"] = [
        run if run["rival"] != last else {"rival": last, "round": run["round"], "failed": "out of memory"}
        for run in figures["runs"]
    ]
    figures["rivals"] = by_rival(figures["runs"])
    figures["ratios"] = {one: ratios(figures["runs"], one) for one in figures["ratios"]}
    for run in kept["figures"]["runs"]:
        run["store_cpu_s"] = None if run["rival"] in ("lockstep", last) else 2.0
    kept["figures"]["latency_ms"] = 20.0
    return kept


def _commits_evidence(workload: str, *, files: int) -> dict[str, Any]:
    at = [{"commit_number": 1_000, "commit_p50_ms": 210, "commit_p99_ms": 400}]
    return _evidence(workload) | {"figures": {"commits_in_table": 1_020, "files_in_table": files, "at": at}}


KEPT: Mapping[str, Any] = {
    "bench-narrow": _evidence("narrow"),
    "bench-narrow-cold": _evidence("narrow", ("lockstep", "streaming", "iceberg-cold")),
    "bench-narrow-intervals": _evidence("narrow", ("lockstep@2s", "lockstep@60s")),
    "bench-narrow-workers": _evidence("narrow", ("lockstep-workers@1", "lockstep-cluster")),
    "bench-narrow-page": _evidence("narrow", ("lockstep-page", "lockstep-no-page")),
    "bench-wide-native": _evidence("wide", ("lockstep", "lockstep-no-native")),
    "bench-decoding": _evidence("narrow")
    | {
        "figures": {
            "runs": [
                {
                    "title": "Avro, narrow",
                    "value_bytes": 80.4,
                    "cpu_us_per_record": {"native": 0.1, "plain": 5.0, "library": 2.5, "json": 0.2},
                    "times": {"native": 1.0, "plain": 50.0, "library": 25.0, "json": 2.0},
                }
            ]
        }
    },
    "bench-upserts": _evidence("narrow", ("lockstep", "streaming@1000000")),
    "bench-upserts-compacting": _evidence("narrow", ("lockstep", "lockstep-compacting")),
    "bench-queries": _evidence("narrow")
    | {
        "figures": {
            "tables": {
                "lockstep": {"seconds": {"min": 1.0, "median": 1.1, "max": 1.2}},
                "streaming": {"seconds": {"min": 1.0, "median": 1.0, "max": 1.0}},
            },
            "ratio": {"min": 1.0, "median": 1.1, "max": 1.2},
        }
    },
    "bench-sizes": _evidence("narrow")
    | {
        "figures": {
            "minutes": 10.0,
            "per_second": 60_000,
            "interval_s": 10.0,
            "target_bytes": 32_000_000,
            "commits": 60,
            "clusterings": {"count": 24, "bytes": 1_200_000, "seconds": 60.0},
            "settled": {"files": 20, "small": 4, "worst": 1, "size_bytes": 1_000_000},
            "settled_s": 300.4,
            "perfect_files": 19,
            "ratio": {"min": 1.0, "median": 1.1, "max": 1.2},
        }
    },
    "bench-narrow-sizes": _evidence("narrow", ("lockstep", "lockstep-clustering")),
    "bench-stall": _evidence("narrow")
    | {
        "figures": {
            "stalled_s": 60.0,
            "memory_per_worker_bytes": 512_000_000,
            "worker_peak_bytes": 640_000_000,
            "workers": 2,
            "workers_started": 2,
            "next_commit_s": 0.9,
        }
    },
    "bench-rejects-text": _evidence("narrow")
    | {
        "figures": {
            "records": 2_500_000,
            "rejects_per_s": 240_000,
            "cpu_us_per_reject": 4.5,
            "memory_per_worker_bytes": 512_000_000,
            "worker_peak_bytes": 330_000_000,
        }
    },
    "bench-freshness": _evidence("short")
    | {
        "figures": {
            "per_second": 50_000,
            "interval_s": 1.0,
            "rivals": {
                "lockstep": {
                    "p50_ms": {"min": 700, "median": 800.4, "max": 900},
                    "p99_ms": {"min": 1_500, "median": 1_500, "max": 1_500},
                    "cpu_us_per_row": {"min": 4.0, "median": 4.0, "max": 4.0},
                }
            },
        }
    },
    "bench-commits": _commits_evidence("short", files=8_000),
    "bench-commits-files": _commits_evidence("files", files=100_000),
    "bench-narrow-s3": _on_s3_evidence(
        "narrow", "lockstep-s3", "lockstep-s3-far", "streaming-s3", "iceberg-warm-s3"
    ),
    "bench-upserts-s3": _on_s3_evidence("narrow", "lockstep-s3", "streaming-s3@4000000", "streaming-s3-far"),
    "bench-commits-s3-far": _evidence("short")
    | {
        "figures": {
            "latency_ms": 20.0,
            "at": [
                {
                    "commit_number": 1_000,
                    "commit_p50_ms": 1_210,
                    "commit_p99_ms": 1_400,
                    "write_p50_ms": 90,
                }
            ],
        }
    },
    "bench-latency": _evidence("narrow")
    | {
        "figures": {
            "latency_ms": 20.0,
            "object_bytes": 100_000_000,
            "ways": {
                "through the proxy": {
                    "put_large_mb_per_s": {"min": 300.0, "median": 310.0, "max": 320.0},
                    "read_large_mb_per_s": {"min": 500.0, "median": 500.0, "max": 500.0},
                    "put_small_p50_ms": 21.2,
                    "put_small_p99_ms": 23.0,
                    "read_small_p50_ms": 20.9,
                    "read_small_p99_ms": 22.0,
                }
            },
        }
    },
    "scenarios-s3": {
        "command": "make faults STORE=s3",
        "figures": {
            "each": [
                {"name": "driver_killed_at_end_sent", "recovery_s": 11.5, "notes": {}},
                {"name": "driver_killed_at_ack_sent", "recovery_s": 12.0, "notes": {}},
                {
                    "name": "driver_killed_at_commit_begun",
                    "recovery_s": 40.0,
                    "notes": {"left_the_table_locked": "yes"},
                },
                {"name": "worker_killed_at_end_sent", "recovery_s": 3.0, "notes": {}},
                {"name": "driver_killed_and_never_seen", "recovery_s": None, "notes": {}},
            ]
        },
    },
}


def test_the_figures_of_the_document_are_the_recorded_ones(generator: ModuleType) -> None:
    document = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert without_marks(generator.updated(document)) == without_marks(document), "run `make docs`"


def test_the_four_figures_of_the_readme_are_the_recorded_ones(generator: ModuleType) -> None:
    document = (ROOT / "README.md").read_text(encoding="utf-8")
    assert without_marks(generator.first_screen(document)) == without_marks(document), "run `make docs`"
    assert len(generator.four_figures(generator.evidence.read).splitlines()) == 2 + 4


def test_a_figure_that_was_not_measured_is_not_shown(generator: ModuleType) -> None:
    assert len(generator.four_figures(lambda name: None).splitlines()) == 2


def test_what_was_not_measured_is_said(generator: ModuleType) -> None:
    shown = generator.figures(lambda name: None)
    assert f"{WORKLOADS['narrow'].title} | not measured yet" in shown
    parts = (
        "Cold",
        "intervals",
        "visible",
        "commit",
        "plain reader",
        "cluster",
        "for a minute",
        "no rows",
        "page",
        "native decoder",
        "Protobuf alone",
    )
    on_stores = [f"{what} on {on}" for what in ("table", "next commit") for on in ("an S3 server", "HDFS")]
    sizes = ("after a load with frequent commits", "while small files are put together")
    others = ("Upserts", "compactions run", "Queries", "commit takes on a store", "the proxy")
    for part in (*parts, *others, *sizes, *on_stores):
        assert re.search(rf"{part}.*: not measured yet\.", shown)


def test_what_was_measured_is_shown_with_its_spread_and_its_origin(generator: ModuleType) -> None:
    shown = generator.figures(KEPT.get)
    assert "| narrow JSON, 8 fields | 600,500 (2.00) | 300,500 (4.00) | 2.00" in shown
    assert "| 60s |" in shown and "| 6 to 6 |" in shown
    assert "| Lockstep | 800 (700 to 900) | 1,500 | 4.00 |" in shown
    assert "| 7,843 | 1,000 | 210 | 400 |" in shown
    assert "| 98,039 | 1,000 | 210 | 400 |" in shown
    assert "| Structured Streaming → Hudi | 0.33 (0.33 to 0.34) | 3.00 |" in shown
    assert "| Lockstep with workers, 1 | 600,500 (600,000 to 601,000) | 2.00 | 400 MB |" in shown
    assert "a worker's peak is 640 MB, 0 workers are replaced, and the next commit comes 0.9 s after" in shown
    streaming = "| Structured Streaming → Hudi, 1,000,000 a batch | 50,000 | 6.00 | 2.00 |"
    assert f"{streaming} 300,500 (300,000 to 301,000) | 2.00 |" in shown
    assert "| Lockstep while compactions run | 300,500 (300,000 to 301,000) | 4.00 | 0.50 | 0 | 0 |" in shown
    assert "takes 1.100 (1.000 to 1.200) s, of the same table written by Spark 1.000 s: 1.10 (1.00" in shown
    assert "| four bytes that are no JSON | 240,000 | 4.50 | 330 MB |" in shown
    assert "| Lockstep, its page open and scraped | 600,500 (600,000 to 601,000) | 2.00 | 2.00" in shown
    assert "| Lockstep without its page | 300,500 (300,000 to 301,000) | 4.00 | – |" in shown
    assert "300 s after the load there are 20 files, 1 of them small in the table partition that" in shown
    assert "1.20 times what the table holds was written again. A query of all rows takes 1.10 (1.00" in shown
    assert (
        "| Lockstep while small files are put together | 300,500 (300,000 to 301,000) | 4.00 | 0.50" in shown
    )
    native = "| wide JSON: Lockstep | 600,500 (600,000 to 601,000) | 2.00 | 2.00"
    assert native in shown and "| wide JSON: Lockstep with the plain decoder | 300,500" in shown
    assert "| Avro, narrow, 80 bytes | 0.10 (1 ×) | 5.00 (50 ×) | 2.50 (25 ×)" in shown
    assert shown.count("commit `abc`, 2 processors") == 21
    assert "* Lockstep: from the job's session being up" in shown


def test_tables_on_s3_are_compared_with_a_folder_s_and_with_rivals_at_the_same_place(
    generator: ModuleType,
) -> None:
    shown = generator.figures(KEPT.get)
    assert "Narrow JSON, the table on an S3 server; far: 20 ms more for each request; 1,000,000" in shown
    assert "| Lockstep | 600,500 (600,000 to 601,000) | – | – | 100,000 | – | – | – |" in shown
    far = "| Lockstep, on S3, far | 200,500 (200,000 to 201,000) | 0.33 | – | 33,333 | 0.33 | – | 2.00 |"
    assert far in shown
    theirs = "| Spark Structured Streaming → Hudi, on S3 | 150,500 (150,000 to 151,000) | – | 2.00 (1.99 to"
    assert theirs in shown
    assert "| Spark Structured Streaming → Hudi, on S3, 4000000 |" in shown
    assert "| Iceberg Kafka Connect, warm JVM, on S3 | failed | – | – | failed | – | – | – |" in shown
    assert "| S3, far, 20 ms a request | 1,000 | 1,210 | 1,400 | 90 |" in shown
    assert "at most 12.0 s in 2 scenarios" in shown
    assert "; 1 where its lease had to end, at most 40.0 s." in shown
    assert "| through the proxy | 310 (300 to 320) | 500 | 21.2 | 23.0 | 20.9 | 22.0 |" in shown


def test_a_rival_that_failed_is_said_to_have_failed(generator: ModuleType) -> None:
    found = _evidence("narrow")
    runs = [
        {"rival": "iceberg-warm", "round": run["round"], "failed": "out of memory"}
        if run["rival"] == "iceberg-warm"
        else run
        for run in found["figures"]["runs"]
    ]
    figures = found["figures"] | {
        "runs": runs,
        "rivals": by_rival(runs),
        "ratios": {"lockstep": ratios(runs, "lockstep")},
    }
    kept = {**KEPT, "bench-narrow": found | {"passed": False, "figures": figures}}
    shown = generator.figures(kept.get)
    assert "| failed | – |" in shown
    assert "**not all runs ended well**" in shown
    assert [bar.rival for bar in picture.panels(kept.get)[0].bars] == ["lockstep", "plain", "streaming"]


def test_a_readme_without_a_place_for_figures_is_refused(generator: ModuleType) -> None:
    with pytest.raises(ValueError, match="no place"):
        generator.updated("# nothing")


def test_the_picture_has_a_panel_by_workload_and_is_the_same_each_time(tmp_path: Path) -> None:
    shown = picture.panels(KEPT.get)
    assert [len(panel.bars) for panel in shown] == [4, 3]
    assert shown[0].title.endswith("sustained")
    for name in ("one.svg", "two.svg"):
        picture.draw(shown, tmp_path / name)
    text = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.svg").read_text(encoding="utf-8")
    assert "Structured Streaming" in text and "600,500" in text and "not measured" in text


def test_rivals_that_were_not_measured_have_no_bar() -> None:
    assert picture.panels({"bench-tiny": _evidence("tiny", ("lockstep",))}.get)[0].bars[0].rival == "lockstep"
    assert picture.panels(lambda name: None) == []
