"""Schemas that the configuration gave."""

from __future__ import annotations

import json

from participant.records.avro.schema import TEXT_CHARS_MAX, fingerprint_of, parse
from participant.records.by_schema.framing import SchemaKey
from participant.records.errors import UnknownSchema
from table.schema import SchemaError


class GivenSchemas:
    """Those of a file: one, or, where values name them by fingerprint, several, as the members of an array.

    Raises `SchemaError`.
    """

    def __init__(self, text: str, *, by_fingerprint: bool) -> None:
        self._texts: dict[SchemaKey, str] = {}
        if len(text) > TEXT_CHARS_MAX:
            raise SchemaError(f"the schema file has more than {TEXT_CHARS_MAX:,} characters")
        if not by_fingerprint:
            self._texts[b""] = text
            return
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            raise SchemaError("the schema file is not a schema of Avro: it is not JSON") from None
        for one in read if isinstance(read, list) else [read]:
            alone = json.dumps(one)
            parse([alone])  # before anybody else looks at it
            self._texts[fingerprint_of(alone)] = alone

    @property
    def keys(self) -> tuple[SchemaKey, ...]:
        """Of all that there are."""
        return tuple(self._texts)

    def find(self, key: SchemaKey) -> tuple[str, ...]:
        if key not in self._texts:
            raise UnknownSchema("it is in none of the schemas of the schema file")
        return (self._texts[key],)
