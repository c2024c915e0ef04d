"""An observer of a real run agrees with `lockstep status` and with the table, and sees what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as read_classic

from control_topic.causes import ABORT_CAUSES, END_REASONS
from control_topic.clocks import wall_ms
from lockstep.config import load
from lockstep.config.kafka import checked_kafka
from lockstep.watch import observer as module
from lockstep.watch.counters import PARTS
from lockstep.watch.observer import Observer
from lockstep.watch.run_seen import ask_driver
from table.kinds import HUDI, table_kind
from tests.data_files import data_files
from tests.harness import Pipeline, await_that

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

RECORDS = 4_000


@contextmanager
def observing(pipeline: Pipeline, ask_live: Callable[[], Any]) -> Iterator[Observer]:
    config = load(pipeline.config, environment={})
    observer = Observer(config, checked_kafka(config), ask_live=ask_live)
    observer.start()
    try:
        yield observer
    finally:
        observer.stop()


def await_page(observer: Observer, what: str, found: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        document = observer.page().document
        return document if found(document) else None

    return await_that(what, probe)


def scraped(observer: Observer) -> dict[str, float]:
    """Figures without labels beside the pipeline's."""
    return {
        sample.name: sample.value
        for family in read_classic(observer.metrics(openmetrics=False).decode())
        for sample in family.samples
        if sample.labels.keys() == {"pipeline"}
    }


def is_done(document: dict[str, Any]) -> bool:
    """Everything is committed, and each of the workers has its source partitions: none moves any more."""
    owners = {one["owner"] for one in document["source_partitions"]}
    at_work = {worker["name"] for worker in document["workers"] if worker["memory_bytes"]}
    done = document["state"] == "idle" and document["lag"]["records"] == 0
    return done and owners == at_work == {"worker-0", "worker-1"}


def test_the_page_of_a_run_is_what_the_status_and_the_table_say(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    for name in ("COUNT_FIRST_S", "COUNT_EVERY_S", "COUNT_AGAIN_S"):
        monkeypatch.setattr(module, name, 1.0)
    file = tmp_path / "lockstep.prom"
    pipeline.settings |= {"metrics.file": str(file), "metrics.file_period": "1s"}
    pipeline.produce(RECORDS)
    with observing(pipeline, lambda: ask_driver(pipeline.id)) as observer:
        await_page(observer, "page that knows of no run", lambda found: found["state"] == "never")
        run = pipeline.start()
        run.await_rows(RECORDS)
        made = await_page(observer, "page of a run that is done", is_done)
        agrees_with_status(made, json.loads(pipeline.command("status", "--output", "json").stdout))
        agrees_with_table(made, pipeline)
        tells_of_transactions(made, observer)
        counts_the_table(observer, pipeline)
        figures = scraped(observer)
        assert figures["lockstep_records_total"] == made["totals"]["records"] == RECORDS
        assert figures["lockstep_max_lag_seconds"] == figures["lockstep_participants_missing"] == 0
        await_that(
            "metrics in a file", lambda: file.exists() and "lockstep_records_total" in file.read_text()
        )

        run.kill_worker(coordinator=False)
        pipeline.produce(1_000)
        run.await_rows(pipeline.produced)
        await_page(observer, "a worker's restart", lambda found: any(w["restarts"] for w in found["workers"]))
        made = await_page(observer, "the records after it", is_done)
        assert {one["kind"] for one in made["troubles"]} >= {"death"}
        assert all(one["cause"] in ABORT_CAUSES for one in made["transactions"] if one["cause"])
        assert run.stop() == 0
        made = await_page(observer, "the end", lambda found: found["state"] == "stopped")
        assert made["mode"] in ("STOP", "DRAIN") and not file.exists()
    pipeline.assert_exact(pipeline.produced)


def agrees_with_status(made: dict[str, Any], status: dict[str, Any]) -> None:
    assert (made["state"], made["run"], made["epoch"]) == (status["state"], status["run"], status["epoch"])
    assert made["lag"]["records"] == status["lag"] == 0
    last, same = made["last_commit"], status["last_commit"]
    assert {name: last[name] for name in ("transaction", "instant", "kind", "epoch", "rows")} == {
        name: same[name] for name in ("transaction", "instant", "kind", "epoch", "rows")
    }
    rows = {(one["topic"], one["partition"]): one for one in status["partitions"]}
    for one in made["source_partitions"]:
        other = rows[one["topic"], one["partition"]]
        assert {name: one[name] for name in ("committed", "end", "lag", "verdict")} == {
            name: other[name] for name in ("committed", "end", "lag", "verdict")
        }
        assert one["owner"] in ("worker-0", "worker-1")


def agrees_with_table(made: dict[str, Any], pipeline: Pipeline) -> None:
    reader = table_kind(HUDI).reader(pipeline.place.plain, pipeline.place.settings)
    newest = reader.newest_instant(pipeline.id)
    assert newest is not None and newest.state is not None
    assert made["last_commit"]["instant"] == newest.requested
    # The driver counts from when it had heard of it; Hudi's times are of the same clock.
    assert reader.time_ms(newest.completed) - 1_000 <= made["last_commit"]["completed_ms"] <= made["at_ms"]
    assert made["table"]["mode"] == "insert"
    committed = {(one["topic"], one["partition"]): one["committed"] for one in made["source_partitions"]}
    assert committed == {(place.topic, place.number): at for place, at in newest.state.offsets.items()}


def counts_the_table(observer: Observer, pipeline: Pipeline) -> None:
    """Before anything was aborted or replaced all files that are there are the table."""

    def there(document: dict[str, Any]) -> bool:
        found = data_files(pipeline.table)
        counted = document["table"]["files"]
        return bool(found) and counted is not None and counted["files"] == len(found)

    made = await_page(observer, "count of all files", there)
    counted, schema = made["table"]["files"], made["table"]["schema"]
    assert counted["files"] == counted["small_files"] == made["totals"]["files"]
    assert counted["bytes"] == made["totals"]["bytes"] and not counted["at_least"]
    assert counted["table_partitions"] == len(counted["worst"]) > 1
    assert [one["name"] for one in schema["columns"]][:1] == ["event_id"] and schema["changes"] == []
    assert scraped(observer)["lockstep_table_files"] == counted["files"]


def tells_of_transactions(made: dict[str, Any], observer: Observer) -> None:
    done = [one for one in made["transactions"] if one["phase"] == "committed"]
    assert sum(one["records"] for one in done) == RECORDS
    assert all(one["end_reason"] in END_REASONS and one["run"] == made["run"] for one in done)
    assert all(one["took_ms"].keys() == set(PARTS) for one in done)
    assert made["workers"] and all(worker["memory_bytes"] > 0 for worker in made["workers"])
    assert all(worker["memory_max_bytes"] > worker["memory_bytes"] for worker in made["workers"])
    told = observer.story(done[0]["id"])
    assert told is not None and sum(w["records"] for w in told["writers"]) == done[0]["records"]
    assert {"START_COMMIT", "END_COMMIT", "WRITE_STATUS", "ACK_COMMIT"} <= {
        message["type"] for message in told["messages"]
    }
    assert observer.story("no such transaction") is None


def test_without_a_driver_the_page_tells_how_old_what_waits_is(pipeline: Pipeline) -> None:
    pipeline.produce(1_000)
    assert pipeline.run_to_end().process.returncode == 0
    began_ms = wall_ms()
    pipeline.produce(500)
    with observing(pipeline, lambda: None) as observer:
        made = await_page(
            observer,
            "lag in seconds, of records from before the observer",
            lambda found: found["lag"]["records"] == 500 and found["lag"]["seconds"] is not None,
        )
        assert (made["state"], made["mode"]) == ("stopped", "STOP")
        assert made["totals"]["records"] == 1_000 and made["workers"]
        assert 0 <= made["lag"]["seconds"] <= (wall_ms() - began_ms) / 1_000 + 60
        number = observer.page().number
        assert observer.wait(number, 30).number > number, "a page grows old though nothing happens"
        assert observer.wait(0, 30).number > number
        assert len(observer.source_partitions()) == pipeline.partitions
