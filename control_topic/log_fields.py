"""What a log line is about, beside its words.

Told by `extra={"instant": …}` where it is logged, or by `about(…)` around all that is logged while something
is done. Lines for people leave it out: their words say it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

FIELDS = ("epoch", "transaction", "instant", "source_partition", "offset")
"""What a line may be about. Numbers, and text; everything else of a log record stays out of JSON."""

_about: ContextVar[Mapping[str, object]] = ContextVar("about", default=MappingProxyType({}))


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """What is logged inside, by this thread, is about these, but for what a line says of itself."""
    token = _about.set({**_about.get(), **fields})
    try:
        yield
    finally:
        _about.reset(token)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Name and value of each of `FIELDS` that is known; numbers stay numbers."""
    around = _about.get()
    found = {name: getattr(record, name, around.get(name)) for name in FIELDS}
    known = {name: value for name, value in found.items() if value is not None and value != ""}
    return {name: value if isinstance(value, int) else str(value) for name, value in known.items()}
