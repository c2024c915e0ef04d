"""When transactions began and ended: what the control topic says, and what the instants of rows say."""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Iterator
from typing import Any

from hudi import HudiReadOptions, HudiTableBuilder

from tests.harness import Pipeline


def told(pipeline: Pipeline, kind: str) -> list[dict[str, Any]]:
    """All messages of this kind, as `lockstep events` has them."""
    done = pipeline.command("events", "--from-beginning", "--type", kind, "--output", "json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def first_of_each(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By transaction."""
    found: dict[str, dict[str, Any]] = {}
    for one in events:
        found.setdefault(one["transaction"], one)
    return found


def rows(pipeline: Pipeline) -> Iterator[tuple[str, int]]:
    """Of the table: the instant that wrote a row, and when the record came, in microseconds."""
    table = HudiTableBuilder.from_base_uri(str(pipeline.table)).build()
    columns = ["_hoodie_commit_time", "_kafka_timestamp"]
    for batch in table.read(HudiReadOptions(projection=columns)):
        instants, came = batch.column(0).to_pylist(), batch.column(1).cast("int64").to_pylist()
        yield from zip(instants, came, strict=True)


def instant_ms(instant: str) -> int:
    """Of a timeline in UTC."""
    moment = time.strptime(instant[:14] + " UTC", "%Y%m%d%H%M%S %Z")
    return calendar.timegm(moment) * 1_000 + int(instant[14:17])
