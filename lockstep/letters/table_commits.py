"""Commits of the pipeline, read from the table's whole timeline, archived instants included."""

from __future__ import annotations

from lockstep.config import Config
from lockstep.errors import Failed
from lockstep.letters.committed_rejects import CommittedRejects
from table.instants import MissingTable
from table.kinds import table_kind


def read_committed(config: Config) -> CommittedRejects:
    """Return the rejects of all commits. Raises `Failed`, and `TableError` where the table cannot be read."""
    committed = CommittedRejects(config.source.topics)
    try:
        reader = table_kind(config.table.format).reader(config.table.path, config.store_settings())
        for instant in reader.completed():
            state = instant.state
            if state is not None and state.pipeline == config.pipeline.id:
                committed.add(state, reader.time_ms(instant.completed))
    except MissingTable as error:
        raise Failed(
            f"{error} Only a commit proves that a record was rejected: nothing was sent. Correct table.path."
        ) from error
    return committed
