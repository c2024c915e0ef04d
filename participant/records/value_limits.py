"""Limits on the values that records become: an item that takes one byte may become a row of many columns.

A value is what takes a place in a column: a scalar, a list or a map one, a struct as many as its fields have.
Counted are the items of arrays and the entries of maps, those included that are null or not set, and of
Protobuf the fields of each message. A name that an enum's number stands for counts as one value for each
`NAME_BYTES` bytes. A record in which each value takes a byte is never refused.

The native decoders count the same (`native/src/budget.rs`).
"""

from __future__ import annotations

import pyarrow as pa

VALUES_MAX = 1_000_000
"""Values of one record; a longer record may have one for each of its bytes."""
BATCH_VALUES_MAX = 4_000_000
"""Values of a batch of several records. More of them are decoded in parts (`BatchTooLarge`)."""
NAME_BYTES = 16


def places(kind: pa.DataType) -> int:
    """Return the number of places that a value of this type takes, whatever it holds."""
    if pa.types.is_struct(kind):
        return max(1, sum(places(field.type) for field in kind.fields))
    return 1


def values_max(size_bytes: int) -> int:
    """Return the limit for a record of this size."""
    return max(VALUES_MAX, size_bytes)


def too_many(limit: int) -> str:
    """Return the reason for which such a record is rejected."""
    return f"more than {limit:,} values, with those that are null or not set in its items"
