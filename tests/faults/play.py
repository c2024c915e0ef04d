"""Playing scenarios one after the other, each on a topic and a table of its own; one broker for all."""

from __future__ import annotations

import importlib
import logging
import shutil
import signal
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lockstep.brokers.local import Broker
from lockstep.launch.local_server import LocalServer
from lockstep.stores.gs import GsServer
from lockstep.stores.hdfs import HdfsServer
from lockstep.stores.local import EVERYTHING, S3Server
from table.store.location import AZURE, FILE, GOOGLE, HDFS, S3
from tests.azure.server import AzureServer
from tests.broker_fixture import create_topic
from tests.faults.kills import DRIVER_LIMIT_S
from tests.faults.scenario import CATALOGUE, Outcome, Scenario
from tests.faults.stage import Stage
from tests.harness import Pipeline
from tests.place import SUCCESSOR, place_on

PARTITIONS = 4
MODULES = (
    *("kills", "pauses", "rivals", "clocks", "boundaries", "watermarks"),
    *("environment_*", "tables_*", "upserts_*", "services", "retentions", "slow_writers"),
    *("exchanges", "stores", "stores_hdfs", "stores_clouds"),
)

SERVER_S = 5.0
"""How much later than on a file system a driver that was killed may commit again: after 20 s."""
SERVERS: Mapping[str, Callable[[Path], LocalServer]] = {
    S3: partial(S3Server, others={SUCCESSOR: EVERYTHING}),
    HDFS: HdfsServer,
    GOOGLE: GsServer,
    AZURE: AzureServer,
}


def load_catalogue(store: str = FILE) -> dict[str, Scenario]:
    """All scenarios with a table on this store, in the order in which the documentation lists them."""
    here = Path(__file__).parent
    for pattern in MODULES:
        for path in sorted(here.glob(f"{pattern}.py")):
            importlib.import_module(f"tests.faults.{path.stem}")
    found = (one for one in CATALOGUE.values() if store in one.stores)
    return {one.name: one if store == FILE else _of_a_server(one, store) for one in found}


def _of_a_server(scenario: Scenario, store: str) -> Scenario:
    """A driver that is started again opens the table, which asks a server some hundred times."""
    if scenario.limit_s is None:
        return scenario
    starts_s = SERVER_S if scenario.limit_s >= DRIVER_LIMIT_S else 0.0
    return replace(scenario, limit_s=scenario.limit_s + starts_s + scenario.more_s.get(store, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """`error`: empty where the expected outcome came about. `slow`: it did, later than the limit."""

    scenario: Scenario
    outcome: Outcome
    error: str
    took_s: float

    @property
    def limit_s(self) -> float | None:
        return self.scenario.limit_s and self.scenario.limit_s + self.outcome.expiry_s

    @property
    def slow(self) -> bool:
        limit_s, recovery_s = self.limit_s, self.outcome.recovery_s
        return limit_s is not None and recovery_s is not None and recovery_s > limit_s

    def figures(self) -> dict[str, object]:
        return {
            "name": self.scenario.name,
            "group": self.scenario.group,
            "fault": self.scenario.fault,
            "expected": self.scenario.expected,
            "outcome": "failed" if self.error else "slow" if self.slow else "as expected",
            "recovery_s": self.outcome.recovery_s and round(self.outcome.recovery_s, 2),
            "limit_s": self.limit_s,
            "notes": self.outcome.notes,
        }


def make_stage(broker: Broker, folder: Path, name: str, server: LocalServer | None = None) -> Stage:
    """A topic and a pipeline of that name in this folder; its table is on the server, where there is one."""
    topic = f"{name[:60].replace('_', '-')}-{uuid.uuid4().hex[:6]}"
    folder.mkdir(parents=True)
    create_topic(broker.bootstrap_servers, topic, partitions=PARTITIONS)
    pipeline = Pipeline(folder=folder, broker=broker, topic=topic, partitions=PARTITIONS)
    if server is not None:
        pipeline.bucket = place_on(server)
    return Stage(broker=broker, pipeline=pipeline, server=server)


def play(broker: Broker, folder: Path, scenario: Scenario, server: LocalServer | None = None) -> Played:
    """One scenario to its end. What it leaves is kept where it failed or was slow."""
    began = time.monotonic()
    stage = make_stage(broker, folder, scenario.name, server)
    outcome, error = Outcome(), ""
    try:
        outcome = scenario.play(stage)
    except Exception:  # noqa: BLE001 - reported with the others
        error = traceback.format_exc()
    finally:
        stage.close()
        for one in (broker, server):
            if one is not None and not one.running:
                one.kill()
                one.start()
    played = Played(scenario=scenario, outcome=outcome, error=error, took_s=time.monotonic() - began)
    if error or played.slow:
        (folder / "events.txt").write_text(stage.events())
        (folder / "error.txt").write_text(error)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return played


def play_all(
    folder: Path,
    scenarios: Iterable[Scenario],
    keep: Callable[[Played], None] | None = None,
    *,
    store: str = FILE,
) -> list[Played]:
    """Each once, a line for each on stdout; `keep` is given each as it ends."""
    done: list[Played] = []
    with Broker(folder / "broker", heap_mb=512) as broker, ExitStack() as stack:
        server = stack.enter_context(SERVERS[store](folder / store)) if store in SERVERS else None
        for scenario in scenarios:
            done.append(play(broker, folder / scenario.name, scenario, server))
            say(_line(done[-1]))
            if keep is not None:
                keep(done[-1])
            if done[-1].error:
                say(done[-1].error)
            if done[-1].error or done[-1].slow:
                say(f"  the control topic and the logs are in {folder / scenario.name}")
    return done


def _line(played: Played) -> str:
    figures = played.figures()
    recovery_s, limit_s = figures["recovery_s"], figures["limit_s"]
    times = "" if recovery_s is None else f"{recovery_s} s" + (f" of {limit_s:.0f} s" if limit_s else "")
    name, notes = played.scenario.name, figures["notes"]
    return f"{figures['outcome']:12} {name:60} {times:18} {played.took_s:4.0f} s {notes}"


def prepare() -> None:
    """SIGTERM ends a run as Ctrl-C does, with all that it started, instead of leaving broker and job behind.

    And a broker that is killed is no news here: the watchers' own clients need not report it.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.getLogger("control_topic.kafka").setLevel(logging.CRITICAL)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
