"""Fuzzing of the native module: what it begins with, says and needs. At length: `make soak-native`."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner

from control_topic.messages import SourcePartition
from participant.records.avro.decoder import AvroDecoder
from participant.records.avro.schemas import GivenSchemas
from participant.records.protobuf.decoder import ProtobufDecoder
from participant.records.protobuf.format import GivenFiles
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests import evidence
from tests.fuzz import native, native_seeds
from tests.proto_files import compiled, encoded

DONE = """#1034	REDUCE cov: 1500 ft: 4000 corp: 400/80Kb lim: 4096 exec/s: 500 rss: 90Mb L: 31/4096
#2034	DONE   cov: 1523 ft: 4101 corp: 433/81Kb lim: 4096 exec/s: 508 rss: 97Mb
Done 2034 runs in 4 second(s)
stat::number_of_executed_units: 2034
stat::peak_rss_mb:              97
"""


def test_each_target_is_compiled_run_and_begins_with_values() -> None:
    listed = tomllib.loads((native.FOLDER / "Cargo.toml").read_text(encoding="utf-8"))["bin"]
    files = [
        path for path in (native.FOLDER / "fuzz_targets").iterdir() if "fuzz_target!" in path.read_text()
    ]
    assert {one["path"] for one in listed} == {f"fuzz_targets/{path.name}" for path in files}
    assert {one["name"] for one in listed} == set(native.TARGETS)


@pytest.mark.parametrize("target", native.TARGETS)
def test_what_a_target_begins_with_is_always_the_same_and_short(target: str, tmp_path: Path) -> None:
    native_seeds.write(target, tmp_path / target)
    written = [path.read_bytes() for path in sorted((tmp_path / target).iterdir())]
    assert written == list(native_seeds.inputs(target)) and len(written) == native_seeds.SEEDS
    assert sum(len(one) <= native.INPUT_BYTES_MAX for one in written) > native_seeds.SEEDS * 0.9


def test_values_of_avro_and_protobuf_are_read_by_the_decoders_of_these_formats() -> None:
    random = Random(7)
    avro = AvroDecoder(
        parse_ddl("a STRING, m STRUCT<x: STRING, y: BOOLEAN>, o MAP<STRING, BIGINT>, p STRING, r BINARY"),
        "none",
        GivenSchemas(json.dumps(native_seeds.AVRO), by_fingerprint=False),
    )
    assert not avro.decode(_batch([native_seeds.avro_value(random) for _ in range(200)])).rejects
    files = GivenFiles(encoded(compiled({"t.proto": native_seeds.PROTOBUF})))
    protobuf = ProtobufDecoder(
        parse_ddl("n STRING, t ARRAY<INT>, v MAP<STRING, STRUCT<y: BOOLEAN>>"), "t.R", files
    )
    assert not protobuf.decode(_batch([native_seeds.protobuf_value(random) for _ in range(200)])).rejects


def _batch(values: list[bytes | None]) -> RawBatch:
    offsets = np.arange(len(values), dtype=np.int64)
    return RawBatch(
        partition=SourcePartition("events", 3),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
    )


def test_what_libfuzzer_says_last_is_read() -> None:
    wanted = {
        "inputs": 2034,
        "coverage_edges": 1523,
        "features": 4101,
        "corpus_inputs": 433,
        "memory_mb_max": 97,
    }
    assert native.figures_of(DONE) == wanted
    assert set(native.figures_of("==7==ERROR: AddressSanitizer: heap-buffer-overflow").values()) == {0}


def test_a_run_that_failed_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "RECORDED", tmp_path)
    row = {"target": "rows", **native.figures_of(DONE), "seconds": 4}
    assert native.record("rustc 1", 4, [{**row, "failures": 0}])
    assert not native.record("rustc 1", 4, [{**row, "failures": 0}, {**row, "failures": 1}])


def test_where_something_is_missing_a_sentence_says_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "cargo" else name)
    done = CliRunner().invoke(native.main, ["--seconds", "1"])
    assert done.exit_code == 1 and re.search("Error: cargo is not here: .* C\\+\\+", done.output)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    said = {"--version": "rustc 9.9.9\nhost: x86_64-mine\n", "--print": f"{tmp_path}\n"}
    monkeypatch.setattr(native, "_said", lambda _rustc, option, *_: said[option])
    done = CliRunner().invoke(native.main, ["--seconds", "1"])
    assert done.exit_code == 1 and "rustc 9.9.9 has no AddressSanitizer" in done.output
    (tmp_path / "librustc-x_rt.asan.a").touch()
    assert native.toolchain() == ("rustc 9.9.9", "x86_64-mine")
