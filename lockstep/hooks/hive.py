"""A metastore is brought up to date with the newest commit: not for each, nor more often than asked for."""

from __future__ import annotations

from lockstep.hooks.commits import Commit
from lockstep.hooks.port import Ending, SinkError
from table.catalog import CALL_S, Catalog, CatalogSpec
from table.errors import TableError

CALLS = 6
"""So many calls of a metastore that does not answer may one sync take before that is an alarm."""


class HiveSink:
    """See `lockstep.hooks.port.Sink`."""

    name = "hive"
    newest_only = True
    patience_s = float(CALLS * CALL_S)

    def __init__(self, catalog: Catalog, spec: CatalogSpec, *, every_ms: int) -> None:
        self._catalog = catalog
        self.every_ms = every_ms
        self.place = f"{spec.database}.{spec.table} at {spec.uris}"

    def begin(self) -> None:
        """The first commit brings all along."""

    def deliver(self, commit: Commit) -> None:
        """The table as it is now, which that commit is in."""
        try:
            self._catalog.sync()
        except TableError as error:
            raise SinkError(str(error)) from error

    def end(self, ending: Ending) -> None:
        """Nothing is said of it."""

    def close(self) -> None:
        """Each sync has a connection of its own."""
