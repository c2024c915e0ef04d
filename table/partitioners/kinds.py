"""Which partitioners there are. To add one: a module beside this one, and an entry here.

What an entry names is imported when it is used, and not before. The configuration offers what is here, in the
words that are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name

from table.partitioners.port import Partitioner

FIELD = "field"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionerKind:
    """What is to be known of a partitioner before it is used."""

    made_by: str
    """What makes one, of the column that it looks at, as `module:class`."""
    meaning: str
    """How that column says a table partition, for people."""


PARTITIONERS: Mapping[str, PartitionerKind] = {
    FIELD: PartitionerKind(
        made_by="table.partitioners.field:FieldPartitioner",
        meaning="each of its values is a table partition",
    ),
}
"""Name in the configuration -> what it is."""


def partitioners(columns: Sequence[str], name: str = FIELD) -> tuple[Partitioner, ...]:
    """One of that name for each column; none where no column is named: the table has no partitions."""
    make = resolve_name(PARTITIONERS[name].made_by)
    made: tuple[Partitioner, ...] = tuple(make(column) for column in columns)
    return made
