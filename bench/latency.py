"""`python -m bench.latency`: what the proxy before a store that is far takes besides the latency.

Two ways through it, without latency and with, against the S3 server itself, in turns: objects of 100 MB, and
requests of a few bytes. Requests are put together by the client that workers have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bench.figures import percentile, spread
from bench.lakes import BESIDE, BUCKET, LATENCY_MS, SERVER, SlowProxy
from bench.place import prepare, sentences, typed, wide_console, working_folder
from lockstep.stores.local import S3Server
from table.store.location import store_at
from table.store.objects.settings import ObjectSettings
from table.store.port import Store
from tests import evidence

DIRECT, AT_ONCE, FAR = "the server itself", "through the proxy, at once", "through the proxy"
LARGE_BYTES = 100_000_000
SMALL = b"small"
LARGE_NAME, SMALL_NAME = "large", "small"


def run(
    folder: Path, *, latency_ms: float, rounds: int, requests: int, command: str, console: Console
) -> Path:
    """All ways in turns, `rounds` times; where the figures are. Raises `Failed`."""
    found: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        server = stack.enter_context(S3Server(folder / SERVER))
        server.make_bucket(BUCKET)
        ways: dict[str, Store] = {DIRECT: _store(server.settings, 0)}
        for number, (name, delay_ms) in enumerate(((AT_ONCE, 0.0), (FAR, latency_ms)), 1):
            proxy = SlowProxy(folder / f"{BESIDE}-{number}", to_port=server.port, latency_ms=delay_ms)
            stack.enter_context(proxy)
            ways[name] = _store(replace(server.settings, endpoint=proxy.endpoint), number)
        for store in ways.values():  # connections are made, and objects are there
            store.put(SMALL_NAME, SMALL)
        for _ in range(rounds):
            for name, store in ways.items():
                for what, taken in _round(store, requests):
                    found.setdefault(name, {}).setdefault(what, []).extend(taken)
    of_ways = {name: of_way(taken_s) for name, taken_s in found.items()}
    for name, one in of_ways.items():
        console.print(f"{name}: {one}", highlight=False)
    figures = {"latency_ms": latency_ms, "rounds": rounds, "object_bytes": LARGE_BYTES, "ways": of_ways}
    return evidence.write("bench-latency", command=command, passed=True, figures=figures)


def _store(settings: ObjectSettings, number: int) -> Store:
    return store_at(f"s3a://{BUCKET}/latency-{number}", settings=settings)


def _round(store: Store, requests: int) -> Iterator[tuple[str, list[float]]]:
    """Seconds of each call, by what it is."""
    data = bytes(LARGE_BYTES)
    calls: Mapping[str, tuple[Callable[[], object], int]] = {
        "put_large": (lambda: store.put(LARGE_NAME, data), 1),
        "read_large": (lambda: store.read(LARGE_NAME, bytes_max=LARGE_BYTES), 1),
        "put_small": (lambda: store.put(SMALL_NAME, SMALL), requests),
        "read_small": (lambda: store.read(SMALL_NAME, bytes_max=len(SMALL)), requests),
    }
    for what, (call, times) in calls.items():
        yield what, [_taken_s(call) for _ in range(times)]


def _taken_s(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def of_way(taken_s: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Figures of one way: MB a second of large objects, milliseconds of small requests."""
    figures: dict[str, Any] = {}
    for what, times in taken_s.items():
        if what.endswith("large"):
            figures[f"{what}_mb_per_s"] = spread(LARGE_BYTES / 1e6 / one for one in times)
        else:
            for percent in (50, 99):
                figures[f"{what}_p{percent}_ms"] = 1_000 * (percentile(times, percent) or 0.0)
    return figures


@click.command()
@click.option(
    "--latency-ms", type=click.FloatRange(min=0, min_open=True), default=LATENCY_MS, show_default=True
)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--requests", type=click.IntRange(min=1), default=100, show_default=True, help="In each round.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(latency_ms: float, rounds: int, requests: int, folder: Path | None) -> None:
    """What the proxy costs by itself; figures as bench-latency.json."""
    prepare()
    console = wide_console()
    with sentences(), working_folder(folder) as place:
        path = run(
            place,
            latency_ms=latency_ms,
            rounds=rounds,
            requests=requests,
            command=typed("bench.latency"),
            console=console,
        )
        console.print(f"The figures are in {path}.", highlight=False)


if __name__ == "__main__":
    main()
