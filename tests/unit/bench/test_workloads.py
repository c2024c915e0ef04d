"""What the bench puts on the topic is what it says, and Lockstep reads all of it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.encodings import register
from bench.load import block_records
from bench.rivals.registry import parse, reading
from bench.workloads import ENCODED, EVERY, WORKLOADS, Workload
from control_topic.messages import SourcePartition
from lockstep.errors import ConfigError, Failed
from participant.records.json.decoder import JsonDecoder
from participant.records.kinds import format_made
from participant.records.port import RecordSpec
from participant.records.raw import RawBatch, Values
from participant.records.registry.settings import RegistrySettings
from table.schema import parse_ddl
from tests.registry_server import Registry

EACH = pytest.mark.parametrize("workload", EVERY.values(), ids=EVERY)
OF_JSON = [one for one in EVERY.values() if one.encoding is None]
EACH_OF_JSON = pytest.mark.parametrize("workload", OF_JSON, ids=lambda one: one.name)
SAMPLE = range(0, 3_000_000, 1_499)


@EACH_OF_JSON
def test_every_value_has_the_schemas_fields_in_their_order(workload: Workload) -> None:
    columns = parse_ddl(workload.schema).names
    for number in SAMPLE:
        assert list(json.loads(workload.value(number))) == columns


@EACH_OF_JSON
def test_every_value_decodes_to_a_row_without_a_null(workload: Workload) -> None:
    schema = parse_ddl(workload.schema)
    decoded = JsonDecoder(schema).decode(batch(workload))
    assert not decoded.rejects
    assert [decoded.table[name].null_count for name in schema.names] == [0] * len(schema)


def batch(workload: Workload) -> RawBatch:
    values = [workload.value(number) for number in SAMPLE]
    return RawBatch(
        partition=SourcePartition("events", 0),
        offsets=np.arange(len(values)),
        timestamps_ms=np.zeros(len(values), dtype=np.int64),
        values=Values.of(values),
    )


@pytest.mark.parametrize("workload", ENCODED.values(), ids=ENCODED)
def test_values_in_another_format_are_the_same_rows_as_in_json_once_a_registry_knows_their_schema(
    workload: Workload, tmp_path: Path
) -> None:
    assert workload.encoding is not None
    schema = parse_ddl(workload.schema)
    with Registry() as registry:
        register(registry.url, "events-value", workload.encoding)
        settings = RegistrySettings(url=registry.url, cache_folder=str(tmp_path))
        read = format_made(workload.format, RecordSpec(format=workload.format, registry=settings))
        decoded = read.values(schema).decode(batch(workload))
        with pytest.raises(Failed, match="calls the first schema 2"):
            register(registry.url, "else-value", replace(workload.encoding, schema=OTHER[workload.format]))
    assert not decoded.rejects
    assert decoded.table.equals(JsonDecoder(schema).decode(batch(WORKLOADS["narrow"])).table)


OTHER = {"avro": '"string"', "protobuf": 'syntax = "proto3"; message Other { string id = 1; }'}


def test_a_rival_that_does_not_read_the_format_is_left_out_and_none_at_all_is_refused() -> None:
    entries = [parse(one) for one in ("lockstep", "streaming", "plain", "iceberg-cold")]
    assert [one.label for one in reading(entries, "avro")] == ["lockstep", "streaming"]
    assert [one.label for one in reading(entries, "protobuf")] == ["lockstep"]
    with pytest.raises(ConfigError, match="None of plain reads avro"):
        reading([parse("plain")], "avro")


@EACH
def test_values_have_the_announced_size(workload: Workload) -> None:
    mean = sum(len(workload.value(number)) for number in SAMPLE) / len(SAMPLE)
    assert mean == pytest.approx(workload.size_bytes, rel=0.03)


@EACH
def test_the_same_number_gives_the_same_value_and_others_another(workload: Workload) -> None:
    values = {workload.value(number) for number in SAMPLE}
    assert len(values) == len(SAMPLE)
    assert values == {workload.value(number) for number in SAMPLE}


@EACH
def test_a_block_is_spread_by_the_weights_exactly(workload: Workload) -> None:
    records = block_records(workload)
    sent = Counter(workload.source_partition(number) for number in range(records))
    share = records // sum(workload.weights)
    assert [sent[n] for n in range(workload.source_partitions)] == [share * w for w in workload.weights]


@EACH_OF_JSON
def test_a_block_fills_every_table_partition(workload: Workload) -> None:
    if workload.partition_by:
        numbers = range(block_records(workload) // 10)
        found = {json.loads(workload.value(number))[workload.partition_by] for number in numbers}
        assert len(found) == workload.table_partitions


def test_the_sizes_and_shapes_are_those_that_the_names_promise() -> None:
    assert len(parse_ddl(WORKLOADS["narrow"].schema)) == 8
    assert 150 <= WORKLOADS["narrow"].size_bytes <= 170
    assert len(parse_ddl(WORKLOADS["wide"].schema)) == 60
    assert 1_400 <= WORKLOADS["wide"].size_bytes <= 1_600
    assert 38 <= WORKLOADS["tiny"].size_bytes <= 44
    weights = WORKLOADS["skewed"].weights
    assert max(weights) / sum(weights) == 0.8
    assert WORKLOADS["short"].interval_s == 1.0
