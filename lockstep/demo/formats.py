"""What the demo's events may be encoded in."""

from __future__ import annotations

JSON, AVRO = "json", "avro"
FORMATS = (JSON, AVRO)
"""As people ask for them."""
