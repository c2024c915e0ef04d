"""The decoders of Avro, which promise the same: tests that hold for each are played with each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from participant.records.avro.decoder import AvroDecoder
from participant.records.avro.native import NativeAvro
from participant.records.by_schema.one_by_one import Schemas
from participant.records.port import Decoder
from tests.json_decoders import compiled

PLAIN, NATIVE = "plain", "native"
DECODERS: Mapping[str, Callable[[pa.Schema, str, Schemas], Decoder]] = {
    PLAIN: AvroDecoder,
    NATIVE: NativeAvro,
}


def decoders() -> list[str]:
    """Those that can be had here, the plain one first."""
    return list(DECODERS) if compiled() else [PLAIN]
