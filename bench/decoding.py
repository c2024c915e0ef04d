"""`python -m bench.decoding`: what it takes to decode a record of Avro or Protobuf, without broker and table.

The records of a workload, in Avro or Protobuf by the schema that its columns make, are decoded by each
candidate in turns. A figure is CPU, of all threads, and the least of the rounds: the machine may have other
things to do. What a candidate makes of the records is compared with what they were made of beforehand.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
import fastavro
import numpy as np
import pyarrow as pa

from bench.encodings import FIRST_MESSAGE, FRAME, PROTOBUF, message_class
from bench.place import sentences, typed, wide_console
from bench.workloads import WORKLOADS
from control_topic.messages import SourcePartition
from lockstep.errors import Failed
from participant.records.avro.decoder import AvroDecoder
from participant.records.avro.native import NativeAvro
from participant.records.avro.schemas import GivenSchemas
from participant.records.by_schema.framing import SchemaKey
from participant.records.json.native import NativeDecoder
from participant.records.native import NativeMissing
from participant.records.port import Decoder
from participant.records.protobuf.decoder import ProtobufDecoder
from participant.records.protobuf.native import NativeProtobuf
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Each of `runs` decodes the same records."""

    title: str
    value_bytes: float
    runs: Mapping[str, Callable[[], object]]
    same: bool
    """Whether all make the same rows of them."""


def case_of(title: str, workload: str, records: int, form: Callable[[pa.Schema], Form]) -> Case:
    """Of a workload's rows in a form."""
    schema = parse_ddl(WORKLOADS[workload].schema)
    made = form(schema)
    texts = [WORKLOADS[workload].value(number) for number in range(records)]
    rows = [json.loads(text) for text in texts]
    data = [made.written(row) for row in rows]
    batch, as_json = batch_of(data), batch_of(texts)
    decoders: Mapping[str, tuple[Decoder, RawBatch]] = {
        OURS: (made.native, batch),
        "plain": (made.plain, batch),
        "json": (NativeDecoder(schema), as_json),
    }
    same = all(one.decode(given).table.to_pylist() == rows for one, given in decoders.values())
    runs: dict[str, Callable[[], object]] = {
        name: (lambda one=one, given=given: one.decode(given)) for name, (one, given) in decoders.items()
    }
    runs["library"] = lambda: [made.library(one) for one in data]
    return Case(title=title, value_bytes=sum(map(len, data)) / records, runs=runs, same=same)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How rows are spelled, and who reads them."""

    written: Callable[[Mapping[str, Any]], bytes]
    native: Decoder
    plain: Decoder
    library: Callable[[bytes], object]
    """Decodes a value into objects of its own, and no further."""


def as_avro(schema: pa.Schema, *, nullable: bool = False) -> Form:
    """Without framing."""
    record = avro_record(list(schema), "row", nullable=nullable)
    parsed = fastavro.parse_schema(record)
    given = GivenSchemas(json.dumps(record), by_fingerprint=False)
    return Form(
        written=lambda row: _written(parsed, row),
        native=NativeAvro(schema, "none", given),
        plain=AvroDecoder(schema, "none", given),
        library=lambda value: fastavro.schemaless_reader(io.BytesIO(value), parsed),
    )


class _Told:
    """The one schema, whatever its id."""

    def find(self, _key: SchemaKey) -> tuple[str, ...]:
        return (f"{PROTOBUF.schema} ",)


def as_protobuf(schema: pa.Schema) -> Form:
    """As Confluent's serializer frames it."""
    behind = len(FRAME + FIRST_MESSAGE)
    message = message_class()
    return Form(
        written=PROTOBUF.encoded,
        native=NativeProtobuf(schema, "", _Told()),
        plain=ProtobufDecoder(schema, "", _Told()),
        library=lambda value: message.FromString(value[behind:]),
    )


CASES: Sequence[tuple[str, str, Callable[[pa.Schema], Form]]] = (
    ("Avro, narrow", "narrow", as_avro),
    ("Avro, narrow, each field or null", "narrow", partial(as_avro, nullable=True)),
    ("Avro, wide", "wide", as_avro),
    ("Avro, wide, each field or null", "wide", partial(as_avro, nullable=True)),
    ("Protobuf, narrow", "narrow", as_protobuf),
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
    """Avro and Protobuf, natively, plainly, by their libraries; figures as bench-decoding.json."""
    with sentences():
        figures, passed = [], True
        try:
            for title, workload, form in CASES:
                case = case_of(title, workload, records, form)
                found = least_us(case.runs, records=records, rounds=rounds)
                passed &= case.same
                figures.append(
                    {
                        "title": title,
                        "value_bytes": round(case.value_bytes, 1),
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
