"""How a schema registry is asked for schemas of JSON."""

from __future__ import annotations

from participant.records.registry.client import SchemaKind

JSON = SchemaKind(name="JSON", words="JSON Schema", references=False)
