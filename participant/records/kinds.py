"""Which formats and envelopes there are. To add one: a folder beside this module, and an entry here.

What an entry names is imported when it is used, and not before. The configuration offers what is here, in the
words that are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from participant.records.sources import CONNECT

if TYPE_CHECKING:
    from participant.records.port import RecordSpec

DEBEZIUM = "debezium"
"""The envelope of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatKind:
    """What is to be known of a format, of values and of keys, before it is used."""

    made_by: str
    """Its `participant.records.port.Format`, as `module:class`."""
    values: str
    """What a value is then, for people."""
    keys: str
    """Likewise."""
    has_settings: bool = False
    """Whether it is made with the `RecordSpec`, which holds settings of its own."""
    framings: frozenset[str] = frozenset()
    """Where a value names the schema that it was written by: those of `FRAMINGS` that there are."""
    says_columns: bool = False
    """Whether that schema says which columns a table of such values has."""
    file: str = ""
    """What a file with such a schema is, for people."""
    has_rest: bool = False
    """Whether values may have fields that nobody named, and those can be had as JSON."""


FORMATS: Mapping[str, FormatKind] = {
    "json": FormatKind(
        made_by="participant.records.json.format:JsonFormat",
        values="one object each",
        keys="an object or one field's value, or plain text",
        has_settings=True,
        has_rest=True,
    ),
    "avro": FormatKind(
        made_by="participant.records.avro.format:AvroFormat",
        values="one record each, as `record.framing` says",
        keys="a record or one field's value, likewise",
        has_settings=True,
        framings=frozenset({"confluent", "single_object", "none"}),
        says_columns=True,
        file="the schema as JSON, of which `single_object` takes an array of several",
    ),
    "protobuf": FormatKind(
        made_by="participant.records.protobuf.format:ProtobufFormat",
        values="one message each, likewise",
        keys="a message, likewise",
        has_settings=True,
        framings=frozenset({"confluent", "none"}),
        says_columns=True,
        file="a FileDescriptorSet, which `protoc --include_imports --descriptor_set_out=FILE` writes",
    ),
    "json_schema": FormatKind(
        made_by="participant.records.json_schema.format:JsonSchemaFormat",
        values="as `json`, behind the id of a schema that the registry has, and is not held against",
        keys="as `json`, likewise",
        has_settings=True,
        framings=frozenset({"confluent"}),
        says_columns=True,
        has_rest=True,
    ),
    "string": FormatKind(
        made_by="participant.records.whole.format:StringFormat",
        values="the one column of the schema, a STRING, whatever is in it",
        keys="the one column that keys a row, likewise",
    ),
    "bytes": FormatKind(
        made_by="participant.records.whole.format:BytesFormat",
        values="likewise a BINARY",
        keys="likewise a BINARY",
    ),
}
"""Name in the configuration -> what it is."""


FRAMINGS: Mapping[str, str] = {
    "confluent": (
        "an id in five bytes before the value, or an id or GUID in a header, of a schema in `[registry]`"
    ),
    "single_object": (
        "Avro's single-object encoding, C3 01 and a fingerprint, of a schema in `record.schema_file`"
    ),
    "none": "nothing, it is the one in `record.schema_file`",
}
"""What says by which schema a value was written -> for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeKind:
    """What is to be known of an envelope before it is used."""

    made_by: str
    """Its `participant.records.port.Envelope`, as `module:class`."""
    meaning: str
    """What a value is then, for people."""
    formats: frozenset[str] = field(default_factory=lambda: frozenset(FORMATS))
    """Those of values that it can be read from."""
    followed: frozenset[str] = field(default_factory=lambda: frozenset(FORMATS))
    """Those of values whose schemas say which columns the rows in it have, where a format's say so."""
    brings_order: bool = False
    """Whether its records say by themselves which of two is newer, and which delete: the table then has a
    column of positions, and only upserts make sense."""


ENVELOPES: Mapping[str, EnvelopeKind] = {
    "none": EnvelopeKind(made_by="participant.records.envelopes.plain:Plain", meaning="it is the row"),
    CONNECT: EnvelopeKind(
        made_by="participant.records.envelopes.connect:Connect",
        meaning=(
            'it is `{"schema": …, "payload": …}`, as Kafka Connect\'s JsonConverter writes it with '
            "`schemas.enable=true`, and `payload` is the row"
        ),
        formats=frozenset({"json"}),
        followed=frozenset(),
    ),
    DEBEZIUM: EnvelopeKind(
        made_by="participant.records.envelopes.debezium.envelope:ChangeEvents",
        meaning=(
            "it is a change event of Debezium's, with or without its schema, which says what became of a "
            'row, and needs `table.kind = "upsert"`'
        ),
        formats=frozenset({"avro", "json", "json_schema"}),
        followed=frozenset({"avro"}),
        brings_order=True,
    ),
}
"""Name in the configuration -> what it is."""


def made(name: str) -> Any:
    """What `module:class` names, made without arguments."""
    return resolve_name(name)()


def format_made(name: str, record: RecordSpec) -> Any:
    """The `participant.records.port.Format` of this name, with its settings."""
    kind = FORMATS[name]
    return resolve_name(kind.made_by)(record) if kind.has_settings else made(kind.made_by)
