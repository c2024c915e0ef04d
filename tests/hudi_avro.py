"""The fields of Hudi's Avro records that are read here, and files of such records, for tests."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import fastavro

STAT = {
    "type": "record",
    "name": "Stat",
    "fields": [
        {"name": "path", "type": ["null", "string"], "default": None},
        *(
            {"name": name, "type": ["null", "long"], "default": None}
            for name in ("numWrites", "numUpdateWrites", "numDeletes", "fileSizeInBytes")
        ),
    ],
}
COMMIT = {
    "type": "record",
    "name": "HoodieCommitMetadata",
    "fields": [
        {
            "name": "partitionToWriteStats",
            "type": ["null", {"type": "map", "values": {"type": "array", "items": STAT}}],
            "default": None,
        },
        {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}], "default": None},
        {"name": "operationType", "type": ["null", "string"], "default": None},
    ],
}
REPLACE = {
    **COMMIT,
    "name": "HoodieReplaceCommitMetadata",
    "fields": [
        *COMMIT["fields"],
        {
            "name": "partitionToReplaceFileIds",
            "type": ["null", {"type": "map", "values": {"type": "array", "items": "string"}}],
            "default": None,
        },
    ],
}
PLAN = {
    "type": "record",
    "name": "HoodieRollbackPlan",
    "fields": [
        {
            "name": "instantToRollback",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Info",
                    "fields": [
                        {"name": "commitTime", "type": "string"},
                        {"name": "action", "type": "string"},
                    ],
                },
            ],
        }
    ],
}

ROLLBACK = {
    "type": "record",
    "name": "HoodieRollbackMetadata",
    "fields": [
        {"name": "commitsRollback", "type": {"type": "array", "items": "string"}},
        {
            "name": "instantsRollback",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "HoodieInstantInfo",
                    "fields": [
                        {"name": "commitTime", "type": "string"},
                        {"name": "action", "type": "string"},
                    ],
                },
            },
        },
    ],
}


def avro(schema: Mapping[str, Any], record: Mapping[str, Any], codec: str = "null") -> bytes:
    """One record as a file of the timeline holds it."""
    file = io.BytesIO()
    fastavro.writer(file, schema, [record], codec=codec)
    return file.getvalue()
