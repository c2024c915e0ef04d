"""Counts a Hudi table: the timeline first, then a listing, so that what is complete is there to be met.

Of each instant the metadata is read once. What cleaning removes meanwhile was replaced before; of what is
completed meanwhile nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from table.census import Census
from table.hudi.census.columns import SchemaHistory
from table.hudi.census.files import Known, count
from table.hudi.layout import META_FOLDER
from table.hudi.properties import small_file_bytes
from table.hudi.reader.archive import METADATA_ACTIONS
from table.hudi.reader.stored import unavailable
from table.hudi.reader.timeline import Finished, Timeline, schema_in
from table.port import TableSpec

REPLACING = "replacecommit"

Groups = frozenset[tuple[str, str]]
"""Table partition and id of file groups."""


class HudiCensus:
    """See `table.census.TableCensus`."""

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._schemas = SchemaHistory({*spec.key_fields, spec.ordering_field})
        self._heard = ("", "")  # of the newest instant whose schema is known
        self._replaced: dict[Finished, Groups] = {}

    def take(self, *, unless: str | None, files_max: int, enough: Callable[[], bool]) -> Census | None:
        timeline = Timeline(self._spec.path, self._spec.storage)
        finished, pending = timeline.active()
        as_of = finished[0].file if finished else ""
        if as_of == unless:
            return None
        self._read(timeline, finished)
        known = known_of(finished, pending, frozenset().union(*self._replaced.values()))
        try:
            files = count(
                timeline.store.sizes(leaving_out=(META_FOLDER,)),
                known,
                small_below_bytes=small_file_bytes(self._spec),
                files_max=files_max,
                enough=enough,
            )
        except OSError as error:
            raise unavailable(timeline.store, "", error) from error
        return Census(as_of=as_of, files=files, schema=self._schemas.told())

    def _read(self, timeline: Timeline, finished: Sequence[Finished]) -> None:
        """What is new of commits, in the order in which they were completed. What is archived is forgotten:
        its replaced groups were cleaned before.
        """
        there = set(finished)
        self._replaced = {one: groups for one, groups in self._replaced.items() if one in there}
        wanted = (
            one
            for one in reversed(finished)
            if self._is_new(one) or (one.action == REPLACING and one not in self._replaced)
        )
        for one, metadata in timeline.metadata_of(wanted):
            with timeline.decoding(one.requested, one.action):
                if one.action == REPLACING:
                    self._replaced[one] = replaced_groups(metadata)
                schema = schema_in(metadata)
                if schema and self._is_new(one):
                    self._schemas.hear(one.requested, timeline.time_ms(one.completed), schema)
            self._heard = max(self._heard, (one.completed, one.requested))

    def _is_new(self, one: Finished) -> bool:
        """Whether an instant was completed after the newest one whose schema is known."""
        return (one.completed, one.requested) > self._heard


def known_of(finished: Sequence[Finished], pending: Collection[str], replaced: Groups) -> Known:
    """What a timeline says, for whoever lists the table after it was read."""
    return Known(
        completed={one.requested: one.completed for one in finished},
        pending=pending,
        oldest=min((one.requested for one in finished if one.action in METADATA_ACTIONS), default=""),
        replaced=replaced,
    )


def replaced_groups(metadata: Mapping[str, Any]) -> Groups:
    """Those that a completed instant has taken out, by its metadata."""
    taken_out = metadata.get("partitionToReplaceFileIds") or {}
    return frozenset((folder, str(one)) for folder, ids in taken_out.items() for one in ids or ())
