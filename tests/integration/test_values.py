"""Values that are text, and JSON behind the id of a schema: from a real broker into a table, each once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.harness import SCHEMA, Pipeline, event
from tests.registry_server import Registry

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

LETTERS = {"record.on_error": "dead_letter"}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def configure(pipeline: Pipeline, *changes: tuple[str, str]) -> None:
    text = pipeline.config.read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    pipeline.config.write_text(text, encoding="utf-8")


def test_json_of_confluents_serializer_is_rows_once_and_what_names_no_schema_a_letter(
    pipeline: Pipeline, registry: Registry
) -> None:
    section = (
        f'[registry]\nurl = "{registry.url}"\ncache_folder = "{pipeline.folder / "schemas"}"\n\n[record]'
    )
    configure(pipeline, ("[record]", f'{section}\nformat = "json_schema"'))
    pipeline.settings |= LETTERS
    schema = json.dumps({"title": "Event", "type": "object"})
    write = JSONSerializer(schema, SchemaRegistryClient({"url": registry.url}))
    context = SerializationContext(pipeline.topic, MessageField.VALUE)
    values = [write(json.loads(event(number)), context) for number in range(400)]
    for partition in range(pipeline.partitions):
        mine = values[partition :: pipeline.partitions]
        pipeline.produce_raw([*mine, b"{}", b"\0\0\0\0\x4d{}"], partition=partition)
    assert pipeline.run_to_end().process.returncode == 0
    verdict = pipeline.verify()
    assert verdict["rows"] == 400 and not verdict["missing"] and not verdict["duplicated"]
    settings = [word for name, value in LETTERS.items() for word in ("--set", f"{name}={value}")]
    done = pipeline.command("dead-letters", *settings, "--output", "json")
    *letters, _ = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(letters) == 2 * pipeline.partitions, done.stderr


def test_text_is_one_column_whatever_is_in_it(pipeline: Pipeline) -> None:
    configure(
        pipeline,
        (f'schema = "{SCHEMA}"', 'format = "string"\nschema = "line STRING NOT NULL"'),
        ('key = ["event_id"]\n', ""),
        ('partition_by = "day"\n', ""),
    )
    texts = ["", "plain", "two\nlines", '{"id": 1}', "ä\u2028", "\0"]
    for partition in range(pipeline.partitions):
        pipeline.produce_raw([f"{partition}:{text}".encode() for text in texts], partition=partition)
    assert pipeline.run_to_end().process.returncode == 0
    pipeline.assert_exact(len(texts) * pipeline.partitions)
