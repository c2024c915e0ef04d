"""The kinds of values by which the configuration says a row's table partition: each checks itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from table.partitioners.expressions import TermError, parsed

FIELDS_MAX = 8
"""Folders within folders."""


def _items(value: object) -> object:
    """One is as good as a list of one."""
    if isinstance(value, str):
        return (value.strip(),) if value.strip() else ()
    return tuple(value) if isinstance(value, list) else value


def _partition_by(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(value) > FIELDS_MAX:
        raise ValueError(f"{len(value)} fields, at most {FIELDS_MAX} are folders within each other")
    try:
        parsed(value)
    except TermError as error:
        raise ValueError(str(error)) from error
    return value


PartitionBy = Annotated[tuple[str, ...], BeforeValidator(_items), AfterValidator(_partition_by)]
