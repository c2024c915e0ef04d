"""What an Iceberg table's metadata says about its snapshots. Pure but for the reading of files.

Of a Hadoop catalog: `metadata/v<N>.metadata.json`, the highest N being the table (Iceberg's table spec,
"File System Tables"). `timestamp-ms` is taken when the snapshot is made, moments before its file is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Commit
from lockstep.errors import Failed

_METADATA = re.compile(r"v(\d+)\.metadata\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`at_ms`: Unix epoch. `total_records`: in the table as of then."""

    at_ms: int
    total_records: int


def newest_metadata(table: Path) -> Mapping[str, Any] | None:
    """The table's current metadata; None before there is a table. Raises `Failed` where it is damaged."""
    found = {
        int(match[1]): path for path in table.glob("metadata/*") if (match := _METADATA.fullmatch(path.name))
    }
    if not found:
        return None
    path = found[max(found)]
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failed(f"{path} cannot be read: {error}.") from error
    if not isinstance(metadata, dict):
        raise Failed(f"{path} is not a table's metadata.")
    return metadata


def snapshots(metadata: Mapping[str, Any]) -> list[Snapshot]:
    """Oldest first."""
    found = [
        Snapshot(
            at_ms=int(one["timestamp-ms"]), total_records=int(one.get("summary", {}).get("total-records", 0))
        )
        for one in metadata.get("snapshots", ())
    ]
    return sorted(found, key=lambda one: (one.at_ms, one.total_records))


def commits(metadata: Mapping[str, Any]) -> list[Commit]:
    """Every snapshot that brought rows."""
    found, before = [], 0
    for one in snapshots(metadata):
        if one.total_records > before:
            found.append(Commit(at_ms=one.at_ms, rows=one.total_records - before))
        before = one.total_records
    return found


def is_partitioned(metadata: Mapping[str, Any]) -> bool:
    """Whether the current spec has a field."""
    current = metadata.get("default-spec-id")
    return any(
        spec.get("fields") for spec in metadata.get("partition-specs", ()) if spec.get("spec-id") == current
    )
