"""Schemas of Protobuf: files as protoc compiles them, linked by Protobuf's own library.

A registry is asked for `format=serialized`, as confluent-kafka's own deserializer asks: the base64 of a
FileDescriptorProto, so that nobody here parses the language of .proto files. A schema file is what `protoc
--include_imports --descriptor_set_out` writes.

A schema's text, here and where schemas are kept, is the base64, a space, and the name by which others import
it: none for the one that was asked for. Files that everybody has (`google/protobuf/`, `google/type/`,
`confluent/`) are the libraries' own, whatever is given: what a Timestamp is, they say.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from participant.records.errors import SchemasUnavailable, UnknownSchema
from table.schema import SchemaError

Which: TypeAlias = str | tuple[int, ...]
"""Which message of a schema a value is: its full name, or its place, level by level, as values name it."""

TEXT_CHARS_MAX = 1_398_104
"""Of a schema with all that it imports: a mebibyte, in base64."""
FILES_MAX = 1_000
NAMED_DEPTH_MAX = 8
"""So deep a message may be within others to be found by a subject's name."""
ROOT = "asked_for.proto"
_BUILT_IN = re.compile(r"(google/protobuf|google/type|confluent|confluent/types?)/([a-z_]{1,60})\.proto")
_MODULES: Mapping[str, str] = {
    "google/protobuf": "google.protobuf",
    "google/type": "google.type",
    "confluent": "confluent_kafka.schema_registry.confluent",
    "confluent/type": "confluent_kafka.schema_registry.confluent.type",
    "confluent/types": "confluent_kafka.schema_registry.confluent.types",
}


def told(text: str, name: str) -> str:
    """A registry's answer as a schema's text. Raises `SchemasUnavailable` where it is not serialized."""
    try:
        _decoded(text)
    except SchemaError:
        raise SchemasUnavailable(
            "does not give schemas of Protobuf serialized (?format=serialized), as Confluent's does: ask one "
            'that can, or give a file instead (record.framing = "none")'
        ) from None
    return f"{text} {name}"


def alike(one: str, other: str) -> bool:
    """Whether two texts of schemas are one file: registries serialize it anew, and not each says what follows
    from the rest, as names in JSON do."""
    try:
        return _essence(one) == _essence(other)
    except SchemaError:
        return False


def _essence(text: str) -> tuple[str, FileDescriptorProto]:
    encoded, _, name = text.partition(" ")
    file = _decoded(encoded)
    file.ClearField("name")
    file.ClearField("source_code_info")
    file.syntax = file.syntax or "proto2"
    open_: list[DescriptorProto] = list(file.message_type)
    while open_:
        message = open_.pop()
        open_ += message.nested_type
        for field in message.field:
            field.ClearField("json_name")
    return name, file


def texts_of(descriptor_set: str) -> tuple[str, ...]:
    """A FileDescriptorSet, in base64, as texts of schemas. Raises `SchemaError`."""
    if len(descriptor_set) > TEXT_CHARS_MAX:
        raise SchemaError(f"the schema file is larger than {TEXT_CHARS_MAX * 3 // 4:,} bytes")
    given = FileDescriptorSet()
    try:
        given.ParseFromString(base64.b64decode(descriptor_set, validate=True))
    except (DecodeError, binascii.Error):
        given.Clear()
    if not given.file or not all(one.name for one in given.file):
        raise SchemaError(
            "the schema file is not a FileDescriptorSet: make it with protoc --include_imports "
            "--descriptor_set_out=FILE"
        )
    return tuple(
        f"{base64.b64encode(one.SerializeToString()).decode('ascii')} {one.name}" for one in given.file
    )


def messages(texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The places of all messages at the top of the last of these schemas. Raises `SchemaError`."""
    return tuple((place,) for place in range(len(_decoded(texts[-1].partition(" ")[0]).message_type)))


def place_of(texts: Sequence[str], subject: str) -> tuple[int, ...] | None:
    """Where in the last of these schemas the message is that a subject is called after, alone or behind a
    topic; None where it is called after none. Raises `SchemaError`.
    """
    file = _decoded(texts[-1].partition(" ")[0])
    open_: list[tuple[tuple[int, ...], DescriptorProto]] = [
        ((place,), one) for place, one in enumerate(file.message_type)
    ]
    while open_:
        place, one = open_.pop(0)
        name = _name_at(file, place)
        if subject == name or subject.endswith(f"-{name}"):
            return place
        if len(place) < NAMED_DEPTH_MAX:
            open_ += [((*place, number), inside) for number, inside in enumerate(one.nested_type)]
    return None


def message_of(texts: Sequence[str], which: Which) -> Descriptor:
    """A message of the last of these schemas, or, by its full name, of any. Raises `SchemaError`."""
    if sum(map(len, texts)) > TEXT_CHARS_MAX or len(texts) > FILES_MAX:
        raise SchemaError(
            f"the Protobuf schema has more than {TEXT_CHARS_MAX:,} characters, or {FILES_MAX:,} files"
        )
    files: dict[str, FileDescriptorProto] = {}
    for text in texts:
        encoded, _, name = text.partition(" ")
        file = _decoded(encoded)
        file.name = name or ROOT
        files[file.name] = file
    full_name = which if isinstance(which, str) else _name_at(file, which)
    pool = DescriptorPool()
    for name in _in_order(files):
        _add(pool, name, files)
    try:
        return pool.FindMessageTypeByName(full_name)
    except KeyError:
        raise SchemaError(f"there is no message {full_name[:200]} in the Protobuf schema") from None


def _decoded(encoded: str) -> FileDescriptorProto:
    file = FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(encoded, validate=True))
        readable = all(isinstance(name, str) for name in (file.name, file.package, *file.dependency))
    except (DecodeError, binascii.Error, ValueError):
        readable = False
    if not readable:  # names that are not UTF-8 are bytes
        raise SchemaError("the Protobuf schema is no FileDescriptorProto")
    return file


def _name_at(file: FileDescriptorProto, place: tuple[int, ...]) -> str:
    names, inside = [file.package] if file.package else [], file.message_type
    for index in place:
        if not 0 <= index < len(inside):
            raise UnknownSchema("the value names a message by a place where the schema has none")
        one: DescriptorProto = inside[index]
        if not isinstance(one.name, str):
            raise SchemaError("the Protobuf schema is none: the name of a message is not UTF-8")
        names.append(one.name)
        inside = one.nested_type
    return ".".join(names)


def _in_order(files: Mapping[str, FileDescriptorProto]) -> tuple[str, ...]:
    """Each behind what it imports."""
    try:
        return tuple(
            TopologicalSorter({name: set(one.dependency) for name, one in files.items()}).static_order()
        )
    except CycleError:
        raise SchemaError("files of the Protobuf schema import each other in a circle") from None


def _add(pool: DescriptorPool, name: str, files: Mapping[str, FileDescriptorProto]) -> None:
    built_in = _built_in(name)
    if built_in is None and name not in files:
        raise SchemaError(f"the Protobuf schema imports {name[:200]}, which is not there")
    try:
        if built_in is None:
            pool.Add(files[name])
        else:
            _add_built_in(pool, built_in)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the Protobuf schema is none: {str(error)[:300]}") from None


def _built_in(name: str) -> Any | None:
    match = _BUILT_IN.fullmatch(name)
    if match is None:
        return None
    try:
        return import_module(f"{_MODULES[match[1]]}.{match[2]}_pb2").DESCRIPTOR
    except ImportError:
        return None


def _add_built_in(pool: DescriptorPool, file: Any) -> None:
    try:
        pool.FindFileByName(file.name)
    except KeyError:
        for one in file.dependencies:
            _add_built_in(pool, one)
        pool.AddSerializedFile(file.serialized_pb)
