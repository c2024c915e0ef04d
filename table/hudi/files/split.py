"""One pass that divides rows among files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def split(rows: pa.Table, codes: npt.NDArray[np.integer], count: int) -> Iterator[tuple[int, pa.Table]]:
    """(code, the rows that have it), in their order; codes are below `count`, those of no row are left out.

    Each part is a copy, not a view: a small one must not keep the memory of the batch that it came in.
    """
    if count == 1:
        yield 0, rows
        return
    rows = rows.combine_chunks()  # once, not in every `take`
    codes = codes.astype(np.min_scalar_type(count))
    order = np.argsort(codes, kind="stable")  # of so small numbers a radix sort
    ends = np.cumsum(np.bincount(codes, minlength=count))
    start = 0
    for code, end in enumerate(ends.tolist()):
        if end > start:
            yield code, rows.take(pa.array(order[start:end]))
        start = end
