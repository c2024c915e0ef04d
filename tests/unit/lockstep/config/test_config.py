"""The configuration: its layers, its sentences, its secrets, its document."""

from __future__ import annotations

import pickle
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from confluent_kafka import Consumer, Producer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lockstep.config import Config, InvalidConfiguration, from_json, from_mapping, load, resolve_kafka
from lockstep.config.document import DOCUMENT, generate
from lockstep.config.kafka import checked_kafka
from lockstep.config.model import SECTIONS
from lockstep.config.properties import KAFKA_OWNED
from lockstep.config.secrets import is_secret_name
from lockstep.errors import EXIT_USAGE, ConfigError
from participant.source.fetcher import fetch_settings
from participant.source.letter_senders import producer_settings
from table.watermark import MarkRule

CONTRACT = """
[pipeline]
id = "events"
workers = 2

[source]
bootstrap_servers = "127.0.0.1:9092"
topics = ["events"]
starting_offsets = "earliest"
on_data_loss = "fail"
reader = "auto"
kafka = { }

[record]
format = "json"
key_format = "json"
framing = "confluent"
schema_file = ""
key_schema_file = ""
message = ""
key_message = ""
decoder = "auto"
schema = "event_id STRING, user_id BIGINT, amount DOUBLE, day STRING"
columns = { }
rest = ""
on_schema_change = "auto"
envelope = "none"
decimal_handling = ""
unavailable_value = "__debezium_unavailable_value"
on_no_field = "reject"
on_error = "fail"
dead_letter_topic = ""
dead_letter_partitions = 1
max_rejects = ""
event_time = ""
event_time_unit = "ms"
lateness = "0s"
idle_after = "10m"
ahead_max = "1h"

[registry]
url = ""
user = ""
password = ""
token = ""
cluster = ""
ca_file = ""
certificate_file = ""
key_file = ""
key_password = ""
value_subjects = ["{topic}-value"]
key_subjects = ["{topic}-key"]
timeout = "10s"
cache_folder = ""

[table]
path = "file:///data/lake/events"
name = "events"
format = "hudi"
kind = "insert"
key = ["event_id"]
partition_by = "day"
ordering = ""
buckets = 16
delete_field = ""
kafka_columns = true
target_file_size = "120MB"
sort_by = []
bloom_filters = []
retention = "0ms"
retention_pattern = ""
retention_by = ""
hudi = { }

[partition]
max_age = 0
max_ahead = 0
beyond = "reject"

[transaction]
interval = "10s"
schedule = ""
align = "0ms"
zone = "UTC"
write_timeout = "60s"
write_limit = "10m"
writers_per_partition = 0
max_records = 0
max_bytes = "2GB"
max_consecutive_failures = 5

[services]
compaction = "async"
compaction_every = 10
clustering = "off"
clustering_files = 20
clustering_after = "2m"
clustering_every = 100
clustering_share = "25%"
cleaning = "async"
cleaning_every = 50
sweep_share = "1%"

[control]
topic = "lockstep-control-events"

[memory]
per_worker = "512MB"

[storage]
config_folder = ""
endpoint = ""
region = ""
path_style = false
credentials = "chain"
profile = ""
role = ""
role_endpoint = ""
external_id = ""
token_file = ""
access_key = ""
secret_key = ""
session_token = ""
key_file = ""
account_key = ""
tenant = ""
client_id = ""
client_secret = ""
encryption = ""
kms_key = ""
part_size = "8MiB"

[ui]
enabled = true
port = 8420
bind = "127.0.0.1"
token = ""
control = false
show_values = false

[metrics]
file = ""
file_period = "15s"

[log]
format = "text"

[hooks]
topic = ""
webhook = ""
webhook_headers = { }
webhook_timeout = "10s"
complete_every = "0s"
complete_folder = ""
openlineage = ""
openlineage_namespace = "lockstep"
openlineage_api_key = ""
hive = ""
hive_database = "default"
hive_table = ""
hive_period = "1m"
"""

MINIMAL: Mapping[str, Mapping[str, Any]] = {
    "pipeline": {"id": "events"},
    "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["events"]},
    "record": {"schema": "event_id STRING, day STRING"},
    "table": {"path": "file:///data/lake/events", "name": "events"},
}


def config_of(changes: Mapping[str, object] | None = None) -> Config:
    """The smallest configuration with some settings changed; None removes one."""
    mapping = {section: dict(values) for section, values in MINIMAL.items()}
    for setting, value in (changes or {}).items():
        section, _, name = setting.partition(".")
        mapping.setdefault(section, {})[name] = value
        if value is None:
            del mapping[section][name]
    return from_mapping(mapping)


def problems_of(changes: Mapping[str, object]) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        config_of(changes)
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(CONTRACT, encoding="utf-8")
    return path


def layered(
    path: Path,
    *,
    environment: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
    sets: Sequence[str] = (),
) -> Config:
    return load(path, environment=environment or {}, conf=conf, sets=sets)


# --- the contract -----------------------------------------------------------------------------


def test_the_contract_is_read_and_attributes_carry_their_units(file: Path) -> None:
    config = layered(file)
    assert (config.transaction.interval_ms, config.transaction.write_timeout_ms) == (10_000, 60_000)
    assert (config.transaction.max_bytes, config.transaction.max_records) == (2_000_000_000, 0)
    assert config.memory.per_worker_bytes == 512_000_000
    assert config.metrics.file_period_ms == 15_000
    assert config.table.target_file_bytes == 120_000_000
    assert config.record.ddl == "event_id STRING, user_id BIGINT, amount DOUBLE, day STRING"
    assert config.source.topics == ("events",)
    assert config.control.topic == "lockstep-control-events"


def test_the_contract_spells_out_every_setting_and_no_other() -> None:
    contract = tomllib.loads(CONTRACT)
    assert {section: set(values) for section, values in contract.items()} == {
        section: {field.alias or name for name, field in model.model_fields.items()}
        for section, model in SECTIONS.items()
    }


def test_what_the_contract_shows_is_what_the_defaults_are(file: Path) -> None:
    shown = layered(file)
    defaults = config_of(
        {"record.schema": shown.record.ddl, "table.key": ["event_id"], "table.partition_by": "day"}
    )
    assert defaults == shown


def test_the_pipelines_id_is_the_consumer_group_and_names_the_control_topic() -> None:
    config = config_of({"pipeline.id": "orders.eu"})
    assert config.group_id == "orders.eu"
    assert config.control.topic == "lockstep-control-orders.eu"


def test_a_watermark_is_moved_where_an_event_time_is_declared_and_another_one_is_another() -> None:
    assert config_of().mark_rule() is None
    asked = {
        "record.schema": "event_id STRING, day STRING, user_id BIGINT",
        "record.event_time": "_kafka_timestamp",
        "record.lateness": "2h",
        "record.idle_after": "30s",
    }
    rule = config_of(asked).mark_rule()
    assert rule == MarkRule(of="_kafka_timestamp", lateness_ms=7_200_000, idle_after_ms=30_000)
    in_seconds = config_of({**asked, "record.event_time": "user_id", "record.event_time_unit": "s"})
    rule = in_seconds.mark_rule()
    assert rule is not None and rule.of == "user_id:s"
    spec = in_seconds.record_spec()
    assert (spec.event_time, spec.event_time_unit, spec.ahead_max_ms) == ("user_id", "s", 3_600_000)


def test_an_empty_dead_letter_topic_means_one_for_each_source_topic() -> None:
    assert config_of().dead_letter_topic("events") == "events.dlq"
    assert config_of({"record.dead_letter_topic": "dead"}).dead_letter_topic("events") == "dead"


def test_dead_letter_topics_are_wanted_only_where_rejects_go_there() -> None:
    topics = {"source.topics": ["b", "a"]}
    assert config_of(topics).dead_letter_topics == ()
    asked = {**topics, "record.on_error": "dead_letter"}
    assert config_of(asked).dead_letter_topics == ("a.dlq", "b.dlq")
    assert config_of({**asked, "record.dead_letter_topic": "dead"}).dead_letter_topics == ("dead",)


@pytest.mark.parametrize(
    ("given", "kept"),
    [("", ""), (0, "0"), ("1000", "1000"), ("5 %", "5%"), ("0.5%", "0.5%"), ("100%", "100%")],
)
def test_rejects_are_limited_by_a_number_or_a_share(given: object, kept: str) -> None:
    asked = {"record.on_error": "dead_letter", "record.max_rejects": given}
    assert config_of(asked).record.max_rejects == kept


def test_a_limit_on_rejects_is_refused_where_none_are_set_aside() -> None:
    assert 'record.max_rejects: means nothing to record.on_error = "fail"' in problems_of(
        {"record.max_rejects": "5%"}
    )


def test_the_table_is_asked_for_what_the_configuration_says() -> None:
    spec = config_of(
        {
            "table.key": ["event_id"],
            "table.partition_by": "day",
            "table.target_file_size": "64MiB",
            "table.hudi": {"hoodie.cleaner.commits.retained": 20},
        }
    ).table_spec()
    assert (spec.path, spec.name, spec.mode) == ("file:///data/lake/events", "events", "insert")
    assert (spec.key_fields, spec.partition_fields) == (("event_id",), ("day",))
    assert spec.target_file_bytes == 64 * 2**20
    assert spec.properties == {"hoodie.cleaner.commits.retained": "20"}


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        config_of().pipeline.workers = 3  # type: ignore[misc]


# --- layers -----------------------------------------------------------------------------------


def test_the_strongest_layer_wins_one_by_one(file: Path) -> None:
    name = "transaction.interval"
    environment = {"LOCKSTEP_TRANSACTION__INTERVAL": "2s"}
    conf = {f"spark.lockstep.{name}": "3s", "spark.app.name": "other"}
    assert layered(file).transaction.interval_ms == 10_000
    assert layered(file, environment=environment).transaction.interval_ms == 2_000
    assert layered(file, environment=environment, conf=conf).transaction.interval_ms == 3_000
    sets = [f"{name}=9s", f"{name}=4s"]
    assert layered(file, environment=environment, conf=conf, sets=sets).transaction.interval_ms == 4_000


def test_layers_of_text_give_numbers_lists_and_truths(file: Path) -> None:
    config = layered(
        file,
        environment={"LOCKSTEP_PIPELINE__WORKERS": "3", "LOCKSTEP_SOURCE__TOPICS": "a, b"},
        conf={"spark.lockstep.table.kafka_columns": "False"},
        sets=['table.key=["event_id", "day"]', "table.partition_by="],
    )
    assert config.pipeline.workers == 3
    assert config.source.topics == ("a", "b")
    assert config.table.kafka_columns is False
    assert config.table.key == ("event_id", "day")
    assert config.table.partition_by == ()


def test_properties_are_overlaid_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    kafka = 'kafka = { security.protocol = "PLAINTEXT", "client.id" = "x", "socket.keepalive.enable" = true }'
    path.write_text(CONTRACT.replace("kafka = { }", kafka), encoding="utf-8")
    config = layered(
        path,
        environment={
            "LOCKSTEP_SOURCE__KAFKA__CLIENT_ID": "y",
            "LOCKSTEP_TABLE__HUDI": '{"hoodie.cleaner.commits.retained": 20}',
        },
        sets=['source.kafka."security.protocol"=SSL', "source.kafka.client.rack=r1"],
    )
    assert config.source.kafka == {
        "security.protocol": "SSL",
        "client.id": "y",
        "socket.keepalive.enable": "true",
        "client.rack": "r1",
    }
    assert config.table.hudi == {"hoodie.cleaner.commits.retained": "20"}


def test_variables_without_a_double_underscore_are_not_settings(file: Path) -> None:
    layered(file, environment={"LOCKSTEP_CACHE": "/somewhere", "OTHER__THING": "1"})


def test_a_problem_names_the_layer_that_it_came_from(file: Path) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        layered(
            file,
            environment={"LOCKSTEP_PIPELINE__WORKERS": "many"},
            conf={"spark.lockstep.transaction.max_records": "-1"},
            sets=["table.name=1st"],
        )
    sentence = str(caught.value)
    assert (
        "pipeline.workers: 'many' is not a whole number (environment LOCKSTEP_PIPELINE__WORKERS)" in sentence
    )
    assert (
        "transaction.max_records: -1 is not 0 or more (--conf spark.lockstep.transaction.max_records)"
        in sentence
    )
    assert "(--set table.name)" in sentence


def test_a_missing_file_and_one_that_is_not_toml_say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        layered(tmp_path / "none.toml")
    path = tmp_path / "broken.toml"
    path.write_text("[pipeline\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"is not TOML: .*line 1"):
        layered(path)


def test_a_set_without_an_equals_sign_is_refused_without_repeating_it(file: Path) -> None:
    with pytest.raises(ConfigError, match="has no '='"):
        layered(file, sets=["transaction.interval"])


# --- RFC-32's names ---------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["[hoodie]\n", ""])
def test_the_rfcs_names_are_taken_from_the_file(tmp_path: Path, header: str) -> None:
    path = tmp_path / "pipeline.toml"
    prefix = "" if header else "hoodie."
    own = f"{header}{prefix}kafka.commit.interval.secs = 7\n"
    contract = CONTRACT.replace('interval = "10s"\n', "")
    path.write_text(contract + own if header else own + contract, encoding="utf-8")
    assert layered(path).transaction.interval_ms == 7_000


def test_the_rfcs_names_are_taken_from_every_layer_with_a_note(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = layered(
        file,
        environment={"LOCKSTEP_HOODIE__KAFKA_COMMIT_INTERVAL_SECS": "6"},
        conf={"spark.lockstep.hoodie.kafka.coordinator.write.timeout.secs": "90"},
        sets=["hoodie.kafka.control.topic=mine"],
    )
    assert (config.transaction.interval_ms, config.transaction.write_timeout_ms) == (6_000, 90_000)
    assert config.control.topic == "mine"
    assert "hoodie.kafka.commit.interval.secs is taken as transaction.interval" in caplog.text


def test_a_setting_and_its_synonym_in_one_layer_contradict_each_other(file: Path) -> None:
    with pytest.raises(
        InvalidConfiguration, match=r"given twice, as control\.topic and as hoodie\.kafka\.control\.topic"
    ):
        layered(file, sets=["control.topic=a", "hoodie.kafka.control.topic=b"])


# --- unknown names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("transaction.intervall", "transaction.intervall: not a setting; did you mean transaction.interval?"),
        ("transaction.workers", "transaction.workers: not a setting; did you mean pipeline.workers?"),
        ("transactions.interval", "transactions: not a section; did you mean transaction?"),
        ("transaction.interval.ms", "did you mean transaction.interval?"),
        ("hoodie.kafka.commit.intervall.secs", "did you mean hoodie.kafka.commit.interval.secs?"),
    ],
)
def test_an_unknown_name_is_an_error_that_names_the_nearest(file: Path, setting: str, hint: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        layered(file, sets=[f"{setting}=1"])
    assert hint in str(caught.value)


def test_an_unknown_section_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(CONTRACT + "[tabel]\npath = 1\nname = 2\n[empty]\n", encoding="utf-8")
    with pytest.raises(InvalidConfiguration) as caught:
        layered(path)
    assert [problem.settings for problem in caught.value.problems] == [("tabel",), ("empty",)]


def test_all_problems_are_reported_at_once_and_what_is_missing_with_an_example() -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        from_mapping({"transaction": {"interval": 5, "max_bytes": "12 floppies"}})
    sentence = str(caught.value)
    assert 'pipeline.id: missing; write id = "events" or the like below [pipeline]' in sentence
    assert 'source.topics: missing; write topics = ["events"]' in sentence
    assert "transaction.interval: 5 has no unit" in sentence
    assert "transaction.max_bytes: 'floppies' is not a unit of a size" in sentence
    assert "control.topic" not in sentence
    assert caught.value.exit_code == EXIT_USAGE


def test_relations_of_sound_settings_are_checked_beside_broken_ones() -> None:
    sentence = problems_of({"pipeline.workers": 0, "transaction.interval": "2m"})
    assert "pipeline.workers: 0 is not 1 or more" in sentence
    assert "transaction.write_timeout: 1m is shorter than transaction.interval (2m)" in sentence


# --- single values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("pipeline.id", "a b", "is not an id"),
        ("pipeline.id", "x" * 201, "is not an id"),
        ("pipeline.workers", True, "True is not a whole number"),
        ("pipeline.workers", 2.0, "2.0 is not a whole number"),
        ("source.bootstrap_servers", "broker", "'broker' is not host:port"),
        ("source.bootstrap_servers", "b:70000", "is not host:port"),
        ("source.topics", [], "no topic is listed"),
        ("source.topics", ["a", "a"], "a is listed more than once"),
        ("source.topics", ["a/b"], "is not a topic's name"),
        ("source.topics", [".."], "is not a topic's name"),
        ("source.topics", ["x" * 250], "has 1 to 249 characters"),
        ("source.topics", "a", "is not a list"),
        ("source.starting_offsets", "latestt", "is not one of earliest, latest; did you mean latest?"),
        ("record.format", "xml", "'xml' is not one of json, avro, protobuf"),
        ("record.schema", " ", "empty; write the columns in Spark DDL"),
        ("record.on_error", "skip", "is not one of fail, dead_letter"),
        ("record.dead_letter_partitions", -1, "0"),
        ("record.unavailable_value", "hex:f", "behind hex: write hexadecimal digits, two for each byte"),
        ("record.unavailable_value", "hex:", "has no byte: leave it empty for no placeholder"),
        ("record.unavailable_value", "x" * 1_001, "1001 characters, at most 1000 are allowed"),
        ("record.max_rejects", "101%", 'neither a share of the records nor a number of them: write "5%"'),
        ("record.max_rejects", "many", "neither a share of the records nor a number of them"),
        ("record.max_rejects", -1, "neither a share of the records nor a number of them"),
        ("record.max_rejects", True, "neither a share of the records nor a number of them"),
        ("table.path", "s3://bucket", "it names no folder"),
        ("table.path", "s3a://bucket/a//b", "holds an empty"),
        ("table.path", "s3a://key:secret@bucket/t", "the address holds credentials"),
        ("table.path", "abfss://lake@account.dfs.core.windows.net", "it names no folder"),
        ("table.path", "abfss://lake@account.dfs.core.windows.net/a./t", "ends with a dot"),
        ("storage.config_folder", "conf", "is not an absolute path"),
        ("storage.endpoint", "localhost:9000", "not an address of a server"),
        ("storage.endpoint", "https://me:secret@host", "not an address of a server"),
        ("storage.endpoint", "https://host/bucket", "no path"),
        ("storage.credentials", "magic", "'magic' is not one of chain, profile, role, web_identity, keys"),
        ("storage.secret_key", "plain", "not a reference to a secret"),
        ("storage.secret_key", "${env:1A}", "does not name an environment variable"),
        ("storage.part_size", "1MiB", "at least 5MiB"),
        ("storage.encryption", "rot13", "is not one of"),
        ("table.path", "abfss://box@account/t", "no name of the kind of abfss://container@account.dfs"),
        ("table.path", "wasbs://box@account/t", "wasbs:// is not supported:"),
        ("storage.account_key", "plain", "not a reference to a secret"),
        ("table.path", "ftp://host/t", "ftp:// is not supported:"),
        ("table.path", "/data/t", "has no scheme: write the whole URI"),
        ("table.path", "file://data/t", "is not an absolute path"),
        ("table.path", "file:///", "is not an absolute path"),
        ("table.path", "file:///a/../b", "segment"),
        ("table.name", "1st", "is not a table's name"),
        ("table.kind", "replace", "'replace' is not supported"),
        ("table.buckets", 0, "0 is not 1 or more"),
        ("services.compaction", "sometimes", "'sometimes' is not one of async, inline, schedule, off"),
        ("services.clustering_every", 0, "0 is not 1 or more"),
        ("services.clustering_files", 1, "1 is not 2 or more"),
        ("services.clustering_share", "0%", "is no share from 1% to 100%"),
        ("services.clustering_share", 0.25, "is no share from 1% to 100%"),
        ("services.cleaning", "schedule", "'schedule' is not one of async, inline, off"),
        ("record.envelope", "maxwell", "'maxwell' is not one of none, "),
        ("table.key", ["event_id", "event_id"], "event_id is listed more than once"),
        ("table.target_file_size", 5, "5 has no unit"),
        ("transaction.interval", "10ms", "out of bounds: at least 100ms"),
        ("transaction.max_bytes", 5, "5 has no unit"),
        ("transaction.max_consecutive_failures", 0, "0 is not 1 or more"),
        ("control.topic", "a b", "is not a topic's name"),
        ("memory.per_worker", "1kB", "out of bounds: at least 1MB"),
        ("metrics.file", "events.prom", "is not an absolute path that ends with .prom"),
        ("metrics.file", "/var/events.txt", "is not an absolute path that ends with .prom"),
        ("metrics.file", "/var/lockstep/events.prom", 'has no "lockstep" in its name'),
        ("metrics.file_period", "100ms", "out of bounds: at least 1s"),
        ("source.kafka", "x", "not a table of properties"),
        ("source.kafka", {"a": [1]}, "a must be text, a number, true or false"),
    ],
)
def test_a_value_that_is_not_one_is_refused_with_a_sentence(
    setting: str, value: object, sentence: str
) -> None:
    text = problems_of({setting: value})
    assert f"{setting}: " in text
    assert sentence in text


def test_no_limit_on_bytes_is_a_bare_zero() -> None:
    assert config_of({"transaction.max_bytes": 0}).transaction.max_bytes == 0


def test_a_path_loses_its_trailing_slash() -> None:
    assert config_of({"table.path": "file:///data/my lake/"}).table.path == "file:///data/my lake"


# --- relations --------------------------------------------------------------------------------

UPSERT: Mapping[str, object] = {
    "record.schema": "id STRING, at DOUBLE, ts BIGINT, gone BOOLEAN",
    "table.kind": "upsert",
    "table.key": ["id"],
}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"table.key": []}, 'table.key: empty; table.kind = "upsert" needs the fields of the record key'),
        ({"table.ordering": "tz"}, "table.ordering: 'tz' is not a field of record.schema"),
        ({"table.ordering": "at"}, "table.ordering: column at: a DOUBLE cannot be an ordering field"),
        ({"table.ordering": "gone"}, "gone is BOOLEAN; rows are ordered by one of INT, BIGINT, TIMESTAMP"),
        ({"table.bloom_filters": ["ts"]}, "table.bloom_filters: means nothing to table.kind"),
        ({"table.delete_field": "ts"}, "table.delete_field: 'ts' is not BOOLEAN"),
        ({"table.delete_field": "away"}, "table.delete_field: 'away' is not a field of record.schema"),
        ({"table.kind": "insert", "table.ordering": "ts"}, "table.ordering: means nothing to table.kind"),
        ({"table.kind": "insert", "table.delete_field": "gone"}, "table.delete_field: means nothing"),
        ({"table.kind": "insert", "record.envelope": "debezium"}, 'needs table.kind = "upsert"'),
        ({"record.envelope": "debezium", "table.ordering": "ts"}, "debezium events say it themselves"),
        ({"record.envelope": "debezium", "table.partition_by": "ts"}, "'ts' is not in table.key: an update"),
        ({"table.hudi": {"hoodie.index.type": "BLOOM"}}, "is not taken: say it with table.kind"),
        ({"table.hudi": {"hoodie.archive.automatic": "true"}}, "not taken: say it with services.cleaning"),
        ({"table.hudi": {"hoodie.partition.ttl.inline": "true"}}, "not taken: it takes table partitions out"),
        (
            {"table.hudi": {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}},
            "exactly once needs 'non_blocking_concurrency_control'",
        ),
    ],
)
def test_what_upserts_need_is_asked_for_and_what_they_cannot_have_is_refused(
    changes: dict[str, object], sentence: str
) -> None:
    assert sentence in problems_of({**UPSERT, **changes})


@pytest.mark.parametrize("kind", [{}, UPSERT], ids=["insert", "upsert"])
@pytest.mark.parametrize(
    "name", ["column.stats.enable", "column.stats.column.list", "partition.stats.enable", "expression.enable"]
)
def test_an_index_that_loses_rows_is_refused(name: str, kind: dict[str, object]) -> None:
    name = f"hoodie.metadata.index.{name}"
    assert f"{name}: is refused: readers that skip files by it lose rows" in problems_of(
        {**kind, "table.hudi": {name: "true"}}
    )
    assert config_of({**kind, "table.hudi": {"hoodie.metadata.index.column.stats.enable": "false"}})


def test_rows_are_sorted_by_plain_columns() -> None:
    nested = {"record.schema": "id STRING, tags ARRAY<STRING>, day STRING", "services.clustering": "async"}
    assert "column tags: ARRAY cannot be what rows are sorted by" in problems_of(
        {**nested, "table.sort_by": ["day", "tags"], "table.key": ["id"]}
    )
    spec = config_of({"services.clustering": "async", "table.sort_by": ["day"]}).table_spec()
    assert spec.sort_fields == ("day",)


def test_change_events_are_ordered_by_their_position_in_the_source() -> None:
    config = config_of({**UPSERT, "record.envelope": "debezium"})
    spec = config.table_spec()
    assert (spec.ordering_field, spec.source_position) == ("_source_position", True)
    assert config_of({**UPSERT, "table.ordering": "ts"}).table_spec().ordering_field == "ts"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"control.topic": "events"}, "control.topic: events is also a source topic"),
        ({"table.sort_by": ["day"]}, 'table.sort_by: means nothing to services.clustering = "off"'),
        (
            {"table.sort_by": ["dya"], "services.clustering": "async"},
            "table.sort_by: 'dya' is not a field of record.schema; did you mean day?",
        ),
        (
            {"table.bloom_filters": ["amount"], "record.schema": "event_id STRING, day DATE, amount DOUBLE"},
            "table.bloom_filters: amount is DOUBLE; bloom filters are of STRING, INT, BIGINT",
        ),
        ({"table.bloom_filters": ["dya"]}, "'dya' is not a field of record.schema; did you mean day?"),
        ({"record.dead_letter_topic": "events"}, "record.dead_letter_topic: events is a source topic"),
        (
            {"record.dead_letter_topic": "lockstep-control-events"},
            "lockstep-control-events is the control topic",
        ),
        (
            {"record.on_error": "dead_letter", "source.topics": ["events", "events.dlq"]},
            "record.dead_letter_topic: events.dlq is a source topic",
        ),
        (
            {"record.on_error": "dead_letter", "source.topics": ["x" * 247]},
            "longer than the 249 characters",
        ),
        (
            {"source.kafka": {"queued.max.messages.kbytes": 100_000}, "memory.per_worker": "64MB"},
            "100000 KiB fetched ahead are more than memory.per_worker (64MB)",
        ),
        (
            {"table.key": ["event"]},
            "table.key: 'event' is not a field of record.schema; did you mean event_id?",
        ),
        (
            {"record.schema": "id DOUBLE, day STRING", "table.key": ["id"]},
            "table.key: column id: a DOUBLE cannot be a record key",
        ),
        ({"record.event_time": "dya"}, "record.event_time: 'dya' is not a field of record.schema"),
        ({"record.event_time": "day"}, "day is STRING: an event time is TIMESTAMP, TIMESTAMP_NTZ, DATE or"),
        ({"table.partition_by": "dayy"}, "table.partition_by: 'dayy' is not a field of record.schema"),
        ({"record.schema": "event_id STRINGG"}, "record.schema: "),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    changes: Mapping[str, object], sentence: str
) -> None:
    assert sentence in problems_of(changes)


@pytest.mark.parametrize("name", KAFKA_OWNED)
def test_a_property_that_lockstep_sets_itself_is_refused(name: str) -> None:
    assert f"source.kafka.{name}: set by Lockstep itself" in problems_of({"source.kafka": {name: "x"}})


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.datasource.hive_sync.enable",
        "hoodie.table.name",
        "hoodie.datasource.write.operation",
        "hoodie.clean.failed.writes.policy",
        "parquet.compression",
    ],
)
def test_a_property_that_hudi_would_ignore_or_that_is_ours_is_refused(name: str) -> None:
    text = problems_of({"table.hudi": {name: "EAGER", "hoodie.cleaner.commits.retained": "20"}})
    assert text.count("table.hudi.") == 1
    assert f"table.hudi.{name}: " in text


def test_a_schema_is_not_looked_at_where_a_command_does_not_need_it() -> None:
    mapping = {**MINIMAL, "record": {"schema": "not DDL at all, really"}}
    assert from_mapping(mapping, with_schema=False).record.ddl == "not DDL at all, really"


# --- secrets ----------------------------------------------------------------------------------

SECRET = "hunter2-and-more"


def test_a_secret_of_hudis_on_a_command_line_is_refused_and_where_it_belongs_is_said(file: Path) -> None:
    name = "table.hudi.hoodie.write.commit.callback.http.custom.headers"
    with pytest.raises(InvalidConfiguration, match="write it into the pipeline's file") as caught:
        layered(file, sets=[f"{name}=Authorization:{SECRET}"])
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.key.pem",
        "sasl.jaas.config",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.assertion.private.key.passphrase",
    ],
)
def test_a_literal_secret_on_a_command_line_is_refused_and_never_repeated(file: Path, name: str) -> None:
    for layer in (
        {"sets": [f"source.kafka.{name}={SECRET}"]},
        {"sets": [f'source.kafka={{"{name}": "{SECRET}"}}']},
        {"sets": [f"source.kafka.{name}=${{env:A}}{SECRET}"]},
        {"conf": {f"spark.lockstep.source.kafka.{name}": SECRET}},
    ):
        with pytest.raises(InvalidConfiguration) as caught:
            layered(file, **layer)  # type: ignore[arg-type]
        assert f"source.kafka.{name}: a secret, given on a command line" in str(caught.value)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.username",
        "ssl.ca.pem",
        "ssl.certificate.pem",
        "sasl.oauthbearer.token.endpoint.url",
        "client.id",
    ],
)
def test_what_is_no_secret_is_not_taken_for_one(name: str) -> None:
    assert not is_secret_name(name)


def test_a_reference_may_be_given_anywhere_and_stays_one_until_it_is_used(file: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text(f"{SECRET}\n", encoding="utf-8")
    config = layered(
        file,
        conf={"spark.lockstep.source.kafka.sasl.password": "${env:KAFKA_PASSWORD}"},
        sets=[f"source.kafka.ssl.key.pem=${{file:{key}}}"],
    )
    assert config.source.kafka["sasl.password"] == "${env:KAFKA_PASSWORD}"
    resolved = resolve_kafka(config, environment={"KAFKA_PASSWORD": "p"})
    assert resolved == {
        "bootstrap.servers": "127.0.0.1:9092",
        "sasl.password": "p",
        "ssl.key.pem": SECRET,
    }


def test_a_reference_that_leads_nowhere_names_what_is_missing(tmp_path: Path) -> None:
    config = config_of(
        {"source.kafka": {"sasl.password": "${env:NOPE}", "ssl.key.pem": f"${{file:{tmp_path}/none}}"}}
    )
    with pytest.raises(ConfigError) as caught:
        resolve_kafka(config, environment={})
    assert "source.kafka.sasl.password: the environment variable NOPE is not set" in str(caught.value)
    assert f"source.kafka.ssl.key.pem: {tmp_path}/none cannot be read: No such file" in str(caught.value)


@pytest.mark.parametrize("value", ["${vault:x}", "${env:1A}", "${file:relative}"])
def test_a_malformed_reference_is_refused(value: str) -> None:
    assert "source.kafka.sasl.password: " in problems_of({"source.kafka": {"sasl.password": value}})


def test_literal_secrets_are_never_shown() -> None:
    config = config_of({"source.kafka": {"sasl.password": SECRET, "ssl.key.pem": "${env:KEY}"}})
    assert SECRET not in repr(config)
    assert config.redacted()["source"]["kafka"] == {"sasl.password": "***", "ssl.key.pem": "${env:KEY}"}


def test_no_sentence_repeats_a_value_of_source_kafka() -> None:
    kafka = {"sasl.password": SECRET, "group.id": SECRET, "ssl.key.pem": [SECRET]}
    assert SECRET not in problems_of({"source.kafka": kafka, "table.kind": "replace"})


def test_a_property_that_librdkafka_does_not_know_is_named() -> None:
    checked_kafka(config_of({"source.kafka": {"client.id": "x"}}))
    with pytest.raises(ConfigError, match=r"security\.protocoll"):
        checked_kafka(config_of({"source.kafka": {"security.protocoll": "x"}}))


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"fetch.max.bytes": "1000"}, "message.max.bytes"),  # of consumers alone
        ({"session.timeout.ms": "500000"}, "max.poll.interval.ms"),
        ({"enable.idempotence": "true", "acks": "1"}, "acks"),  # of producers alone
    ],
)
def test_properties_that_do_not_go_together_are_named_before_anything_starts(
    properties: dict[str, str], named: str
) -> None:
    """Not by workers that die of them, one after the other."""
    with pytest.raises(ConfigError, match=named.replace(".", "[.]")):
        checked_kafka(config_of({"source.kafka": properties}))


@pytest.mark.parametrize("more", [{"record.on_error": "dead_letter"}, {"hooks.topic": "commits"}])
def test_properties_that_an_idempotent_producer_cannot_have_are_named_where_there_is_one(
    more: dict[str, str],
) -> None:
    kafka = {"source.kafka": {"max.in.flight": "10"}}
    checked_kafka(config_of(kafka))
    with pytest.raises(ConfigError, match=r"max[.]in[.]flight"):
        checked_kafka(config_of({**kafka, **more}))


@pytest.mark.parametrize(
    "kafka",
    [
        {},
        {"message.max.bytes": "2000000"},
        {"fetch.max.bytes": "5000000"},
        {"max.partition.fetch.bytes": "900000000"},
        {"session.timeout.ms": "250"},
        {"message.timeout.ms": "6000"},
        {"queued.max.messages.kbytes": "1"},
        {"linger.ms": "20000"},
    ],
)
def test_what_is_taken_before_anything_starts_the_workers_own_clients_take(kafka: dict[str, str]) -> None:
    """They add settings of their own, which librdkafka compares with those that were given."""
    config = config_of({"source.kafka": kafka, "record.on_error": "dead_letter"})
    properties = checked_kafka(config)
    Consumer(fetch_settings(properties, group="g", queue_bytes_max=64 << 20)).close()
    Producer(producer_settings(properties, batch_bytes_max=1 << 20))


@pytest.mark.parametrize(
    ("kafka", "said"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "The wheel of confluent-kafka has no Kerberos"),
        ({"sasl.mechanism": "AWS_MSK_IAM"}, "There are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER"),
    ],
)
def test_a_mechanism_that_librdkafka_does_not_have_is_refused_with_what_to_do(
    kafka: dict[str, str], said: str
) -> None:
    config = config_of({"source.kafka": {"security.protocol": "SASL_SSL", **kafka}})
    with pytest.raises(ConfigError, match=said):
        checked_kafka(config)


def test_oauth_without_a_way_to_fetch_tokens_is_refused() -> None:
    oauth = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    assert 'needs "sasl.oauthbearer.method" = "oidc"' in problems_of({"source.kafka": oauth})
    for more in ({"sasl.oauthbearer.method": "oidc"}, {"enable.sasl.oauthbearer.unsecure.jwt": "true"}):
        config_of({"source.kafka": {**oauth, **more}})


def test_what_librdkafka_says_never_holds_a_secret() -> None:
    config = config_of({"source.kafka": {"ssl.key.pem": SECRET, "security.protocol": "ssl"}})
    with pytest.raises(ConfigError) as caught:
        checked_kafka(config)
    assert SECRET not in str(caught.value)


# --- shipping ---------------------------------------------------------------------------------


@given(
    interval_ms=st.integers(100, 60_000),
    per_worker_bytes=st.integers(10**6, 10**12),
    max_bytes=st.one_of(st.just(0), st.integers(1_000, 10**12)),
    kafka_value=st.text(max_size=20).filter(lambda text: "${" not in text),
)
def test_a_configuration_comes_out_of_json_as_it_went_in(
    interval_ms: int, per_worker_bytes: int, max_bytes: int, kafka_value: str
) -> None:
    config = config_of(
        {
            "transaction.interval": f"{interval_ms}ms",
            "memory.per_worker": f"{per_worker_bytes}B",
            "transaction.max_bytes": f"{max_bytes}B" if max_bytes else 0,
            "source.kafka": {"client.id": kafka_value, "sasl.password": "${env:A}"},
        }
    )
    assert from_json(config.to_json()) == config
    assert pickle.loads(pickle.dumps(config)) == config


# --- the document -----------------------------------------------------------------------------


def test_the_document_is_what_the_definitions_generate() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == generate(), "run python -m lockstep.config.document"


def test_the_documents_smallest_file_is_a_configuration(tmp_path: Path) -> None:
    example = generate().split("```toml\n")[1].split("```")[0]
    path = tmp_path / "pipeline.toml"
    path.write_text(example, encoding="utf-8")
    assert layered(path).pipeline.id == "events"


def test_every_required_setting_has_an_example_and_every_setting_a_meaning() -> None:
    for model in SECTIONS.values():
        for name, field in model.model_fields.items():
            assert field.description, name
            assert not field.is_required() or field.examples, name


def test_every_value_that_a_setting_offers_is_explained() -> None:
    for model in SECTIONS.values():
        for name, field in model.model_fields.items():
            offered = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
            said = field.description or ""
            if "values are those of `" in said:
                continue
            unexplained = [value for value in offered if str(value) not in said]
            assert not unexplained, f"{name} offers {unexplained} and says nothing of them"
