"""The house's own rules, read from its imports: arrows point inwards, no circles, and few know Hudi."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RINGS = ("control_topic", "coordinator", "table", "participant", "lockstep")
"""From the inside out: each imports only those before it."""

ROOMS: Mapping[str, tuple[str, ...]] = {
    "control_topic": (),
    "coordinator": ("control_topic",),
    "table": ("control_topic", "table.partitioners", "table.store"),
    "table.store": ("table", "table.store.hdfs", "table.store.objects"),
    "table.store.hdfs": ("table", "table.store"),
    "table.store.objects": ("table", "table.store"),
    "table.service": ("control_topic", "coordinator", "table", "table.store"),
    "table.hudi.reader": ("control_topic", "table", "table.hudi", "table.store"),
    "table.hudi.census": ("table", "table.hudi", "table.hudi.files", "table.hudi.reader", "table.store"),
    "table.partitioners": (),
    "table.hudi.files": ("control_topic", "table", "table.hudi", "table.partitioners", "table.store"),
    "table.hudi.driver": (
        *("control_topic", "table", "table.store", "table.hudi", "table.hudi.files", "table.hudi.reader"),
    ),
    "participant": ("control_topic",),
    "participant.exchange": ("control_topic", "participant", "table", "table.service"),
    "participant.records": ("control_topic", "participant.records.registry", "table"),
    "participant.records.avro": (
        *("control_topic", "table", "participant.records", "participant.records.json"),
        *("participant.records.by_schema", "participant.records.registry"),
    ),
    "participant.records.by_schema": (
        *("control_topic", "table", "participant.records", "participant.records.json"),
    ),
    "participant.records.envelopes": ("control_topic", "participant.records"),
    "participant.records.envelopes.debezium": (
        *("control_topic", "table", "participant.records", "participant.records.json"),
    ),
    "participant.records.json_schema": (
        *("control_topic", "table", "participant.records", "participant.records.json"),
        *("participant.records.by_schema", "participant.records.registry"),
    ),
    "participant.records.protobuf": (
        *("control_topic", "table", "participant.records", "participant.records.json"),
        *("participant.records.by_schema", "participant.records.registry"),
    ),
    "participant.source": ("control_topic", "participant", "participant.records"),
}
"""What modules of a room import beside each other."""

NEW_ROOMS: Mapping[str, tuple[str, ...]] = {
    "participant.records": ("control_topic", "table", "participant.records"),
    "participant.records.envelopes": (
        *("control_topic", "table", "participant.records", "participant.records.envelopes"),
    ),
    "table": ("control_topic", "table", "table.partitioners", "table.store"),
}
"""The same, of rooms directly in these that are not listed by name: a format, an envelope, a kind of table.
All others may import all of their ring and those further in."""

KNOW_HUDI = frozenset(
    {
        "lockstep.config.document",
        "lockstep.config.properties",
        "lockstep.launch.job_process",
        "lockstep.demo.reached",
        "lockstep.driver.jvm_signals",
    }
)
"""Outside `table/hudi`. The fewer the better: a new one is to go through `table/port.py` instead."""

SYSTEM = frozenset({"os", "pathlib.Path", "shutil", "tempfile", "glob", "fcntl"})
KNOW_FILES: Mapping[str, str] = {
    "table.hudi.driver.connector": "a jar that executors are given",
    "table.hudi.driver.held": "a page of memory that the JVM and its guardian share",
    "table.hudi.driver.holder": "which processes live, by /proc",
    "table.hudi.driver.reach": "a variable of the environment, by which HDFS knows a user",
    "table.hudi.driver.storage": "which file systems are mounted",
    "table.hudi.driver.watchdog": "a process of its own, which ends whoever holds the lock for too long",
    "table.hudi.files.durable": "the system's words for an error's number",
    "table.hudi.reader.mirror": "a folder for a reader that knows no HDFS",
    "table.hudi.reader.timeline": "a path may be given as one",
    "participant.records.json.lines": "a library's variable of the environment",
    "participant.records.registry.disk": "schemas that outlive their registry's absence",
    "participant.source.native": "the libraries that this process has loaded",
    "participant.worker.task": "a library's variable of the environment",
    "participant.worker.worker": "its process's number",
}
"""In `table/` and `participant/`, whose files are a store's: those that know the system, and for what. Stores
do."""


@cache
def modules() -> dict[str, Path]:
    found = {}
    for ring in RINGS:
        for path in (ROOT / ring).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imported(name: str) -> Iterator[str]:
    """Modules of ours, those included that are imported when they are needed."""
    for node in ast.walk(ast.parse(modules()[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from [one for one in (whole, node.module) if one in modules()][:1]
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())


@cache
def graph() -> dict[str, frozenset[str]]:
    return {name: frozenset(imported(name)) - {name} for name in modules()}


def room(name: str) -> str:
    return ".".join(modules()[name].parent.relative_to(ROOT).parts)


def test_the_rings_are_found() -> None:
    assert len(graph()) > 150 and sum(map(len, graph().values())) > 500


def test_no_module_imports_itself_by_a_detour() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as circle:
        pytest.fail(" → ".join(circle.args[1]))


def test_arrows_point_inwards() -> None:
    """A ring knows those within it."""
    level = {name: RINGS.index(name.split(".")[0]) for name in graph()}
    outwards = [
        f"{name} → {other}"
        for name, others in graph().items()
        for other in others
        if level[other] > level[name]
    ]
    assert not outwards


def guarded_rooms() -> list[str]:
    rooms = {room(name) for name in modules()} - {"table.stubs", "table.hudi"}
    return sorted(ROOMS.keys() | {one for one in rooms if one.rpartition(".")[0] in NEW_ROOMS})


@pytest.mark.parametrize("name", guarded_rooms())
def test_a_room_knows_what_it_may_know(name: str) -> None:
    allowed = {name, *(ROOMS[name] if name in ROOMS else NEW_ROOMS[name.rpartition(".")[0]])}
    stubs = {f"{one}.stubs" for one in allowed}
    here = [module for module in graph() if room(module) == name]
    assert here
    strange = [
        f"{module} → {other}"
        for module in here
        for other in graph()[module]
        if room(other) not in allowed | stubs | {"table.stubs"}
    ]
    assert not strange


def test_those_who_know_hudi_are_named() -> None:
    knowing = {
        name
        for name, others in graph().items()
        if not name.startswith("table.hudi") and any(other.startswith("table.hudi") for other in others)
    }
    assert knowing == KNOW_HUDI, "a name too many is a wall that can go; a name too few is one to go around"


def test_those_who_reach_for_the_system_beside_the_store_are_named() -> None:
    reach = {
        name
        for name in modules()
        if name.split(".")[0] in ("table", "participant")
        and room(name) != "table.store"
        and SYSTEM & set(named(modules()[name]))
    }
    assert reach == set(KNOW_FILES)


def named(path: Path) -> Iterator[str]:
    """What a module imports, whosever it is."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_what_spark_starts_stands_alone_in_its_folder() -> None:
    """A script's own folder comes first on the path: a module beside it would hide another of that name."""
    assert {path.name for path in (ROOT / "lockstep" / "entry").glob("*.py")} == {"__init__.py", "job.py"}
