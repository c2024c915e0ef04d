"""Schemas of Protobuf: what is linked, what is none, and what cannot be told for now."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from participant.records.errors import SchemasUnavailable, UnknownSchema
from participant.records.protobuf.files import (
    FILES_MAX,
    TEXT_CHARS_MAX,
    Which,
    alike,
    message_of,
    messages,
    place_of,
    texts_of,
    told,
)
from table.schema import SchemaError
from tests.proto_files import compiled, encoded

INNER = 'syntax = "proto3"; package in; message Inner { int32 a = 1; }'
TOP = """
syntax = "proto3"; package top.v1;
import "in/inner.proto"; import "google/protobuf/timestamp.proto"; import "google/type/date.proto";
message One {
  in.Inner i = 1; google.protobuf.Timestamp t = 2;
  message Deep { message Deeper { int32 b = 1; } }
}
message Two { int32 c = 1; }
"""
DATE = 'syntax = "proto3"; package google.type; message Date { int32 year = 1; }'
FILES = compiled({"in/inner.proto": INNER, "top.proto": TOP, "google/type/date.proto": DATE})


def text(name: str, called: str) -> str:
    return told(encoded(next(file for file in FILES.file if file.name == name)), called)


TOLD = (text("in/inner.proto", "in/inner.proto"), text("top.proto", ""))
"""As a registry tells them."""


@pytest.mark.parametrize(
    ("which", "name"),
    [
        ((0,), "top.v1.One"),
        ((1,), "top.v1.Two"),
        ((0, 0), "top.v1.One.Deep"),
        ((0, 0, 0), "top.v1.One.Deep.Deeper"),
        ("in.Inner", "in.Inner"),
    ],
)
def test_a_message_is_found_by_its_place_in_the_file_or_by_name_in_any(which: Which, name: str) -> None:
    assert message_of(TOLD, which).full_name == name


def test_a_file_that_everybody_has_is_the_librarys_own() -> None:
    forged = FileDescriptorProto(name="google/protobuf/timestamp.proto", package="google.protobuf")
    forged.message_type.add(name="Timestamp").field.add(name="x", number=1, label=1, type=5)
    found = message_of((f"{encoded(forged)} {forged.name}", *TOLD), (0,)).fields_by_name["t"].message_type
    assert [field.name for field in found.fields] == ["seconds", "nanos"]


@pytest.mark.parametrize("place", [(2,), (0, 1), (0, 0, 0, 0)])
def test_a_place_where_no_message_is_makes_the_value_unreadable(place: tuple[int, ...]) -> None:
    with pytest.raises(UnknownSchema, match="by a place where the schema has none"):
        message_of(TOLD, place)


def test_what_a_schema_file_holds_is_a_set_of_files_in_any_order() -> None:
    backwards = FileDescriptorSet(file=list(FILES.file)[::-1])
    assert message_of(texts_of(encoded(backwards)), "top.v1.One").full_name == "top.v1.One"


def test_the_messages_at_the_top_of_a_schema_are_listed() -> None:
    assert messages(TOLD) == ((0,), (1,))


@pytest.mark.parametrize(
    ("subject", "place"),
    [
        ("top.v1.One", (0,)),
        ("top.v1.Two", (1,)),
        ("events-top.v1.Two", (1,)),
        ("events-top.v1.One.Deep.Deeper", (0, 0, 0)),
        ("events-value", None),
        ("in.Inner", None),
        ("stop.v1.Two", None),
        ("", None),
    ],
)
def test_a_message_is_found_by_the_subject_that_is_called_after_it(
    subject: str, place: tuple[int, ...] | None
) -> None:
    assert place_of(TOLD, subject) == place


def circle() -> str:
    files = [
        FileDescriptorProto(name="a.proto", dependency=["b.proto"]),
        FileDescriptorProto(name="b.proto", dependency=["a.proto"]),
    ]
    return encoded(FileDescriptorSet(file=files))


def twice() -> str:
    file = FileDescriptorProto(name="a.proto")
    file.message_type.add(name="M")
    file.message_type.add(name="M")
    return encoded(FileDescriptorSet(file=[file]))


def chain() -> str:
    """So many that no stack would hold them."""
    files = [
        FileDescriptorProto(name=f"{number}", dependency=[f"{number + 1}"]) for number in range(FILES_MAX + 1)
    ]
    return encoded(FileDescriptorSet(file=files))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (base64.b64encode(b'syntax = "proto3";').decode(), "is not a FileDescriptorSet: make it with protoc"),
        ("", "is not a FileDescriptorSet"),
        ("=", "is not a FileDescriptorSet"),
        ("A" * (TEXT_CHARS_MAX + 4), "is larger than 1,048,578 bytes"),
        (encoded(FileDescriptorSet(file=[FileDescriptorProto()])), "is not a FileDescriptorSet"),
        (encoded(FILES), "there is no message M in the Protobuf schema"),
        (circle(), "import each other in a circle"),
        (twice(), "the Protobuf schema is none: "),
        (chain(), "or 1,000 files"),
        (
            encoded(FileDescriptorSet(file=[one for one in FILES.file if one.name == "top.proto"])),
            "the Protobuf schema imports in/inner.proto, which is not there",
        ),
    ],
)
def test_what_is_no_schema_is_refused_in_words(content: str, why: str) -> None:
    with pytest.raises(SchemaError) as caught:
        message_of(texts_of(content), "M")
    assert why in str(caught.value)


def test_a_chain_of_imports_is_linked_however_long() -> None:
    files = [
        FileDescriptorProto(name=f"{number}", dependency=[f"{number + 1}"]) for number in range(FILES_MAX - 1)
    ]
    files.append(FileDescriptorProto(name=f"{FILES_MAX - 1}"))
    files[0].message_type.add(name="M")
    assert message_of(texts_of(encoded(FileDescriptorSet(file=files))), "M").full_name == "M"


@pytest.mark.parametrize("answer", [TOP, "hello", "AAAA"])
def test_a_registry_that_tells_a_schema_as_its_text_cannot_be_read_from(answer: str) -> None:
    with pytest.raises(SchemasUnavailable, match="does not give schemas of Protobuf serialized"):
        told(answer, "")


def test_a_file_that_is_serialized_otherwise_is_the_same_and_another_one_is_not() -> None:
    (file,) = (one for one in FILES.file if one.name == "top.proto")
    text = f"{encoded(file)} top.proto"
    other = FileDescriptorProto()
    other.CopyFrom(file)
    other.ClearField("name")
    for message in other.message_type:
        for field in message.field:
            field.json_name = "" if field.HasField("json_name") else field.name
    assert encoded(other) != encoded(file)
    assert alike(text, f"{encoded(other)} top.proto")
    assert not alike(text, f"{encoded(other)} other.proto")
    other.message_type[0].field[0].number += 100
    assert not alike(text, f"{encoded(other)} top.proto")
    assert not alike(text, "!") and not alike("!", "!!")
