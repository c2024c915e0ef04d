"""Which partitioners there are. To add one: a module beside this one, and a line here.

What a line names is imported when it is used, and not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from table.partitioners.port import Partitioner

FIELD = "field"
PARTITIONERS: Mapping[str, str] = {FIELD: "table.partitioners.field:FieldPartitioner"}
"""Name -> what makes one, of the column that it looks at, as `module:class`."""


def partitioner(column: str, name: str = FIELD) -> Partitioner | None:
    """The partitioner of that name; None where no column is named: the table has no partitions."""
    if not column:
        return None
    made: Partitioner = resolve_name(PARTITIONERS[name])(column)
    return made
