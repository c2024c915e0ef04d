"""Which kinds of tables there are. To add one: a folder beside this module, and a line here.

What a line names is imported when it is used, and not before: a command that reads a timeline loads no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from table.port import TableKind

HUDI = "hudi"
KINDS: Mapping[str, str] = {HUDI: "table.hudi.kind:Hudi", "memory": "table.memory.kind:Memory"}
"""Name -> the `TableKind`, as `module:class`."""


def table_kind(name: str = HUDI) -> TableKind:
    """The kind of that name."""
    kind: TableKind = resolve_name(KINDS[name])()
    return kind
