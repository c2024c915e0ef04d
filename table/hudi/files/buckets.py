"""The bucket index: which of a table partition's buckets a record key belongs to.

It is `BucketIdentifier.getBucketId` of Hudi 1.2.0, for whole columns. A row in another bucket than Hudi's
would not be found by Hudi's own upserts: they would make a second one.

The bucket is Java's `List.hashCode` of some strings, without the sign, modulo the number of buckets. A key
without a comma or without a colon is the one string; also `id:7`, a complex key of one field. Any other, a
plain one as well, is taken apart as by `KeyGenUtils.extractRecordKeysByFields`: into the values of `f:v,g:w`,
where a colon begins a value if what is before it, from the last comma on, names a key field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.hudi.files.keys import EMPTY_FIELD, NULL_FIELD

Hashes = npt.NDArray[np.uint32]

_ROWS_AT_ONCE = 1 << 15
"""Few enough for the processor's caches."""
_WIDTH_MAX = 64
"""Units of strings that are all of one width, as ids mostly are: hashed a unit of all at a time."""
_BASE = np.uint32(31)
_INVERSE = np.uint32(pow(31, -1, 2**32))
_UNSIGNED = np.uint32(0x7FFFFFFF)


def buckets(keys: pa.ChunkedArray, key_fields: Sequence[str], bucket_count: int) -> npt.NDArray[np.int32]:
    """The bucket of each key, from 0 to `bucket_count` - 1.

    `keys` are strings as `table.hudi.files.keys` spells them, `key_fields` the table's key fields in their
    order, which are also the fields of its index. Raises `ValueError` for a null key or no bucket.

    Hudi 1.2.0 never returns from some plain keys, such as `Smith, J: 10:30`: it meets a name that is no key
    field, with a colon later on but no comma between. Such a name ends the search here: the values before it
    count, and where there are none the whole key does, as elsewhere.
    """
    if bucket_count < 1:
        raise ValueError(f"{bucket_count} buckets: there must be one at least")
    if keys.null_count:
        raise ValueError("a null key has no bucket")
    found = [_list_hashes(part, key_fields) for chunk in keys.chunks for part in _parts(chunk)]
    hashes = np.concatenate(found) if found else np.empty(0, dtype=np.uint32)
    return ((hashes & _UNSIGNED) % np.uint32(bucket_count)).astype(np.int32)


def _parts(chunk: pa.StringArray) -> Iterator[pa.StringArray]:
    return (chunk.slice(start, _ROWS_AT_ONCE) for start in range(0, len(chunk), _ROWS_AT_ONCE))


def _list_hashes(keys: pa.StringArray, key_fields: Sequence[str]) -> Hashes:
    """`List.hashCode` for each key."""
    hashes = _BASE + _string_hashes(keys)
    taken_apart = pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":"))
    if pc.any(taken_apart).as_py():
        rows = np.flatnonzero(taken_apart.to_numpy(zero_copy_only=False))
        hashes[rows] = _hashes_of_values(keys.take(pa.array(rows)), key_fields)
    return hashes


def _hashes_of_values(keys: pa.StringArray, key_fields: Sequence[str]) -> Hashes:
    """The same for keys with a comma and a colon: all at once that have no colons but those after names."""
    if not any(key_fields):
        return _hashes_of_odd_keys(keys, key_fields)
    groups = (f"{re.escape(name)}:(?P<v{n}>[^:]*)" for n, name in enumerate(key_fields))
    matched = pc.extract_regex(keys, f"^{','.join(groups)}$")
    hashes = np.ones(len(keys), dtype=np.uint32)
    for column in matched.flatten():
        values = column.fill_null("")
        blank = pc.is_in(values, pa.array([NULL_FIELD, EMPTY_FIELD])).to_numpy(zero_copy_only=False)
        hashes = _BASE * hashes + np.where(blank, np.uint32(0), _string_hashes(values))
    odd = matched.is_null()
    hashes[odd.to_numpy(zero_copy_only=False)] = _hashes_of_odd_keys(keys.filter(odd), key_fields)
    return hashes


# --- strings, a column at a time ----------------------------------------------------------------------


def _string_hashes(strings: pa.StringArray) -> Hashes:
    """`String.hashCode` of each: a polynomial in 31 over its UTF-16 units, modulo 2**32.

    31 has an inverse there. With the sums S of unit[i] * 31**-(i+1) over all strings, one after another, the
    hash of the units from s to e is (S[e] - S[s]) * 31**e.
    """
    if not len(strings):
        return np.empty(0, dtype=np.uint32)
    _, offsets, data = strings.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[strings.offset : strings.offset + len(strings) + 1]
    octets = np.frombuffer(data or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    ends = ends - ends[0]
    units: npt.NDArray[np.uint8] | npt.NDArray[np.uint16] = octets
    if octets.size and octets.max() >= 0x80:
        units, ends = _utf16(octets, ends)
    width = units.size // len(strings)
    if width <= _WIDTH_MAX and (np.diff(ends) == width).all():
        return _of_one_width(units.reshape(len(strings), width))
    sums = np.zeros(units.size + 1, dtype=np.uint32)
    np.cumsum(_powers(_INVERSE, units.size)[1:] * units, dtype=np.uint32, out=sums[1:])
    stop = ends[1:]
    hashes: Hashes = (sums[stop] - sums[ends[:-1]]) * _powers(_BASE, units.size)[stop]
    return hashes


def _of_one_width(strings: npt.NDArray[np.uint8] | npt.NDArray[np.uint16]) -> Hashes:
    """The same of strings that have as many units each, a row a string: as Java has it, unit by unit."""
    hashes = np.zeros(len(strings), dtype=np.uint32)
    for unit in strings.T:
        hashes *= _BASE
        hashes += unit
    return hashes


def _powers(base: np.uint32, count: int) -> Hashes:
    """base**0 to base**count."""
    powers = np.full(count + 1, base, dtype=np.uint32)
    powers[0] = 1
    return np.multiply.accumulate(powers, out=powers)


def _utf16(
    octets: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int32]]:
    """The same text in UTF-16 units. A character of four octets is two units, any other is one."""
    units = np.frombuffer(octets.tobytes().decode().encode("utf-16-le"), dtype="<u2")
    until = np.zeros(octets.size + 1, dtype=np.int32)
    np.cumsum((octets & 0xC0 != 0x80).astype(np.int8) + (octets >= 0xF0), dtype=np.int32, out=until[1:])
    return units, until[ends]


# --- one odd key at a time ----------------------------------------------------------------------------


def _hashes_of_odd_keys(keys: pa.StringArray, key_fields: Sequence[str]) -> Hashes:
    lists = [values_of(key, key_fields) for key in keys.to_pylist()]
    values = pa.array([value for values in lists for value in values], pa.string())
    hashes = iter(_string_hashes(values).tolist())
    return np.array([_folded(islice(hashes, len(values))) for values in lists], dtype=np.uint32)


def _folded(hashes: Iterable[int]) -> int:
    folded = 1
    for value in hashes:
        folded = (31 * folded + value) & 0xFFFFFFFF
    return folded


def values_of(key: str, key_fields: Sequence[str]) -> list[str]:
    """The strings that are hashed for a key with a comma and a colon; null is "" here, which hashes alike."""
    values: list[str] = []
    any_name = not any(key_fields)
    at = 0
    while at < len(key):
        colon = key.index(":", at)
        comma = _comma_of_next_name(key, colon)
        if any_name or key[at:colon] in key_fields:
            value = key[colon + 1 : comma]
            values.append("" if value in (NULL_FIELD, EMPTY_FIELD) else value)
        at = comma + 1
    return values or [key]


def _comma_of_next_name(key: str, colon: int) -> int:
    """Where the value after a colon ends: the last comma before the next name's colon, which is the first one
    after a comma; the key's end if there is none.
    """
    comma = key.find(",", colon)
    later = key.find(":", comma) if comma >= 0 else -1
    return key.rfind(",", comma, later) if later >= 0 else len(key)
