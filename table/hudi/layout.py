"""How a Hudi table wants its files: what every table's layout says, and what only Hudi's does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from control_topic.messages import DataFile
from table.kinds import HUDI
from table.port import TableLayout

PROPERTIES = ("hoodie.properties", "hoodie.properties.backup")
"""What makes a folder a table. The second is there while Hudi rewrites the first, or died over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiLayout(TableLayout):
    """`body` is empty: what it says is here, by name."""

    kind: str = HUDI
    key_format: str = "plain"
    """How a record key is spelled: `plain` (one field's value), `complex` (`f:v,g:w`), `coordinates`
    (`topic-partition-offset`, a table without key fields).
    """
    hive_style: bool = False
    """A table partition's folder is `field=value`."""
    url_encode: bool = False
    """It is percent-encoded."""
    timed: str = ""
    """How folders are made of fields that are times (`table.hudi.files.timed`); empty: none is."""
    bucket_count: int = 0
    """Of upserts: in each table partition."""
    avro: str = ""
    """Of upserts: the schema of the rows with Hudi's meta columns."""

    @classmethod
    def of(cls, layout: TableLayout) -> HudiLayout:
        """What `encoded` made of one."""
        if isinstance(layout, cls):
            return layout
        body: Mapping[str, Any] = layout.body
        return cls(**{name: getattr(layout, name) for name in HEAD}, **body)

    def encoded(self) -> TableLayout:
        """The same to all who know no Hudi."""
        head = {name: getattr(self, name) for name in HEAD}
        return TableLayout(**head, body={name: getattr(self, name) for name in BODY})


META_FOLDER = ".hoodie"
HEARTBEATS = f"{META_FOLDER}/.heartbeat"
"""Below the table's base path; what is not of rows is there."""
HEAD = frozenset(field.name for field in fields(TableLayout)) - {"body"}
BODY = tuple(field.name for field in fields(HudiLayout) if field.name not in HEAD | {"body"})


def file_id(file: DataFile) -> str:
    """The file group that a data file belongs to: all that Hudi adds to what every kind says of a file."""
    return file.body
