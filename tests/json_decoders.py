"""The decoders of JSON, which promise the same: tests that hold for each are played with each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from participant.records.json.decoder import JsonDecoder
from participant.records.json.native import NativeDecoder
from participant.records.native import NativeMissing, native_module
from participant.records.port import Decoder

PLAIN, NATIVE, NARROW = "plain", "native", "native, a byte at a time"
DECODERS: Mapping[str, Callable[[pa.Schema], Decoder]] = {
    PLAIN: JsonDecoder,
    NATIVE: NativeDecoder,
    NARROW: lambda schema: NativeDecoder(schema, wide=False),
}


def compiled() -> bool:
    """Whether the native module is there; elsewhere its tests are skipped."""
    try:
        native_module()
    except NativeMissing:
        return False
    return True


def decoders() -> list[str]:
    """Those that can be had here, the plain one first."""
    return list(DECODERS) if compiled() else [PLAIN]


def skip_unless_there(name: str) -> None:
    if name not in decoders():
        pytest.skip("participant.records._native is not compiled here")
