"""A table's timeline with damaged files: read, or refused in a sentence by an error of the table."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from control_topic.messages import Lost, Range, Reject, SourcePartition
from table.errors import TableError
from table.hudi.avro import to_avro
from table.hudi.census.census import HudiCensus
from table.hudi.reader.timeline import Timeline
from table.port import TableSpec
from table.schema import parse_ddl
from table.state import StateError, TableState, decode, encode, owner
from tests.fuzz.target import Target, damaged, noise, require
from tests.hudi_avro import COMMIT, PLAN, REPLACE, avro

P0 = SourcePartition("events", 0)
STATE = TableState(
    pipeline="p",
    run="r",
    epoch=3,
    transaction="t",
    offsets={P0: 5, SourcePartition("events", 1): 7},
    ranges=(Range(partition=P0, start=0, next=5, records=3),),
    lost=(Lost(partition=P0, start=0, next=1),),
    rejects=(Reject(partition=P0, offset=4, reason="é"),),
    reject_count=1,
    cluster="c",
    topics={"events": "id"},
)


def _time(number: int) -> str:
    return f"20260101000000{number:03}"


@cache
def sound() -> dict[str, bytes]:
    """A timeline's files: active, pending and archived instants; path below `.hoodie` -> bytes."""
    stats = {"": [{"path": "a.parquet", "numWrites": 3}]}
    commit = {"partitionToWriteStats": stats, "extraMetadata": encode(STATE), "operationType": "INSERT"}
    schema = to_avro(parse_ddl("id STRING NOT NULL, s STRUCT<a: ARRAY<INT>>"), "t")
    commit["extraMetadata"] |= {"schema": schema}
    replaced = {**commit, "operationType": "CLUSTER", "partitionToReplaceFileIds": {"a": ["x-0"]}}
    foreign = {"partitionToWriteStats": None, "extraMetadata": None, "operationType": "UPSERT"}
    begun = {**foreign, "extraMetadata": owner("p", "r", "t2")}
    archived = pa.table(
        {
            "instantTime": [_time(1), _time(2)],
            "completionTime": [_time(2), _time(3)],
            "action": ["commit", "clean"],
            "metadata": pa.array([avro(COMMIT, commit, "null"), b"x"], pa.binary()),
        }
    )
    file = pa.BufferOutputStream()
    pq.write_table(archived, file)
    name = f"{_time(1)}_{_time(2)}_0.parquet"
    return {
        "hoodie.properties": b"#x\nhoodie.table.version=9\nhoodie.timeline.layout.version=2\na\\:b=\\u00e9\n",
        f"timeline/{_time(5)}_{_time(6)}.commit": avro(COMMIT, commit, "deflate"),
        f"timeline/{_time(7)}_{_time(8)}.replacecommit": avro(COMMIT, foreign, "null"),
        f"timeline/{_time(8)}_{_time(9)}.replacecommit": avro(REPLACE, replaced, "deflate"),
        f"timeline/{_time(9)}.inflight": avro(COMMIT, begun, "null"),
        f"timeline/{_time(9)}.commit.requested": b"",
        f"timeline/{_time(11)}.rollback.requested": avro(
            PLAN, {"instantToRollback": {"commitTime": _time(9), "action": "commit"}}, "deflate"
        ),
        f"timeline/history/{name}": file.getvalue().to_pybytes(),
        "timeline/history/manifest_1": json.dumps({"files": [{"fileName": name, "fileLen": 1}]}).encode(),
        "timeline/history/_version_": b"1",
    }


def make_timelines(random: Random, size: int) -> list[dict[str, bytes]]:
    """So many times: the files that differ from the sound ones."""
    return [dict(_change(random) for _ in range(random.randint(1, 2))) for _ in range(size)]


def _change(random: Random) -> tuple[str, bytes]:
    name, raw = random.choice(sorted(sound().items()))
    match random.randrange(8):
        case 0:
            return name, b""
        case 1:
            return name, noise(random, 30)
        case 2 if name.endswith("manifest_1"):
            odd = random.choice(
                ([], {}, 1, {"files": [{"fileName": "x"}]}, {"files": [{"fileName": "a_b\0"}]})
            )
            return name, json.dumps(odd).encode()
        case 3:
            return f"timeline/{random.randrange(10**16):017}_{random.randrange(10**17):017}.commit", raw
        case _:
            return name, damaged(random, raw)


def check_timelines(case: list[dict[str, bytes]]) -> int:
    """Everything that reads a timeline, on each of them."""
    with tempfile.TemporaryDirectory(prefix="lockstep-fuzz-") as folder:
        base = Path(folder)
        (base / ".hoodie" / "timeline" / "history").mkdir(parents=True)
        for name, raw in sound().items():
            (base / ".hoodie" / name).write_bytes(raw)
        for changes in case:
            for name, raw in changes.items():
                (base / ".hoodie" / name).write_bytes(raw)
            _read(base, changes)
            for name in changes:
                if name in sound():
                    (base / ".hoodie" / name).write_bytes(sound()[name])
                else:
                    (base / ".hoodie" / name).unlink()
        require(Timeline(base).newest("p") is not None, "the sound timeline does not read", case)
    return len(case)


def _read(base: Path, changes: dict[str, bytes]) -> None:
    try:
        timeline = Timeline(base)
    except TableError as error:
        require(bool(str(error)), "refused without a word", changes)
        return
    census = HudiCensus(TableSpec(path=str(base), name="t", mode="insert", ddl="id STRING"))
    looks = (
        lambda: timeline.newest("p"),
        timeline.pending,
        lambda: _walk(timeline),
        lambda: census.take(unless=None, files_max=9, enough=lambda: False),
    )
    for look in looks:
        try:
            look()
        except (TableError, StateError) as error:
            require(bool(str(error)), "refused without a word", changes)


def _walk(timeline: Timeline) -> None:
    for instant in timeline.completed():
        timeline.time_ms(instant.requested)


# --- the state in a commit --------------------------------------------------------------------------------

ODD = (
    "",
    "1",
    "-1",
    "1.5",
    "null",
    "[]",
    "{}",
    "[1]",
    '{"events": 1}',
    '{"events": {"x": 1}}',
    '{"events": {"0": -1}}',
)
ODD += (
    '{"events": {"0": 1.5}}',
    '{"events": {"0": "5"}}',
    '[["events", 0, 5, 3, 1]]',
    '[["events", 0, "0", 5, 1]]',
)
ODD += (
    '[["events", -1, 0, 5, 1]]',
    '[["events", 0, 0, 5]]',
    "[" * 5_000,
    "1" * 5_000,
    "NaN",
    '{"events": null}',
    '{"\\ud800": {}}',
)


def make_states(random: Random, size: int) -> list[dict[str, str]]:
    """So many commits' metadata, with odd values."""
    return [_state(random) for _ in range(size)]


def _state(random: Random) -> dict[str, str]:
    metadata = dict(encode(STATE))
    for _ in range(random.randint(1, 2)):
        key = random.choice(sorted(metadata))
        match random.randrange(3):
            case 0:
                del metadata[key]
            case 1:
                metadata[key] = random.choice(ODD)
            case _:
                metadata[key] = damaged(random, metadata[key].encode()).decode("utf-8", "replace")
    return metadata


def check_states(case: list[dict[str, str]]) -> int:
    """A state is read and says the same when it is written again, or it is refused; a foreign one is none."""
    for metadata in case:
        try:
            state = decode(metadata, instant="1")
        except StateError:
            continue
        if state is None:
            require("lockstep.offsets" not in metadata, "our commit is taken for somebody else's", metadata)
            continue
        again = decode(encode(state), instant="1")
        state = replace(state, reject_count=max(state.reject_count, len(state.rejects)))  # as it is written
        require(again == state, f"{state} reads {again} when it is written again", metadata)
        require(all(type(n) is int and n >= 0 for n in state.offsets.values()), "an odd offset", metadata)
        require(all(type(r.start) is int for r in state.ranges), "an odd range", metadata)
    return len(case)


TARGETS = (
    Target(
        name="timeline",
        promise="a damaged timeline is read, or refused in a sentence",
        make=make_timelines,
        check=check_timelines,
        size=100,
        seeds=20,
    ),
    Target(
        name="commit state",
        promise="the state in a commit is read whole or refused",
        make=make_states,
        check=check_states,
        size=500,
        seeds=20,
    ),
)
