"""What the data plane is driven with, by the table's kind and schema."""

from __future__ import annotations

import pytest

from participant.records.kinds import FORMATS
from participant.records.port import RecordSpec
from participant.records.registry.settings import RegistrySettings
from participant.source.fetcher import BATCH_RECORDS
from participant.worker.memory import MemoryBudget
from participant.worker.stages import RECORDS_LEAST, reads_by, stages
from table.port import INSERT, UPSERT, TableLayout, TableSpec
from table.schema import SchemaError
from tests.proto_files import compiled, encoded

MEMORY_BYTES = 512_000_000


def records_max(ddl: str, memory_bytes: int = MEMORY_BYTES) -> int:
    layout = TableLayout(
        kind="hudi",
        path="/t",
        key_fields=("id",),
        partition_fields=(),
        kafka_columns=False,
        target_file_bytes=1 << 20,
        ddl=f"id STRING, {ddl}",
    )
    found = stages(layout=layout, slot=0, incarnation="i", memory=MemoryBudget(memory_bytes))
    return found.records_max


AVRO = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"},{"name":"n","type":"long"}]}'

PROTO = 'syntax = "proto3"; message R { string id = 1; int64 n = 2; }'


def columns(count: int) -> str:
    return ", ".join(f"c{number} DOUBLE" for number in range(count))


def test_rows_of_usual_width_are_bounded_by_the_fetch_alone() -> None:
    assert records_max(columns(60)) == BATCH_RECORDS


@pytest.mark.parametrize(
    "ddl", [columns(999), f"s STRUCT<{columns(999).replace(' DOUBLE', ': DOUBLE')}>"], ids=["flat", "nested"]
)
def test_of_a_wide_table_as_many_are_decoded_at_once_as_fit_though_they_hold_nothing(ddl: str) -> None:
    assert records_max(ddl) * 1_000 * 8 == pytest.approx(MEMORY_BYTES / 16, rel=0.01)


def test_some_are_decoded_at_once_however_wide_the_table_and_however_small_the_memory() -> None:
    assert records_max(columns(999), memory_bytes=1_000_000) == RECORDS_LEAST


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_with_what_it_is_read(name: str) -> None:
    ddl = {"string": "id STRING", "bytes": "id BINARY"}.get(name, "id STRING, n BIGINT")
    spec = TableSpec(path="/t", name="t", mode=UPSERT, ddl=ddl, key_fields=("id",))
    framing = "confluent" if name == "json_schema" else "none"
    text = encoded(compiled({"r.proto": PROTO})) if name == "protobuf" else AVRO
    given = {"schema_text": text, "key_schema_text": text, "message": "R", "key_message": "R"}
    registry = RegistrySettings(url="http://registry")
    record = RecordSpec(format=name, key_format=name, framing=framing, registry=registry, **given)
    assert reads_by(spec, record)


def test_the_workers_log_says_which_decoder_reads(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="lockstep.worker"):
        records_max("n BIGINT")
    (said,) = [one.getMessage() for one in caplog.records if one.name == "lockstep.worker"]
    assert said.startswith(("values are read by: native", "values are read by: plain: Arrow"))


def test_who_wants_the_native_decoder_for_what_it_does_not_read_is_told_before_a_run() -> None:
    spec = TableSpec(path="/t", name="t", mode=INSERT, ddl="tags MAP<STRING, STRING>")
    for wanted in ("auto", "plain", "native"):
        with pytest.raises(SchemaError, match="has only MAP columns"):
            reads_by(spec, RecordSpec(decoder=wanted))


def test_a_schema_that_cannot_be_read_is_found_without_a_worker() -> None:
    spec = TableSpec(path="/t", name="t", mode=INSERT, ddl="tags MAP<STRING, STRING>")
    with pytest.raises(SchemaError, match="has only MAP columns"):
        reads_by(spec, RecordSpec())
