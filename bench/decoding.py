"""`python -m bench.decoding`: what it takes to decode a record of Avro, without a broker and a table.

The records of a workload, as Avro by the schema that its columns make, are decoded by each candidate in
turns. A figure is CPU, of all threads, and the least of the rounds: the machine may have other things to do.
What a candidate makes of the records is compared with what they were made of, before anything is measured.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import fastavro
import numpy as np
import pyarrow as pa

from bench.place import sentences, typed, wide_console
from bench.workloads import WORKLOADS
from control_topic.messages import SourcePartition
from lockstep.errors import Failed
from participant.records.avro.decoder import AvroDecoder
from participant.records.avro.native import NativeAvro
from participant.records.avro.schemas import GivenSchemas
from participant.records.json.native import NativeDecoder
from participant.records.native import NativeMissing
from participant.records.port import Decoder
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests import evidence

BATCH_RECORDS = 20_000
OURS = "native"
MEASURED = ("control_topic", "participant", "native", "bench")
AVRO: Mapping[pa.DataType, str] = {
    pa.string(): "string",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
}


def avro_type(kind: pa.DataType, name: str, *, nullable: bool) -> Any:
    """The type of Avro that becomes such a column; `name` is for types that want one."""
    if pa.types.is_struct(kind):
        made: Any = avro_record(list(kind), name, nullable=nullable)
    elif pa.types.is_list(kind):
        made = {"type": "array", "items": avro_type(kind.value_type, f"{name}_item", nullable=False)}
    else:
        made = AVRO[kind]
    return ["null", made] if nullable else made


def avro_record(fields: Sequence[pa.Field], name: str, *, nullable: bool) -> dict[str, Any]:
    """A record with these fields; `nullable`: each a union with null."""
    listed = [
        {"name": one.name, "type": avro_type(one.type, f"{name}_{one.name}", nullable=nullable)}
        for one in fields
    ]
    return {"type": "record", "name": name, "fields": listed}


def batch_of(values: Sequence[bytes]) -> RawBatch:
    offsets = np.arange(len(values), dtype=np.int64)
    return RawBatch(
        partition=SourcePartition("events", 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
    )


def candidates(
    workload: str, *, nullable: bool, records: int
) -> tuple[dict[str, Callable[[], object]], float, bool]:
    """Each decodes `records` records; how many bytes a datum has; whether all make the same rows of them."""
    schema = parse_ddl(WORKLOADS[workload].schema)
    written = avro_record(list(schema), "row", nullable=nullable)
    parsed = fastavro.parse_schema(written)
    texts = [WORKLOADS[workload].value(number) for number in range(records)]
    rows = [json.loads(text) for text in texts]
    data = [_written(parsed, row) for row in rows]
    given = GivenSchemas(json.dumps(written), by_fingerprint=False)
    batch, as_json = batch_of(data), batch_of(texts)
    decoders: Mapping[str, tuple[Decoder, RawBatch]] = {
        OURS: (NativeAvro(schema, "none", given), batch),
        "plain": (AvroDecoder(schema, "none", given), batch),
        "json": (NativeDecoder(schema), as_json),
    }
    same = all(one.decode(given_batch).table.to_pylist() == rows for one, given_batch in decoders.values())

    def fastavro_alone() -> object:
        return [fastavro.schemaless_reader(io.BytesIO(one), parsed) for one in data]

    runs: dict[str, Callable[[], object]] = {
        name: (lambda one=one, given_batch=given_batch: one.decode(given_batch))
        for name, (one, given_batch) in decoders.items()
    }
    return (
        {**runs, "fastavro": fastavro_alone},
        sum(map(len, data)) / records,
        same and fastavro_alone() == rows,
    )


def _written(parsed: Any, row: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, dict(row))
    return out.getvalue()


def least_us(runs: Mapping[str, Callable[[], object]], *, records: int, rounds: int) -> dict[str, float]:
    """CPU a record of each, in turns."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.process_time_ns()
            run()
            found[name].append((time.process_time_ns() - began) / 1_000 / records)
    return {name: min(times) for name, times in found.items()}


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--records", type=click.IntRange(min=100), default=BATCH_RECORDS, show_default=True)
def main(rounds: int, records: int) -> None:
    """Avro decoded natively, by the plain decoder, by fastavro alone; figures as bench-decoding.json."""
    with sentences():
        figures, passed = [], True
        try:
            for workload, nullable in (("narrow", False), ("narrow", True), ("wide", False), ("wide", True)):
                runs, size_bytes, same = candidates(workload, nullable=nullable, records=records)
                found = least_us(runs, records=records, rounds=rounds)
                passed &= same
                figures.append(
                    {
                        "workload": workload,
                        "nullable": nullable,
                        "value_bytes": round(size_bytes, 1),
                        "cpu_us_per_record": {name: round(one, 4) for name, one in found.items()},
                        "times": {name: round(one / found[OURS], 1) for name, one in found.items()},
                    }
                )
        except NativeMissing as missing:
            raise Failed(f"There is nothing to measure: {missing}.") from None
        path = evidence.write(
            "bench-decoding",
            command=typed("bench.decoding"),
            passed=passed,
            figures={"records": records, "rounds": rounds, "runs": figures},
            of=MEASURED,
        )
        wide_console().print(path.read_text(encoding="utf-8"), highlight=False)
        if not passed:
            raise Failed(
                f"The candidates make different rows of the same records. The figures are in {path}."
            )


if __name__ == "__main__":
    main()
