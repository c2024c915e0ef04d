"""Records of Protobuf, whole or damaged: both decoders make the same of each."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pyarrow as pa

from participant.records.protobuf.decoder import ProtobufDecoder
from participant.records.protobuf.format import GivenFiles
from participant.records.protobuf.native import NativeProtobuf
from participant.records.raw import Values
from table.schema import parse_ddl
from tests.fuzz.avro_native import fates
from tests.fuzz.protobuf import DDL, SOURCE, batch_of, make_batch
from tests.fuzz.target import Target, require
from tests.json_decoders import compiled as module_compiled
from tests.proto_files import compiled, encoded

Case = tuple[list[str], list[bytes | None]]
"""Columns, values."""
WHOLE = parse_ddl(DDL)


def make_case(random: Random, size: int) -> Case:
    """All columns, or some of them: then the others are read over."""
    names = list(WHOLE.names)
    if random.random() < 0.7:
        names = random.sample(names, random.randint(1, len(names)))
    return names, make_batch(random, size)


@cache
def _files() -> GivenFiles:
    return GivenFiles(encoded(compiled({"t.proto": SOURCE})))


def check_case(case: Case) -> int:
    """Both decoders over the batch; and the native one without the plain one's help."""
    names, values = case
    if not module_compiled():
        return len(values)
    schema = pa.schema([WHOLE.field(name) for name in names])
    native, plain = NativeProtobuf(schema, "t.R", _files()), ProtobufDecoder(schema, "t.R", _files())
    batch = batch_of(values)
    found, wanted = native.decode(batch), plain.decode(batch)
    found.table.validate(full=True)
    require(found.table.schema == wanted.table.schema, "the columns are not the schema's", names)
    pairs = zip(fates(found), fates(wanted), strict=True)
    strange = [at for at, (mine, theirs) in enumerate(pairs) if mine != theirs]
    require(not strange, "another fate than by the plain decoder", [values[at] for at in strange[:3]])
    held = Values.of(values)
    (_, places), _ = native._native.decode(held.data, held.starts)
    left = set(np.frombuffer(places, dtype=np.int64).tolist())
    require(left >= set(wanted.rejects.by_place()), "a row of what is none", names)
    return len(values)


TARGETS = (
    Target(
        name="protobuf, natively",
        promise="the native decoder of Protobuf and the plain one make the same of every record",
        make=make_case,
        check=check_case,
        size=100,
        seeds=30,
    ),
)
