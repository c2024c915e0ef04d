"""Signs outside the table's timeline that a pipeline has committed before."""

from __future__ import annotations

from typing import Protocol

from control_topic.messages import Offsets, SourcePartition
from control_topic.spelling import some
from lockstep.config import Config
from table.errors import Unavailable
from table.kinds import table_kind
from table.service.place import has_commits
from table.service.source_facts import SourceFacts

SHOWN_MAX = 3


class GroupOffsets(Protocol):
    """`lockstep.brokers.source_topics.SourceTopics` implements it."""

    def group_offsets(self, group: str, partitions: tuple[SourcePartition, ...]) -> Offsets: ...


def earlier_commits(config: Config, source: GroupOffsets, facts: SourceFacts) -> str:
    """Return the signs as one sentence part, empty if there are none.

    The consumer group has offsets only of committed transactions. A run notes next to the table that the
    pipeline has commits. Raises `Unavailable`, and what `group_offsets` raises.
    """
    signs = []
    if group := source.group_offsets(config.group_id, facts.partitions):
        offsets = some([f"{one}={group[one]}" for one in sorted(group)], shown_max=SHOWN_MAX)
        signs.append(f"consumer group {config.group_id} has committed offsets ({offsets})")
    notes = table_kind(config.table.format).notes(config.table.path, config.store_settings())
    try:
        noted = has_commits(notes, config.pipeline.id)
    except OSError as error:
        raise Unavailable(f"{notes.place()} cannot be read: {error.strerror or error}") from error
    if noted:
        signs.append(f"an earlier run has noted its commits in {notes.place()}")
    return "; ".join(signs)
