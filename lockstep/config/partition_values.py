"""The kinds of values by which the configuration says a row's table partition: each checks itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from lockstep.config.values import check_names

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
    return check_names(value)


PartitionBy = Annotated[tuple[str, ...], BeforeValidator(_items), AfterValidator(_partition_by)]
