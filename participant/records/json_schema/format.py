"""JSON of a schema registry as a format of records: an id of a schema, and then JSON."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

import pyarrow as pa

from participant.records.by_schema.following import NoColumn, Once, Registered
from participant.records.by_schema.framing import KEY_HEADER, VALUE_HEADER
from participant.records.json.format import JsonFormat
from participant.records.json_schema.decoder import FramedDecoder, FramedKeys, KnownSchemas
from participant.records.json_schema.follows import JsonFollows
from participant.records.json_schema.natural import columns_of
from participant.records.port import RecordSpec
from participant.records.registry.named import registry_schemas
from participant.records.sources import taken
from table.schema import SchemaError


class JsonSchemaFormat:
    """See `participant.records.port.Format`. `record`: where schemas are, and with what values are read."""

    typed = False

    def __init__(self, record: RecordSpec) -> None:
        self._record = record
        self._json = JsonFormat(record)

    def values(self, schema: pa.Schema) -> FramedDecoder:
        """Raises `SchemaError` for a schema that cannot be read from JSON."""
        header = KEY_HEADER if self._record.as_keys else VALUE_HEADER
        follows = self._record.follows and not self._record.as_keys
        return FramedDecoder(self._json.values(schema), self._followed if follows else self._known, header)

    def keys(self, fields: Sequence[pa.Field]) -> FramedKeys:
        """Of the columns that key a row."""
        return FramedKeys(self._json.keys(fields), self._known)

    def follows(self) -> JsonFollows:
        """See `participant.records.port.FollowedFormat`."""
        return JsonFollows(*self._registered, taken=taken(self._record.columns, self._record.rest))

    def reads_by(self, schema: pa.Schema) -> str:
        """As JSON is."""
        where = f", behind ids of {self._record.registry.url}" if self._record.registry is not None else ""
        return f"{self._json.reads_by(schema)}{where}"

    @cached_property
    def _known(self) -> KnownSchemas:
        """One for all readers of a format: an id is asked for once. Raises `SchemaError`."""
        self._check_framing()
        return KnownSchemas(
            registry_schemas(self._record.registry, "participant.records.json_schema.registry:JSON")
        )

    @cached_property
    def _followed(self) -> KnownSchemas:
        """Likewise, of which the columns are looked at."""
        return KnownSchemas(self._registered[0], _check)

    @cached_property
    def _registered(self) -> Registered:
        self._check_framing()
        schemas = registry_schemas(self._record.registry, "participant.records.json_schema.registry:WHOLE")
        return Once(schemas), schemas.known_as

    def _check_framing(self) -> None:
        if self._record.framing != "confluent":
            raise SchemaError(f'JSON Schema has no record.framing = "{self._record.framing}", but confluent')


def _check(texts: tuple[str, ...]) -> None:
    """Raises `SchemaError` for what is no schema of rows."""
    with suppress(NoColumn):  # it has been looked at beside the table's columns
        columns_of(texts, pa.schema([]))
