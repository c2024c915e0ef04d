"""What stands before a datum and says by which schema it was written.

`confluent`: a byte 0 and an id of four bytes, or a byte 1 and a GUID of sixteen; or the same in a header, and
then nothing before the datum (Confluent's wire format; confluent-kafka's `SchemaId` and
`header_schema_id_serializer`).
`single_object`: C3 01 and the schema's CRC-64-AVRO (Avro 1.12, "Single-object encoding").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias
from uuid import UUID

from participant.records.by_schema.misread import Misread

SchemaKey: TypeAlias = int | str | bytes
"""A registry's id, its GUID, or a fingerprint; empty bytes where there is but one schema."""
Split: TypeAlias = Callable[[bytes, bytes | None], tuple[SchemaKey, int]]
"""Of a value, and of the header that may speak of its schema: by which schema it was written, and where the
datum begins. Raises `Misread`."""

BY_ID, BY_GUID = 0, 1
ID_BYTES, GUID_BYTES = 4, 16
APICURIO = " (which no registry gives; Apicurio's ids of eight bytes begin so: have its serializer use four)"
GLUE_VERSION, GLUE_COMPRESSIONS, GLUE_BYTES = 3, (0, 5), 18
MARK = b"\xc3\x01"
MARKED_BYTES = len(MARK) + 8
VALUE_HEADER, KEY_HEADER = "__value_schema_id", "__key_schema_id"


def confluent(value: bytes, header: bytes | None) -> tuple[SchemaKey, int]:
    """The header counts where there is one, as with Confluent's own reader."""
    if header is None:
        return identity(value, "the value")
    key, end = identity(header, "the header that names the schema")
    if end != len(header):
        raise Misread("the header that names the schema is longer than a schema's id")
    return key, 0


def identity(data: bytes, what: str) -> tuple[SchemaKey, int]:
    """Of `what`: the id or GUID that it begins with, and where that ends. Raises `Misread`."""
    kind = data[0] if data else -1
    end = 1 + {BY_ID: ID_BYTES, BY_GUID: GUID_BYTES}.get(kind, 0)
    if end == 1:
        raise Misread(f"{what} does not begin with a schema's id (a byte 0 or 1){_of_glue(data)}")
    if len(data) < end:
        raise Misread(f"{what} ends within its schema's id")
    if kind == BY_ID:
        return int.from_bytes(data[1:end], "big"), end
    return str(UUID(bytes=data[1:end])), end


def _of_glue(data: bytes) -> str:
    """Return what to add where a value begins as the serializers of AWS Glue's registry write it.

    Source: aws-glue-schema-registry, `AWSSchemaRegistryConstants`: version 3, compression 0 or 5, a UUID.
    """
    if len(data) < GLUE_BYTES or data[0] != GLUE_VERSION or data[1] not in GLUE_COMPRESSIONS:
        return ""
    return (
        ". It begins as AWS Glue's registry has it: a byte 3, one for the compression, and schema version "
        f"{UUID(bytes=data[2:GLUE_BYTES])}. That registry is not read: have the producer use Confluent's "
        "serializer, or none (record.framing)"
    )


def single_object(value: bytes, _header: bytes | None) -> tuple[SchemaKey, int]:
    if not value.startswith(MARK):
        raise Misread("the value does not begin with C3 01, as the single-object encoding does")
    if len(value) < MARKED_BYTES:
        raise Misread("the value ends within its schema's fingerprint")
    return value[len(MARK) : MARKED_BYTES], MARKED_BYTES


def bare(_value: bytes, _header: bytes | None) -> tuple[SchemaKey, int]:
    return b"", 0


SPLITS: Mapping[str, Split] = {"confluent": confluent, "single_object": single_object, "none": bare}


def spelled(key: SchemaKey) -> str:
    """For people."""
    if isinstance(key, bytes):
        return f"the schema of fingerprint {key.hex()}" if key else "the schema"
    return f"schema {key}" + (APICURIO if key == 0 else "")
