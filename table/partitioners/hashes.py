"""Buckets of values, as Spark SQL has them: `pmod(hash(column), n)`. Pure.

That is Murmur3 of 32 bits with the seed 42, as `org.apache.spark.unsafe.hash.Murmur3_x86_32` spells it: of an
INT one block, of a BIGINT two, the low one first; of a text blocks of four bytes, then each byte that is left
as a block of its own, with its sign. Null is the seed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint32]

SEED = 42
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_M, _F1, _F2 = np.uint32(0xE6546B64), np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


def buckets(column: pa.Array, count: int) -> npt.NDArray[np.int32]:
    """From 0 to `count` - 1, of a STRING, INT or BIGINT column."""
    signed = spark_hash(column).view(np.int32).astype(np.int64)
    return np.mod(signed, count).astype(np.int32)


def spark_hash(column: pa.Array) -> Hashes:
    """Spark's `hash(column)`."""
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_string(column.type):
        made = _of_texts(column.fill_null("") if null is not None else column)
    else:
        numbers = (column.fill_null(0) if null is not None else column).to_numpy()
        made = _of_longs(numbers) if numbers.dtype == np.int64 else _of_ints(numbers)
    if null is not None:
        made[null] = SEED
    return made


def _of_ints(numbers: npt.NDArray[np.int32]) -> Hashes:
    return _ended(_mixed(_seeds(len(numbers)), numbers.view(np.uint32)), np.uint32(4))


def _of_longs(numbers: npt.NDArray[np.int64]) -> Hashes:
    unsigned = numbers.view(np.uint64)
    low = (unsigned & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (unsigned >> np.uint64(32)).astype(np.uint32)
    return _ended(_mixed(_mixed(_seeds(len(numbers)), low), high), np.uint32(8))


def _of_texts(texts: pa.StringArray) -> Hashes:
    """Distinct ones only, of which those that are long enough for a block are mixed together."""
    found = texts.dictionary_encode()
    if not len(found.dictionary):
        return _seeds(len(texts))
    _, ends, data = found.dictionary.buffers()
    offset, count = found.dictionary.offset, len(found.dictionary)
    edges = np.frombuffer(ends, dtype=np.int32)[offset : offset + count + 1].astype(np.int64)
    octets = np.frombuffer(data or b"", dtype=np.uint8)
    sizes = np.diff(edges)
    hashes = _seeds(count)
    for block in range(int(sizes.max()) // 4):
        rows = np.flatnonzero(sizes >= 4 * (block + 1))
        at = edges[rows] + 4 * block
        words = np.zeros(len(rows), dtype=np.uint32)
        for place in range(4):
            words |= octets[at + place].astype(np.uint32) << np.uint32(8 * place)
        hashes[rows] = _mixed(hashes[rows], words)
    for place in range(3):
        rows = np.flatnonzero(sizes % 4 > place)
        at = edges[rows] + sizes[rows] // 4 * 4 + place
        signed = octets[at].view(np.int8).astype(np.int32).view(np.uint32)
        hashes[rows] = _mixed(hashes[rows], signed)
    hashes = _ended(hashes, sizes.astype(np.uint32))
    of_rows: Hashes = hashes[found.indices.to_numpy()]
    return of_rows


def _seeds(count: int) -> Hashes:
    return np.full(count, SEED, dtype=np.uint32)


def _mixed(hashes: Hashes, words: Hashes) -> Hashes:
    words = _rotated(words * _C1, 15) * _C2
    return _rotated(hashes ^ words, 13) * np.uint32(5) + _M


def _ended(hashes: Hashes, sizes: Hashes | np.uint32) -> Hashes:
    hashes = hashes ^ sizes
    hashes = (hashes ^ (hashes >> np.uint32(16))) * _F1
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _F2
    made: Hashes = hashes ^ (hashes >> np.uint32(16))
    return made


def _rotated(words: Hashes, by: int) -> Hashes:
    made: Hashes = (words << np.uint32(by)) | (words >> np.uint32(32 - by))
    return made
