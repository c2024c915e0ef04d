"""Hudi in a worker: rows in, base files or log files out, by the table's mode."""

from __future__ import annotations

from copy import copy
from typing import Any
from uuid import uuid4

import pyarrow as pa

from table.hudi.definition import widened
from table.hudi.files.base_writer import TransactionWriter
from table.hudi.files.handing import InsertHanding
from table.hudi.files.log_writer import LogWriter
from table.hudi.files.shaping import InsertRows, InsertShaper
from table.hudi.files.upserts import Upserts, UpsertShaper
from table.hudi.layout import HudiLayout
from table.partition_columns import columns_of
from table.port import UPSERT, FileWriter, TableLayout, Tell
from table.rows import Rows
from table.store.location import store_at
from table.store.settings import StoreSettings
from table.widening import ddl_of


class HudiFiles:
    """See `table.port.TableFiles`. Raises `SchemaError` for a schema that cannot be written.

    `slot`, `incarnation`: the worker's. Rows that wait to be encoded take `pending_bytes_max` of memory, one
    batch aside, and files that are not whole yet `held_bytes_max`, one file aside. `storage`: how the
    table's store is reached.
    """

    def __init__(
        self,
        *,
        layout: TableLayout,
        slot: int,
        incarnation: str,
        pending_bytes_max: int,
        held_bytes_max: int,
        storage: StoreSettings | None = None,
    ) -> None:
        hudi = self.layout = HudiLayout.of(layout)
        self.schema = columns_of(layout)
        self._upserts = layout.mode == UPSERT
        self._common: dict[str, Any] = {
            "store": store_at(layout.path, settings=storage and storage.within(held_bytes_max)),
            "layout": hudi,
            "schema": self.schema,
            "writer_number": slot,
            "incarnation": incarnation,
            "pending_bytes_max": pending_bytes_max,
            "held_bytes_max": held_bytes_max,
        }
        self._shaper = (UpsertShaper if self._upserts else InsertShaper)(hudi, self.schema)

    def shape(self, rows: Rows) -> InsertRows | Upserts:
        """The rows as `write` of this table's writers takes them."""
        return self._shaper.shape(rows)

    def widened(self, columns: pa.Schema) -> HudiFiles:
        """See `table.port.TableFiles`."""
        made = copy(self)
        layout = made.layout = widened(self.layout, ddl_of(columns))
        made.schema = columns_of(layout)
        # rows that were shaped before are written by it, too
        made._common = {**self._common, "layout": layout, "schema": made.schema, "is_widened": True}
        made._shaper = (UpsertShaper if self._upserts else InsertShaper)(layout, made.schema)
        return made

    @property
    def handing(self) -> InsertHanding | None:
        """See `table.port.TableFiles`."""
        return None if self._upserts else InsertHanding(self.schema.names)

    def writer(self, instant: str, tell: Tell) -> FileWriter:
        """Of the transaction whose instant this is."""
        if self._upserts:
            return LogWriter(**self._common, instant=instant, tell=tell)
        return TransactionWriter(**self._common, instant=instant, new_uuid=uuid4, tell=tell)
