"""What Kafka Connect says of any sink: who it is, what it reads, how, what becomes of bad records. Pure.

Source of the names: Kafka's ConnectorConfig and SinkConnectorConfig, and the transformations it comes with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lockstep.config.values import PIPELINE_ID_LENGTH_MAX
from lockstep.migrate.clients import keep_relations, translate_client
from lockstep.migrate.converters import json_with_schemas, translate_converter
from lockstep.migrate.sheet import Rules, Sheet, no_equal

OVERRIDES = "consumer.override."
WORKERS = ("consumer.", "key.converter", "value.converter", "bootstrap.servers")
"""What begins so in a worker's file is of each of its connectors."""
_TABLES_PER_TOPIC = "one table takes all topics; _kafka_topic says which a row is of"

_BY_COLUMNS = 'record.columns says it where the columns are known: new = "value.old"'
_COORDINATES = (
    "rows carry _kafka_topic, _kafka_partition, _kafka_offset, _kafka_timestamp; "
    'record.columns names others: name = "topic"'
)
_ROUTERS = "topics are as the broker has them, and rows go into one table"
_DEBEZIUM = "record.envelope reads change events: a row is as its source has it now, not one row a change"
TRANSFORMS: Mapping[str, str] = {
    "Cast": "record.schema says a column's type; what does not fit is a reject",
    "CopyValue": _BY_COLUMNS,
    "DmsTransform": (
        "of DMS nothing is read but the value's fields: upserts by record.columns and table.delete_field"
    ),
    "DropHeaders": "headers are read where a column wants them",
    "ExtractField": 'record.columns says it: name = "value.that.field"',
    "Filter": (
        "nothing is filtered on the way: rows that are not wanted are deleted, or left out where one reads"
    ),
    "Flatten": 'record.columns says it: address_city = "value.address.city"',
    "HeaderFrom": 'record.columns says it of headers: name = "header.name"',
    "HoistField": 'a column may be the whole value: record.columns, name = "value"',
    "InsertField": _COORDINATES,
    "InsertHeader": "headers are read, and never written",
    "JsonToMapTransform": "record.rest keeps what no column names, as JSON",
    "KafkaMetadataTransform": _COORDINATES,
    "MaskField": "leave the column out of record.schema",
    "MongoDebeziumTransform": (
        "of Debezium's events for MongoDB nothing is read: their rows are texts of JSON"
    ),
    "RegexRouter": _ROUTERS,
    "ReplaceField": f"leave columns out of record.schema; {_BY_COLUMNS}",
    "SetSchemaMetadata": "a table's columns have names and types, and nothing beside",
    "TimestampConverter": 'record.columns says it: at = "value.at as MILLIS"',
    "TimestampRouter": _ROUTERS,
    "TombstoneHandler": "a record without a value is a reject, or, with upserts, a delete",
    "TopicRegexRouter": _ROUTERS,
    "MessageTimestampRouter": _ROUTERS,
    "ValueToKey": "table.key names the fields of the record key",
}
"""A transformation, by its class's own name -> how its effect is had here. None of them runs."""
DEBEZIUM = frozenset({"ExtractNewRecordState", "DebeziumTransform"})


def _name(sheet: Sheet, name: str) -> None:
    identity = re.sub(r"[^A-Za-z0-9._-]+", "-", sheet.get(name)).lstrip("._-")[:PIPELINE_ID_LENGTH_MAX]
    if not identity:
        raise ValueError("no name that a pipeline can have")
    sheet.same(
        name, "pipeline.id", identity, "names the consumer group as well, which theirs calls connect-…"
    )


def _tasks(sheet: Sheet, name: str) -> None:
    sheet.same(name, "pipeline.workers", int(sheet.get(name)), "each takes a Spark slot; one more is needed")


def _topics(sheet: Sheet, name: str) -> None:
    topics = [one.strip() for one in sheet.get(name).split(",") if one.strip()]
    more = _TABLES_PER_TOPIC if len(topics) > 1 else ""
    if more:
        sheet.note(
            f"{len(topics)} topics go into one table. Where their schemas differ, a pipeline each: lockstep "
            "migrate --set source.topics=TOPIC --set pipeline.id=… --set table.path=…, once for each."
        )
    sheet.same(name, "source.topics", topics, more)


def _topics_regex(sheet: Sheet, name: str) -> None:
    sheet.must("source.topics", f"the topics that match {sheet.shown(name)}: they are named one by one")
    sheet.none(name, "topics are named one by one, so that a new one is somebody's decision")


def _tolerance(sheet: Sheet, name: str) -> None:
    topic = sheet.get("errors.deadletterqueue.topic.name")
    if sheet.get(name).lower() != "all":
        sheet.same(name, "record.on_error", "fail")
    elif topic:
        sheet.same(name, "record.on_error", "dead_letter")
    else:
        sheet.differs(name, "record.on_error", "dead_letter", "theirs are gone; here they are in <topic>.dlq")


def _dead_letters(sheet: Sheet, name: str) -> None:
    if sheet.get("errors.tolerance").lower() == "all" and sheet.get(name):
        sheet.same(name, "record.dead_letter_topic")
    else:
        sheet.none(name, "means nothing without errors.tolerance = all")


def _transforms(sheet: Sheet, name: str) -> None:
    if not sheet.get(name):
        sheet.same(name, why="there are none")
        return
    sheet.none(name, "no transformation of Connect's runs here: below, how the effect of each is had")


def _transform(sheet: Sheet, name: str) -> None:
    short = re.sub(r"\$(Key|Value)$", "", sheet.get(name)).rpartition(".")[2]
    if name.count(".") != 2 or not name.endswith(".type"):
        sheet.none(name, f"of {'.'.join(name.split('.')[:2])}, which does not run here")
    elif short in DEBEZIUM:
        sheet.put("table.kind", "upsert")
        sheet.differs(name, "record.envelope", "debezium", _DEBEZIUM)
    else:
        why = TRANSFORMS.get(
            short, "a class that is not known here, and does not run: do before, or after, what it does"
        )
        sheet.none(name, why)


def _client(sheet: Sheet, name: str) -> None:
    bare = name.removeprefix(OVERRIDES).removeprefix("consumer.")
    translate_client(sheet, name, bare)


_RETRIES = "whatever is away is waited out, and what fails by itself halts: docs/operations.md"
_LOGS = "a reject is logged, counted, and in the dead-letter topic with its reason"
RULES: Rules = {
    "name": _name,
    "connector.class": lambda sheet, name: sheet.differs(
        name, "", None, "lockstep run: a Spark application, no connector"
    ),
    "connector.plugin.version": no_equal("no plug-in is loaded"),
    "connector.client.config.override.policy": no_equal("source.kafka takes any property of librdkafka's"),
    "tasks.max": _tasks,
    "tasks.max.enforce": no_equal("pipeline.workers is kept to"),
    "topics": _topics,
    "topics.regex": _topics_regex,
    "config.action.reload": no_equal("a secret is read when a process starts"),
    "header.converter": no_equal("headers are read as bytes, where a column wants them (record.columns)"),
    "header.converter.*": no_equal("headers are read as bytes, where a column wants them (record.columns)"),
    "errors.tolerance": _tolerance,
    "errors.retry.timeout": no_equal(_RETRIES),
    "errors.retry.delay.max.ms": no_equal(_RETRIES),
    "errors.log.enable": no_equal(_LOGS),
    "errors.log.include.messages": no_equal("content is never logged"),
    "errors.deadletterqueue.topic.name": _dead_letters,
    "errors.deadletterqueue.topic.replication.factor": no_equal(
        "a dead-letter topic that is missing is made as the broker makes topics; make it yourself to say more"
    ),
    "errors.deadletterqueue.context.headers.enable": no_equal(
        "where a dead letter came from, and why, always is in its headers"
    ),
    "transforms": _transforms,
    "transforms.*": _transform,
    "predicates": no_equal("of transformations, none of which runs here"),
    "predicates.*": no_equal("of transformations, none of which runs here"),
    f"{OVERRIDES}*": _client,
    "consumer.*": _client,
    "bootstrap.servers": _client,
    "producer.override.*": no_equal("source.kafka is for all clients: say there what all of them need"),
    "admin.override.*": no_equal("source.kafka is for all clients: say there what all of them need"),
}


def translate_connect(sheet: Sheet, *, string_is_json: bool = False) -> None:
    """All that is Connect's own, and what has to be said where it says nothing."""
    sheet.apply(RULES)
    keep_relations(sheet)
    translate_converter(sheet, "value.converter", string_is_json=string_is_json)
    translate_converter(sheet, "key.converter")
    if json_with_schemas(sheet) and sheet.settings.get("record.envelope") != "debezium":
        sheet.put("record.envelope", "connect")
    if sheet.settings.get("table.kind") == "upsert":
        sheet.must("table.key", "the fields of the record key")
    sheet.must("pipeline.id", "who the pipeline is")
    sheet.must("source.topics", "the topics to read")
    sheet.must("source.bootstrap_servers", "the brokers, which are the worker's to say (--worker FILE)")


def with_worker(given: Mapping[str, str], worker: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Their connector with what its worker says for it, and what in the worker's file says nothing of it."""
    merged, left = dict(given), []
    for name, value in worker.items():
        if not name.startswith(WORKERS):
            left.append(name)
            continue
        converter = next((one for one in ("key.converter", "value.converter") if name.startswith(one)), "")
        if converter and converter in given:
            left.append(name)  # a connector's own converter has its own properties
            continue
        bare = name.removeprefix("consumer.")
        if name.startswith("consumer.") and f"{OVERRIDES}{bare}" in given:
            continue
        merged.setdefault(name, value)
    return merged, left
