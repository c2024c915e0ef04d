"""How a schema registry is asked for schemas of Protobuf."""

from __future__ import annotations

from participant.records.protobuf.files import alike, told
from participant.records.registry.client import SchemaKind

PROTOBUF = SchemaKind(name="PROTOBUF", words="Protobuf", format="serialized", spelled=told, alike=alike)
