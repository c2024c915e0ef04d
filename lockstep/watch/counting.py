"""What a table is made of, counted now and then. That lists all its files: it is done seldom, up to a bound,
and only where something has been committed since.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lockstep.config import Config
from table.census import Census, TableCensus
from table.instants import MissingTable
from table.kinds import table_kind

FILES_MAX = 200_000
"""So many are listed: 200 requests to S3."""
COUNT_MAX_S = 120.0


class FileCounts:
    """Of one table. Not for several threads. `is_over`: whether nobody wants to know any more."""

    def __init__(self, config: Config, *, is_over: Callable[[], bool]) -> None:
        self._config = config
        self._is_over = is_over
        self._counter: TableCensus | None = None
        self._newest: Census | None = None

    def look(self) -> Census | None:
        """The same as before where nothing has been committed since; None where there is no table.

        Raises as `table.port.TableReader` does.
        """
        if self._counter is None:
            self._counter = table_kind(self._config.table.format).census(self._config.table_spec())
        until_s = time.monotonic() + COUNT_MAX_S

        def enough() -> bool:
            return self._is_over() or time.monotonic() > until_s

        unless = self._newest.as_of if self._newest is not None else None
        try:
            taken = self._counter.take(unless=unless, files_max=FILES_MAX, enough=enough)
        except MissingTable:
            self._counter = self._newest = None  # it may be made anew
            return None
        if taken is not None and not self._is_over():
            self._newest = taken
        return self._newest
