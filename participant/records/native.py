"""What is compiled of reading records, in Rust: the Python side of `native/`, as far as formats share it.

The module is optional. It is compiled where the package is installed and cargo is at hand. Where it is
missing, a format's plain decoder reads, which makes the same rows of the same records, several times slower;
`lockstep validate` says which.

What becomes of a record is the plain decoder's to say, also where the native one reads. Whatever the native
one takes the plain one takes, and makes the same row of it: tests over random schemas and records hold the
two against each other. What it does not take the plain one looks at: it puts into words why that is no row,
or makes a row of it after all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.errors import BatchTooLarge
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch, Values
from table.schema import SchemaError

INTERFACE = 5
"""The number in native/src/module.rs of what is passed between it and this module."""
AUTO, PLAIN, NATIVE = "auto", "plain", "native"
"""What `record.decoder` may say."""
NAME = "participant.records._native"
BATCH_BYTES_MAX = 512 * 1024 * 1024
"""Of values that are read natively at once: where a text ends is said in 32 bits. Of more, each plain decoder
reads a part at a time."""

N = TypeVar("N", bound=Decoder)
P = TypeVar("P", bound=Decoder)


class NativeMissing(Exception):
    """The compiled module cannot be had, or not for this schema; the sentence says why."""


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


def limited(decode: Callable[..., Any], *given: Any) -> Any:
    """What a native decoder answers. Raises `BatchTooLarge` where it counts too many values."""
    try:
        return decode(*given)
    except native_module().TooLarge:
        raise BatchTooLarge from None


def chosen(wanted: str, native: Callable[[], N], plain: Callable[[], P]) -> N | P:
    """The decoder that `record.decoder` says. Raises `SchemaError` where that one cannot be had."""
    if wanted == PLAIN:
        return plain()
    try:
        return native()
    except NativeMissing as missing:
        if wanted == NATIVE:
            raise SchemaError(
                f'record.decoder = "native", but {missing}; install with cargo at hand, or write "auto"'
            ) from None
        return plain()


def why_plain(wanted: str, native: Callable[[], object]) -> str:
    """Why the plain decoder reads, for people; empty where the native one does. Raises `SchemaError`."""
    if wanted == PLAIN:
        return "the configuration asks for it"
    try:
        native()
    except NativeMissing as missing:
        return str(missing)
    return ""


def with_refused(
    batch: RawBatch, table: pa.Table, places: npt.NDArray[np.int64], plain: Decoder, *, headers: bool
) -> Decoded:
    """What the batch says, of which `table` has the rows of all records but those at `places`.

    `headers`: whether `plain` needs the records' headers. Where it does not go through all of those records,
    it is asked about the whole batch, since what stands behind the one where it ended may not be used.
    """
    again = plain.decode(_records(batch, places, headers=headers))
    if again.table.num_rows + len(again.rejects) != len(places):
        return plain.decode(batch)
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


def _records(batch: RawBatch, places: npt.NDArray[np.int64], *, headers: bool) -> RawBatch:
    """Those at these places, as far as a decoder of values needs them."""
    everything = len(places) == len(batch)
    values: Values = batch.values if everything else batch.values.take(places)
    named = batch.headers if headers else None
    return RawBatch(
        partition=batch.partition,
        offsets=batch.offsets[places],
        timestamps_ms=batch.timestamps_ms[places],
        values=values,
        headers=named.take(places) if named is not None and not everything else named,
    )
