"""Catalogs in which engines find a table by its name: what is asked of them, whatever the table's kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

CALL_S = 30
"""The most that one call of a metastore takes; a catalog is brought up to date with some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSpec:
    """A table in a Hive metastore."""

    uris: str
    """`thrift://host:port`, several separated by commas."""
    database: str
    table: str
    path: str
    """Of the table's files."""


class Catalog(Protocol):
    """Used by one thread, which may be any. Raises `TableError`."""

    def sync(self) -> None:
        """Bring it up to date with the table's newest commit: the table, its columns, its table partitions.

        Asked again, it does what is missing.
        """

    def look(self) -> str:
        """That somebody answers, and what is there, for a person; nothing is changed."""
