"""`[registry]` and the schemas of records: what goes together, and that no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.config import Config
from lockstep.config.load import from_json, from_mapping
from lockstep.config.problems import InvalidConfiguration
from lockstep.errors import ConfigError

URL = {"registry.url": "https://registry.example.org"}
AVRO = {"record.format": "avro"}
CONFLUENT = {**AVRO, **URL}
PROTOBUF = {"record.format": "protobuf"}
FILE = {"record.framing": "none", "record.schema_file": "/a.desc", "record.message": "a.B"}


def config_of(given: dict[str, object]) -> Config:
    sections: dict[str, dict[str, object]] = {
        "pipeline": {"id": "events"},
        "source": {"bootstrap_servers": "b:9092", "topics": ["events"]},
        "record": {"schema": "id STRING"},
        "table": {"path": "file:///t", "name": "t"},
    }
    for setting, value in given.items():
        section, _, name = setting.partition(".")
        sections.setdefault(section, {})[name] = value
    return from_mapping(sections)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (AVRO, 'registry.url: missing; record.framing = "confluent" needs it'),
        ({"record.key_format": "avro"}, "registry.url: missing"),
        (URL, "registry: means nothing without avro, protobuf or json_schema"),
        (
            {**CONFLUENT, "record.framing": "none"},
            "registry: means nothing without avro, protobuf or json_schema",
        ),
        ({**AVRO, "record.framing": "none"}, 'record.schema_file: missing; record.framing = "none" needs'),
        (
            {"record.key_format": "avro", "record.framing": "single_object"},
            'record.key_schema_file: missing; record.framing = "single_object" needs',
        ),
        (PROTOBUF, 'registry.url: missing; record.framing = "confluent" needs it'),
        (
            {**PROTOBUF, "record.framing": "single_object"},
            "record.framing: single_object is none of protobuf's: it has confluent, none",
        ),
        (
            {**PROTOBUF, "record.framing": "none"},
            'record.schema_file: missing; record.framing = "none" needs a file with the schema of protobuf',
        ),
        (
            {**PROTOBUF, "record.framing": "none"},
            'record.message: missing; record.framing = "none" needs the name of the message of protobuf',
        ),
        (
            {"record.key_format": "protobuf", "record.framing": "none", "record.key_schema_file": "/a.desc"},
            "record.key_message: missing; record.framing",
        ),
        ({**PROTOBUF, **URL, "record.message": "a.B"}, "record.message: means nothing to"),
        ({**AVRO, **FILE}, 'record.message: means nothing to record.format = "avro"'),
        ({**PROTOBUF, **FILE, **URL}, "registry: means nothing without avro, protobuf"),
        ({**PROTOBUF, **FILE, "record.message": "a..B"}, "'a..B' is not the full name of a message"),
        ({**PROTOBUF, **FILE, "record.message": "a" * 501}, "is not the full name of a message"),
        ({"record.format": "json_schema"}, "registry.url: missing"),
        (
            {"record.format": "json_schema", "record.framing": "none"},
            "record.framing: none is none of json_schema's: it has confluent",
        ),
        ({"record.format": "string", **URL}, "registry: means nothing without avro, protobuf or json_schema"),
        ({**CONFLUENT, "record.schema_file": "/a.avsc"}, "record.schema_file: means nothing to"),
        ({"record.key_schema_file": "/a.avsc"}, "record.key_schema_file: means nothing to"),
        ({**CONFLUENT, "registry.value_subjects": []}, "registry.value_subjects: 0 subjects are listed"),
        ({**CONFLUENT, "registry.key_subjects": ["{topics}-key"]}, "'{topics}-key' is no subject"),
        ({**CONFLUENT, "registry.key_subjects": [""]}, "registry.key_subjects: '' is no subject"),
        ({**AVRO, "record.framing": "confluence"}, "did you mean confluent?"),
        ({**AVRO, "record.framing": "none", "record.schema_file": "a.avsc"}, "is not an absolute path"),
        ({**CONFLUENT, "registry.user": "u"}, "registry.password: missing; registry.user needs it"),
        ({**CONFLUENT, "registry.password": "${env:P}"}, "registry.user: missing; registry.password"),
        ({**CONFLUENT, "registry.cluster": "c"}, "registry.token: missing; registry.cluster needs it"),
        ({**CONFLUENT, "registry.key_file": "/k"}, "registry.certificate_file: missing"),
        ({**CONFLUENT, "registry.ca_file": "k"}, "registry.ca_file: 'k' is not an absolute path"),
        (
            {
                **CONFLUENT,
                "registry.user": "u",
                "registry.password": "${env:P}",
                "registry.token": "${env:T}",
            },
            "registry.token: given beside registry.user",
        ),
        ({**CONFLUENT, "registry.token": "zyxwv"}, "registry.token: not a reference to a secret"),
        ({**AVRO, "registry.url": "https://u:zyxwv@registry"}, "registry.url: not the address of a"),
        ({**AVRO, "registry.url": "https://registry?token=zyxwv"}, "registry.url: not the address of a"),
        ({**AVRO, "registry.url": "registry:8081"}, "registry.url: not the address of a"),
        ({**AVRO, "registry.url": "http://a,http://a/"}, "http://a is listed more than once"),
        (
            {**PROTOBUF, **URL, "record.envelope": "debezium"},
            "debezium is read from avro, json, json_schema, not from protobuf",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_without_a_secret_in_it(
    given: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        config_of(given)
    assert sentence in str(caught.value)
    assert "zyxwv" not in str(caught.value)


def test_a_registrys_settings_have_their_secrets_where_they_are_used_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "token"
    secret.write_text("zyxwv\n", encoding="utf-8")
    monkeypatch.setenv("REGISTRY_PASSWORD", "zyxwv")
    for given in (
        {"registry.token": f"${{file:{secret}}}", "registry.cluster": "lsrc-1"},
        {"registry.user": "u", "registry.password": "${env:REGISTRY_PASSWORD}"},
    ):
        config = config_of({**CONFLUENT, **given})
        settings = config.record_spec().registry
        assert settings is not None and "zyxwv" in (settings.token, settings.password)
        shown = [config.to_json(), repr(config), repr(settings), repr(config.record_spec())]
        assert not any("zyxwv" in text for text in (*shown, str(config.redacted())))
        assert from_json(config.to_json()) == config


def test_json_asks_no_registry_and_wants_no_headers() -> None:
    record = config_of({}).record_spec()
    assert record.registry is None and not record.wants_headers
    assert config_of(CONFLUENT).record_spec().wants_headers


def test_a_schemas_file_is_read_on_the_driver_and_travels_as_text(tmp_path: Path) -> None:
    file = tmp_path / "a.avsc"
    given = {**AVRO, "record.framing": "none", "record.schema_file": str(file)}
    with pytest.raises(ConfigError, match=r"record.schema_file .* cannot be read: No such file"):
        config_of(given).record_spec()
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        config_of(given).record_spec()
    file.write_bytes(b" " * 1_048_577)
    with pytest.raises(ConfigError, match="larger than 1,048,576 bytes: it is no schema"):
        config_of(given).record_spec()
    file.write_text('"string"', encoding="utf-8")
    assert config_of(given).record_spec().schema_text == '"string"'


def test_a_schemas_file_of_protobuf_travels_as_base64_with_the_messages_name(tmp_path: Path) -> None:
    file = tmp_path / "a.desc"
    file.write_bytes(b"\xff\0")
    record = config_of({**PROTOBUF, **FILE, "record.schema_file": str(file)}).record_spec()
    assert (record.schema_text, record.message, record.wants_headers) == ("/wA=", "a.B", False)
    assert config_of({**PROTOBUF, **URL}).record_spec().wants_headers
