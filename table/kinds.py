"""Which kinds of tables there are. To add one: a folder beside this module, and an entry here.

What an entry names is imported when it is used, and not before: a command that reads a timeline loads no
Spark. The configuration offers what is here, in the words that are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from table.port import TableKind

HUDI = "hudi"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKind:
    """What is to be known of a kind of table before it is used."""

    made_by: str
    """Its `TableKind`, as `module:class`."""
    meaning: str = ""
    """What it is, for people; empty where no pipeline can have it."""


KINDS: Mapping[str, KnownKind] = {
    HUDI: KnownKind(made_by="table.hudi.kind:Hudi", meaning="Apache Hudi's"),
    "memory": KnownKind(made_by="table.memory.kind:Memory"),
}
"""Name in the configuration -> what it is."""
OFFERED: Mapping[str, str] = {name: kind.meaning for name, kind in KINDS.items() if kind.meaning}


def table_kind(name: str) -> TableKind:
    """The kind of that name."""
    kind: TableKind = resolve_name(KINDS[name].made_by)()
    return kind
