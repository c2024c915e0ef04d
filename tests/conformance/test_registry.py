"""The tests' own schema registry and a real one: the real client sees no difference in what is relied on."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from participant.records.errors import UnknownSchema
from participant.records.protobuf.files import message_of
from participant.records.protobuf.registry import PROTOBUF
from participant.records.registry.client import RegistryClient
from participant.records.registry.settings import RegistrySettings
from tests.proto_files import Classes, compiled
from tests.registry_server import Registry

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("conformance")]

TEXT = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]})
NEXT = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "string"]}]})
NONE = 1_000_000


@dataclass
class Side:
    """A registry, who registers, and our client."""

    url: str

    def __post_init__(self) -> None:
        self.theirs = SchemaRegistryClient({"url": self.url})
        self.ours = RegistryClient(RegistrySettings(url=self.url))
        self.subject = f"s-{uuid.uuid4().hex}-value"
        """Of this test alone."""

    def register(self, text: str, subject: str = "", **more: object) -> int:
        registered = self.theirs.register_schema(subject or self.subject, Schema(text, "AVRO", **more))
        return int(registered)

    def same(self, texts: tuple[str, ...], *wanted: str) -> bool:
        return [json.loads(one) for one in texts] == [json.loads(one) for one in wanted]


@pytest.fixture(params=["ours", "real"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    if request.param == "real":
        yield Side(request.getfixturevalue("apicurio").url)
        return
    with Registry() as running:
        yield Side(running.url)


def test_a_schema_is_answered_by_its_id_which_is_one_in_all_subjects(side: Side) -> None:
    number = side.register(TEXT)
    assert side.register(TEXT) == number
    assert side.register(TEXT, f"other-{side.subject}") == number
    assert side.same(side.ours.schema(number), TEXT)


def test_the_newest_schema_of_a_subject_is_the_one_that_was_registered_last(side: Side) -> None:
    side.register(TEXT)
    number = side.register(NEXT)
    found, texts = side.ours.latest(side.subject)
    assert found == number and side.same(texts, NEXT)


def test_an_id_is_told_by_subject_and_version(side: Side) -> None:
    side.register(TEXT)
    number = side.register(NEXT)
    assert (side.subject, 2) in side.ours.versions(number)  # other tests' subjects have the same schema
    with pytest.raises(UnknownSchema):
        side.ours.versions(NONE)


def test_what_it_does_not_know_is_a_404_with_a_code_of_its_own(side: Side) -> None:
    for ask, code in (
        (lambda: side.theirs.get_schema(NONE), 40403),
        (lambda: side.theirs.get_latest_version(side.subject), 40401),
    ):
        with pytest.raises(SchemaRegistryError) as caught:
            ask()
        assert (caught.value.http_status_code, caught.value.error_code) == (404, code)
    side.register(TEXT)
    with pytest.raises(SchemaRegistryError) as caught:
        side.theirs.get_version(side.subject, 77)
    assert (caught.value.http_status_code, caught.value.error_code) == (404, 40402)
    with pytest.raises(UnknownSchema):
        side.ours.schema(NONE)


def test_a_schema_names_what_it_refers_to_by_subject_and_version(side: Side) -> None:
    enum = json.dumps({"type": "enum", "name": "colour", "symbols": ["RED"]})
    top = json.dumps({"type": "record", "name": "top", "fields": [{"name": "c", "type": "colour"}]})
    of = f"colour-{side.subject}"
    side.register(enum, of)
    number = side.register(top, references=[SchemaReference("colour", of, 1)])
    assert side.same(side.ours.schema(number), enum, top)


def test_confluents_own_serializer_and_deserializer_work_with_it(side: Side) -> None:
    context = SerializationContext(side.subject.removesuffix("-value"), MessageField.VALUE)
    written = AvroSerializer(side.theirs, TEXT)({"id": "a"}, context)
    assert isinstance(written, bytes) and written[0] == 0
    assert AvroDeserializer(side.theirs)(written, context) == {"id": "a"}
    number = int.from_bytes(written[1:5], "big")
    assert side.same(side.ours.schema(number), TEXT)
    assert side.ours.latest(side.subject)[0] == number


def test_files_of_protobuf_that_confluents_serializer_registered_are_told_with_what_they_import(
    side: Side,
) -> None:
    package = f"p{uuid.uuid4().hex}"
    inner, outer = f"{package}/inner.proto", f"{package}/outer.proto"
    head = f'syntax = "proto3"; package {package};'
    files = {
        inner: f"{head} message Inner {{ int64 a = 1; }}",
        outer: f'{head} import "{inner}"; import "google/protobuf/timestamp.proto";'
        "message First { int32 z = 1; }"
        "message Row { string id = 1; Inner inner = 2; google.protobuf.Timestamp ts = 3; }",
    }
    row = Classes(compiled(files))[f"{package}.Row"]
    context = SerializationContext(side.subject.removesuffix("-value"), MessageField.VALUE)
    written = ProtobufSerializer(row, side.theirs)(row(id="a", inner={"a": 5}), context)
    assert isinstance(written, bytes) and (written[0], written[5:7]) == (0, b"\x02\x02")
    read = ProtobufDeserializer(row, schema_registry_client=side.theirs)(written, context)
    assert read == row(id="a", inner={"a": 5})
    number = int.from_bytes(written[1:5], "big")
    ours = RegistryClient(RegistrySettings(url=side.url), PROTOBUF)
    for texts in (ours.schema(number), ours.latest(side.subject)[1]):
        message = message_of(texts, (1,))
        assert [field.name for field in message.fields] == ["id", "inner", "ts"]
        assert message.fields_by_name["inner"].message_type.full_name == f"{package}.Inner"
    with pytest.raises(UnknownSchema, match="it is one of PROTOBUF, not of Avro"):
        side.ours.schema(number)
