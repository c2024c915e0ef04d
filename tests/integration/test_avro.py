"""Avro, from confluent-kafka's own serializer and a registry to rows that Spark SQL and pyarrow read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession

from control_topic.messages import SourcePartition
from lockstep.launch.local_server import free_port
from participant import events as ev
from participant.records.port import RecordSpec
from participant.records.registry.settings import RegistrySettings
from participant.worker.plane import PlaneCallbacks
from tests.avro_types import TAKEN, bare, record, written
from tests.harness import Pipeline, await_that
from tests.integration.planes import PARTITION, consumed, plane_of
from tests.integration.typed import IDS, MODES, Typed, parted
from tests.json_decoders import compiled
from tests.registry_server import ERROR, WELL, Registry
from tests.unit.participant.records.avro.test_connect import TAKEN as NAMED_BY_CONNECT

pytestmark = pytest.mark.integration

OLD = record({"event_id": "string", "user_id": "long", "amount": "double", "day": "string"})
NEW = record(
    {
        "note": ["null", "string"],
        "event_id": "string",
        "user_id": ["null", "long"],
        "amount": "double",
        "day": "string",
        "more": {"type": "array", "items": ["long", "string"]},
    }
)


class Producing:
    """Records of a topic as confluent-kafka's serializer spells them."""

    def __init__(self, registry: Registry, topic: str) -> None:
        client = SchemaRegistryClient({"url": registry.url})
        self.context = SerializationContext(topic, MessageField.VALUE)
        self.old, self.new = AvroSerializer(client, OLD), AvroSerializer(client, NEW)
        self.in_header = AvroSerializer(
            client, NEW, conf={"schema.id.serializer": header_schema_id_serializer}
        )
        self.made = 0

    def values(self, serializer: AvroSerializer, count: int) -> list[bytes]:
        """So many more events."""
        first, self.made = self.made, self.made + count
        made = [serializer(self._event(number), self.context) for number in range(first, self.made)]
        return [value for value in made if isinstance(value, bytes)]

    def _event(self, number: int) -> dict[str, Any]:
        return {
            "event_id": f"e-{number:09d}",
            "user_id": number,
            "amount": number / 4,
            "day": f"2026-01-{1 + number % 3:02d}",
            "note": "ä",
            "more": [number, "x"],
        }


@pytest.fixture
def avro(pipeline: Pipeline, registry: Registry) -> Pipeline:
    """The same pipeline, of Avro."""
    text = pipeline.config.read_text(encoding="utf-8")
    text = text.replace("[record]", '[record]\nformat = "avro"\n')
    text += f"""
[registry]
url = "{registry.url}"
cache_folder = "{pipeline.folder / "schemas"}"
"""
    pipeline.config.write_text(text, encoding="utf-8")
    return pipeline


def test_a_plane_that_cannot_be_told_of_a_schema_holds_up_one_source_partition_and_rejects_nothing(
    tmp_path: Path, registry: Registry
) -> None:
    registry.does = ERROR
    settings = RegistrySettings(url=registry.url, cache_folder=str(tmp_path / "schemas"))
    text = record({"id": "string"})
    posted: list[Any] = []
    asked: list[tuple[Any, ...]] = []
    plane = plane_of(
        tmp_path / "table",
        posted,
        record=RecordSpec(format="avro", registry=settings),
        callbacks=PlaneCallbacks(
            hold=lambda *what: asked.append(("hold", *what)),
            release=lambda *what: asked.append(("release", *what)),
        ),
    )
    other = SourcePartition("events", 1)
    plane.start()
    try:
        for partition in (PARTITION, other):
            plane.order(ev.Rewind(partition=partition, offset=0, generation=1))
        assert plane.deliver(consumed(0, [b"\0\0\0\0\x01" + written(text, {"id": "a"})]))
        (hold,) = await_that("that it is held", lambda: asked)
        assert hold[:3] == ("hold", PARTITION, 1)
        assert hold[3] == (
            f"events:0 waits at offset 0, and it alone: the schema registry at {registry.url} answers with "
            "an error (503)"
        )
        assert plane.deliver(consumed(0, [], partition=other))
        assert plane.deliver(consumed(1, [b"\0\0\0\0\x01" + written(text, {"id": "b"})]))
        registry.known.register("events-value", {"schema": text})
        registry.does = WELL
        await_that("its release", lambda: len(asked) > 1)
        buffered = [one for one in posted if isinstance(one, ev.Buffered)]
        assert [(one.partition, one.next, one.rejects) for one in buffered] == [
            (PARTITION, 1, 0),
            (PARTITION, 2, 0),
        ]
        assert posted == buffered and asked[1:] == [("release", PARTITION, 1)]
    finally:
        assert plane.stop(30)


@pytest.fixture
def registry() -> Iterator[Registry]:
    """It can come back: nobody is given its port meanwhile."""
    with Registry(port=free_port()) as running:
        yield running


def send(pipeline: Pipeline, values: list[bytes]) -> None:
    for partition in range(pipeline.partitions):
        pipeline.produce_raw(values[partition :: pipeline.partitions], partition=partition)


def test_a_registry_that_goes_away_holds_up_one_source_partition_and_loses_nothing(
    avro: Pipeline, registry: Registry
) -> None:
    """Of which the next record is by a schema that it never told. What others have is committed."""
    producing = Producing(registry, avro.topic)
    send(avro, producing.values(producing.old, 2_000))
    run = avro.start()
    run.await_rows(2_000)

    new = producing.values(producing.new, 500)
    registry.close()
    avro.produce_raw(new, partition=0)

    def alarm() -> str:
        workers = (run.status() or {}).get("workers", [])
        return next((said for one in workers for said in one["alarms"]), "")

    said = await_that("alarm in the status", alarm)
    assert said.startswith(f"{avro.topic}:0 waits at offset ")
    assert f"and it alone: the schema registry at {registry.url} cannot be reached" in said
    shown = avro.command("status").stdout
    assert "waits at offset" in " ".join(shown.split())
    old = producing.values(producing.old, 400)
    avro.produce_raw(old[:100], partition=0)
    avro.produce_raw(old[100:], partition=1)
    run.await_rows(2_300)
    assert not await_that("a status", run.status)["failures"]["outage_ms"]

    with Registry(port=registry.port, known=registry.known):
        run.await_rows(2_900)
        await_that("the alarm's end", lambda: not alarm())
        assert run.stop() == 0
    avro.assert_exact(2_900)

    send(avro, producing.values(producing.new, 100))
    assert avro.run_to_end().process.returncode == 0, "what was told before is kept"
    avro.assert_exact(3_000)


@pytest.mark.smoke("avro")
def test_an_id_in_a_header_is_read_by_either_reader_of_the_source(avro: Pipeline, registry: Registry) -> None:
    from confluent_kafka import Producer

    producing = Producing(registry, avro.topic)
    producer = Producer(avro.kafka)
    for reader in ("native", "plain"):
        for partition in range(avro.partitions):
            headers: list[tuple[str, bytes]] = []
            producing.context.headers = headers
            (value,) = producing.values(producing.in_header, 1)
            assert value[0] != 0 and [name for name, _ in headers] == ["__value_schema_id"]
            producer.produce(avro.topic, value, headers=headers, partition=partition)
        assert producer.flush(30) == 0
        avro.settings["source.reader"] = reader
        assert avro.run_to_end().process.returncode == 0
    avro.assert_exact(2 * avro.partitions)


def test_validate_asks_the_registry_and_says_with_what_records_are_read(
    avro: Pipeline, registry: Registry
) -> None:
    producing = Producing(registry, avro.topic)
    producing.values(producing.old, 1)
    done = avro.command("validate", "--output", "json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks[f"schemas of {avro.topic}-value"]["detail"] == "the newest, schema 1, fits record.schema"
    reads = "native, in one pass" if compiled() else "plain: Python, a record at a time"
    said = checks["record decoder"]["detail"]
    assert said.startswith(reads) and said.endswith(f", by schemas of {registry.url}")
    assert done.returncode == 0, done.stdout


# --- types ------------------------------------------------------------------------------------------

KEYED: dict[str, tuple[Any, str, Any, Any]] = {
    "id": ("string", "STRING NOT NULL", None, None),
    "region": ("string", "STRING", "a", "a"),
    "ts": ("long", "BIGINT", 0, 0),
    "deleted": ("boolean", "BOOLEAN", False, False),
}


VARIABLE = "io.debezium.data.VariableScaleDecimal"


def renamed(avro: Any, suffix: str) -> Any:
    """With other names for the types in it, since a schema defines a name once."""
    if isinstance(avro, list):
        return [renamed(one, suffix) for one in avro]
    if not isinstance(avro, dict):
        return avro
    made = {name: renamed(one, suffix) if name in ("items", "values") else one for name, one in avro.items()}
    named = "name" in avro and avro.get("connect.name") != VARIABLE  # which goes by its name
    return made | ({"name": f"{avro['name']}_{suffix}"} if named else {})


def schema_of(fields: dict[str, Any]) -> str:
    """Of which the second to be of Debezium's type, and all that follow, refer to the first."""
    made, defined = {}, False
    for name, avro in fields.items():
        theirs = isinstance(avro, dict) and avro.get("connect.name") == VARIABLE
        made[name] = VARIABLE if theirs and defined else avro
        defined = defined or theirs
    return record(made)


COLUMNS = KEYED | {
    f"c{place}": (renamed(avro, str(place)), ddl, value, read)
    for place, (avro, ddl, value, read) in enumerate([*TAKEN, *NAMED_BY_CONNECT])
}
KEY = record({"region": "string", "id": "string"}, "key")


@pytest.mark.parametrize("local_times", [False, True], ids=["others", "timestamp_ntz"])
@pytest.mark.parametrize("mode", MODES)
def test_every_type_comes_back_from_log_blocks_base_files_and_services_and_a_key_of_avro_deletes(
    spark: SparkSession, tmp_path: Path, mode: str, local_times: bool
) -> None:
    ddl = {name: one for name, (_, one, _, _) in COLUMNS.items()}
    columns = parted(COLUMNS, ddl, local_times=local_times)
    schema = schema_of({name: avro for name, (avro, _, _, _) in columns.items()})
    written_by = schema_of({name: bare(avro, value) for name, (avro, _, value, _) in columns.items()})
    spec = RecordSpec(
        format="avro", key_format="avro", framing="none", schema_text=schema, key_schema_text=KEY
    )
    table = Typed(spark, tmp_path / "t", spec, mode, ddl={name: ddl[name] for name in columns})
    try:
        values = {name: value for name, (_, _, value, _) in columns.items()}
        records = [(None, written(written_by, {**values, "id": one})) for one in IDS]
        table.check(records, {name: read for name, (_, _, _, read) in columns.items()})
        if mode == "upsert":
            table.table.run([(written(KEY, {"region": "a", "id": "r1"}), None)])
            assert table.ids() == ["r0", "r2"]
    finally:
        table.table.table.close()
