"""Encodings of decimals in change events of JSON, by the names of Debezium's `decimal.handling.mode`."""

from __future__ import annotations

from collections.abc import Mapping

PRECISE, STRING, DOUBLE, SCHEMA = "precise", "string", "double", "schema"
HANDLINGS: Mapping[str, str] = {
    PRECISE: "base64 of an unscaled number, with the scale of its column",
    STRING: "digits in a string",
    DOUBLE: "a number",
    SCHEMA: "as the schema in each event says, and an event without one is a reject",
}
"""Name in the configuration -> description."""
EVENTS_IN_JSON = frozenset({"json", "json_schema"})
"""Formats of change events in which a value does not tell how a decimal is encoded."""
