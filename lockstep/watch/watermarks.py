"""How far a table is complete, as whoever knows it best has it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from table.service.progress import watermark_json
from table.state import TableState


def newest_watermark(state: TableState | None, live: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Of the newest commit, as `table.service.progress.watermark_json`; None where it has none.

    `state`: the table's, as it was read. `live`: what the driver answers, which counts where its commit is
    not older.
    """
    told = str((live or {}).get("newest", {}).get("instant", ""))
    if live is not None and (state is None or told >= state.instant):
        found: Mapping[str, Any] | None = live.get("watermark")
        return found
    return watermark_json(state.watermark) if state is not None and state.watermark is not None else None
