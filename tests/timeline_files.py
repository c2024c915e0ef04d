"""A table's timeline, spelled out file by file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hudi_avro import COMMIT, ROLLBACK, avro


def committed(
    extra: Mapping[str, str] | None = None,
    *,
    operation: str = "BULK_INSERT",
    stats: list[dict[str, Any]] | None = None,
) -> bytes:
    return avro(
        COMMIT,
        {
            "partitionToWriteStats": {"a": stats or []},
            "extraMetadata": dict(extra or {}),
            "operationType": operation,
        },
    )


def rolled_back(*targets: tuple[str, str]) -> bytes:
    """Return the metadata of a rollback of instants, each with its action."""
    infos = [{"commitTime": time, "action": action} for time, action in targets]
    return avro(ROLLBACK, {"commitsRollback": [time for time, _ in targets], "instantsRollback": infos})


class Table:
    """A table's `.hoodie` folder."""

    def __init__(self, base: Path, **properties: str) -> None:
        self.base = base
        self.folder = base / ".hoodie" / "timeline"
        self.history = self.folder / "history"
        self.history.mkdir(parents=True)
        lines = {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2", **properties}
        text = "#Updated\n" + "".join(f"{key}={value}\n" for key, value in lines.items())
        (base / ".hoodie" / "hoodie.properties").write_text(text)

    def add(self, name: str, raw: bytes = b"") -> None:
        (self.folder / name).write_bytes(raw)

    def archive(self, version: int, files: Mapping[str, list[tuple[str, str, str, bytes | None]]]) -> None:
        for name, rows in files.items():
            columns = {
                "instantTime": [row[0] for row in rows],
                "completionTime": [row[1] for row in rows],
                "action": [row[2] for row in rows],
                "metadata": pa.array([row[3] for row in rows], pa.binary()),
                "plan": pa.array([None] * len(rows), pa.binary()),
                "version": pa.array([1] * len(rows), pa.int32()),
            }
            pq.write_table(pa.table(columns), self.history / name)
        manifest = {"files": [{"fileName": name, "fileLen": 1} for name in files]}
        (self.history / f"manifest_{version}").write_text(json.dumps(manifest))
        (self.history / "_version_").write_text(str(version))


def time(number: int) -> str:
    return f"20260101000000{number:03}"
