"""How a schema registry is asked for schemas of JSON."""

from __future__ import annotations

from participant.records.json_schema.documents import alike, spelled
from participant.records.registry.client import SchemaKind

JSON = SchemaKind(name="JSON", words="JSON Schema", references=False, decides=False)
"""To know that there is one."""
WHOLE = SchemaKind(name="JSON", words="JSON Schema", spelled=spelled, alike=alike, kept_as="whole-")
"""To read what it says of columns."""
