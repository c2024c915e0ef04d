"""JSON values to Arrow columns in one pass, in Rust: the Python side of `native/`.

The module is optional. It is compiled where the package is installed and cargo is at hand. Where it is
missing, Arrow and Python read (`participant.records.json.decoder`), which make the same rows of the same
records, several times slower; `lockstep validate` says which.

What becomes of a record is the strict decoder's to say, also where the native one reads. Whatever the native
one takes the strict one takes, and makes the same row of it: tests over random schemas and documents hold the
two against each other. What it does not take the strict one looks at: it puts into words why that is no row,
or makes a row of it after all, where the spelling is a rare one (`1e0000000001`, or what is nested a hundred
levels deep in a field that is not read).
"""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.json.decoder import BUFFER_BYTES_MAX, JsonDecoder
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch, Values
from table.schema import SchemaError, record_schema

INTERFACE = 1
"""The number in native/src/module.rs of what is passed between it and this module."""
AUTO, PLAIN, NATIVE = "auto", "plain", "native"
"""What `record.decoder` may say."""
NAME = "participant.records.json._native"


class NativeMissing(Exception):
    """The compiled module cannot be had, or not for this schema; the sentence says why."""


class NativeDecoder:
    """As `JsonDecoder`, several times faster. Not for several threads.

    `wide`: whether texts are looked at 16 bytes at a time. Raises `SchemaError` as `JsonDecoder` does, and
    `NativeMissing`.
    """

    def __init__(self, schema: pa.Schema, *, wide: bool = True) -> None:
        self._strict = JsonDecoder(schema)
        self._schema = record_schema(schema)
        try:
            self._native = native_module().Decoder(self._schema, wide)
        except ValueError as error:
            raise NativeMissing(str(error)) from None

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows or as rejects."""
        values = batch.values
        if len(values.data) > BUFFER_BYTES_MAX:
            return self._strict.decode(batch)  # which takes it in parts
        columns, places = self._native.decode(values.data, values.starts)
        table = pa.Table.from_batches([pa.record_batch(columns)], schema=self._schema)
        if not places:
            return Decoded(table=table)
        return self._with_refused(batch, table, np.frombuffer(places, dtype=np.int64))

    def _with_refused(self, batch: RawBatch, table: pa.Table, places: npt.NDArray[np.int64]) -> Decoded:
        """What the batch says, of which `table` has the rows of all records but those at `places`."""
        again = self._strict.decode(_records(batch, places))
        kept = np.delete(np.arange(len(batch), dtype=np.int64), places)
        if again.table.num_rows:
            found = places if again.kept is None else places[again.kept]
            order = np.argsort(np.concatenate([kept, found]), kind="stable")
            table = pa.concat_tables([table, again.table]).take(pa.array(order))
            kept = np.concatenate([kept, found])[order]
        rejects = again.rejects.at(places)
        if table.num_rows + len(rejects) != len(batch):
            raise AssertionError(
                f"{batch.partition}: {table.num_rows} rows and {len(rejects)} rejects of {len(batch)}"
            )
        return Decoded(table=table, kept=kept if rejects else None, rejects=rejects)


def _records(batch: RawBatch, places: npt.NDArray[np.int64]) -> RawBatch:
    """Those at these places, as far as a decoder of values needs them."""
    values: Values = batch.values if len(places) == len(batch) else batch.values.take(places)
    return RawBatch(
        partition=batch.partition,
        offsets=batch.offsets[places],
        timestamps_ms=batch.timestamps_ms[places],
        values=values,
    )


def row_decoder(schema: pa.Schema, wanted: str = AUTO) -> Decoder:
    """What reads values of this schema; `wanted` is `record.decoder` of the configuration.

    Raises `SchemaError` for a schema that cannot be read from JSON, or not by the decoder that is wanted.
    """
    if wanted == PLAIN:
        return JsonDecoder(schema)
    try:
        return NativeDecoder(schema)
    except NativeMissing as missing:
        if wanted == NATIVE:
            raise SchemaError(
                f'record.decoder = "native", but {missing}; install with cargo at hand, or write "auto"'
            ) from None
        return JsonDecoder(schema)


def missing(schema: pa.Schema) -> str:
    """Why values of this schema cannot be read natively; empty where they can. Raises `SchemaError`."""
    try:
        NativeDecoder(schema)
    except NativeMissing as error:
        return str(error)
    return ""


@cache
def native_module() -> ModuleType:
    """The compiled module. Raises `NativeMissing`."""
    try:
        module = importlib.import_module(NAME)
    except ImportError:
        raise NativeMissing(f"{NAME} was not compiled when Lockstep was installed") from None
    if getattr(module, "INTERFACE", 0) != INTERFACE:
        raise NativeMissing(f"{NAME} was compiled for another version: install Lockstep again")
    return module
