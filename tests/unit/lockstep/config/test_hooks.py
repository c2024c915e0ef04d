"""`[hooks]`: whom to tell, and secrets that are never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.config import Config, InvalidConfiguration, from_json, from_mapping, load
from lockstep.config.hooks import host_of, resolve_lineage, resolve_webhook
from lockstep.errors import ConfigError

SECRET = "correct-horse-battery-staple"
KNOWN = {"TOKEN": SECRET, "HOOK": f"https://hooks.example.org/services/{SECRET}", "BAD": f"{SECRET}\r\nX: y"}


def config_of(**hooks: Any) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["events"]},
            "record": {"schema": "event_id STRING", "on_error": "dead_letter"},
            "table": {"path": "file:///data/lake/events", "name": "events"},
            "hooks": hooks,
        }
    )


def problems_of(**hooks: Any) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        config_of(**hooks)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_nobody_is_told_unless_that_is_said() -> None:
    hooks = config_of().hooks
    assert not (hooks.topic or hooks.webhook or hooks.openlineage or hooks.hive)


COMPLETE = {"complete_every": "24h", "complete_folder": "file:///data/complete"}


def complete(event_time: str = "_kafka_timestamp", **hooks: Any) -> Config:
    asked = config_of().to_mapping() | {"hooks": {**COMPLETE, **hooks}}
    return from_mapping({**asked, "record": {**asked["record"], "event_time": event_time}})


def test_what_is_complete_is_told_of_a_declared_event_time_beside_the_table() -> None:
    hooks = complete(complete_folder="file:///data//lake/events-complete/").hooks
    assert (hooks.complete_every_ms, hooks.complete_folder) == (
        86_400_000,
        "file:///data/lake/events-complete",
    )


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ({"event_time": ""}, "nothing is complete by an event time that is not declared"),
        ({"complete_every": "90s"}, "hooks.complete_every: not in whole minutes"),
        ({"complete_every": "0s"}, "hooks.complete_folder: means nothing without hooks.complete_every"),
        ({"complete_folder": "/data/complete"}, "has no scheme: write the whole URI"),
        ({"complete_folder": "s3a://bucket/complete"}, "not where the table is, file://"),
        ({"complete_folder": "file:///data/lake/events"}, "in the table's own folder"),
        ({"complete_folder": "file:///data/lake/events/done"}, "in the table's own folder"),
        ({"complete_folder": "ftp://a/b"}, "ftp:// is not supported"),
    ],
)
def test_what_cannot_be_told_of_as_complete_is_refused(hooks: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=said):
        complete(**hooks)


@pytest.mark.parametrize("topic", ["events", "events.dlq", "lockstep-control-events"])
def test_a_topic_that_is_used_already_is_refused(topic: str) -> None:
    assert "name another" in problems_of(topic=topic)


@pytest.mark.parametrize(
    "address",
    [
        f"ftp://{SECRET}",
        f"jobs.example.org/{SECRET}",
        f"https://user:{SECRET}@jobs.example.org/",
        f"https://jobs.example.org/#{SECRET}",
        f"https://jobs.example.org/a b{SECRET}",
        f"https://jobs.example.org:port/{SECRET}",
        f"https:///{SECRET}",
        f"https://jobs.example.org/\u2603{SECRET}",
        "${env:not a name}",
        "${vault:" + SECRET + "}",
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(address: str) -> None:
    assert "hooks.webhook: " in problems_of(webhook=address)
    assert "hooks.openlineage: " in problems_of(openlineage=address)


def test_a_secret_in_a_header_is_a_reference() -> None:
    for name in ("Authorization", "authorization", "Cookie", "X-Api-Key", "X-Auth-Token"):
        assert 'write "${env:NAME}"' in problems_of(webhook="http://h/", webhook_headers={name: SECRET})
    headers = {"Authorization": "Bearer ${env:TOKEN}", "X-Team": "lake"}
    config = config_of(webhook="https://jobs.example.org/x", webhook_headers=headers)
    address, resolved = resolve_webhook(config.hooks, environment=KNOWN)
    assert address == "https://jobs.example.org/x"
    assert resolved == {"Authorization": f"Bearer {SECRET}", "X-Team": "lake"}


@pytest.mark.parametrize(
    "headers",
    [
        {"X Y": "1"},
        {"X\r\nY": "1"},
        {"Host": "h"},
        {"Content-Length": "1"},
        {"X": "a\r\nY: b"},
        {"X": "\u2603"},
    ],
)
def test_what_is_no_header_is_refused(headers: dict[str, str]) -> None:
    assert "hooks.webhook_headers." in problems_of(webhook="http://h/", webhook_headers=headers)


def test_a_secret_that_is_no_header_is_refused_where_it_is_read_without_its_value() -> None:
    for headers in ({"Authorization": "${env:BAD}"}, {"Authorization": "${env:MISSING}"}):
        config = config_of(webhook="http://h/", webhook_headers=headers)
        with pytest.raises(ConfigError) as caught:
            resolve_webhook(config.hooks, environment=KNOWN)
        assert "hooks.webhook_headers.Authorization" in str(caught.value) and SECRET not in str(caught.value)
    config = config_of(webhook="${env:BAD}")
    with pytest.raises(ConfigError) as caught:
        resolve_webhook(config.hooks, environment=KNOWN)
    assert "hooks.webhook" in str(caught.value) and SECRET not in str(caught.value)


def test_nothing_shows_a_secret_and_of_an_address_the_host_alone() -> None:
    config = config_of(
        webhook=f"https://jobs.example.org:8443/{SECRET}?x={SECRET}",
        webhook_headers={"X-Team": SECRET, "Authorization": "${env:TOKEN}"},
        openlineage=f"https://lineage.example.org/{SECRET}",
        openlineage_api_key="${env:TOKEN}",
    )
    shown = config.redacted()["hooks"]
    assert shown["webhook"] == "https://jobs.example.org:8443"
    assert shown["webhook_headers"] == {"X-Team": "***", "Authorization": "${env:TOKEN}"}
    assert SECRET not in str(config.redacted()) and SECRET not in repr(config)
    assert from_json(config.to_json()) == config


def test_an_address_may_be_a_secret_as_a_whole() -> None:
    config = config_of(webhook="${env:HOOK}", openlineage="${env:HOOK}", openlineage_api_key="${env:TOKEN}")
    assert resolve_webhook(config.hooks, environment=KNOWN) == (KNOWN["HOOK"], {})
    assert resolve_lineage(config.hooks, environment=KNOWN) == (KNOWN["HOOK"], SECRET)
    assert host_of(KNOWN["HOOK"]) == "https://hooks.example.org"
    assert config.redacted()["hooks"]["webhook"] == "${env:HOOK}"


def test_what_means_nothing_is_refused() -> None:
    assert "means nothing" in problems_of(webhook_headers={"X": "1"})
    assert "means nothing" in problems_of(openlineage_api_key="${env:TOKEN}")
    to_file = {"openlineage": "file:///tmp/lineage.json", "openlineage_api_key": "${env:TOKEN}"}
    assert "means nothing to a file" in problems_of(**to_file)
    assert "absolute path" in problems_of(openlineage="file://lineage.json")
    assert "hooks.openlineage_namespace" in problems_of(openlineage_namespace=" ")


def test_a_metastore_has_addresses_and_names_that_hive_knows() -> None:
    assert config_of(hive="thrift://a:9083, thrift://b:9083").hooks.hive == "thrift://a:9083,thrift://b:9083"
    for wrong in (
        "a:9083",
        "thrift://a",
        "thrift://a:0",
        "thrift://a:99999",
        "http://a:9083",
        "thrift://a:1,",
    ):
        assert "hooks.hive: " in problems_of(hive=wrong)
    assert "hooks.hive_database: " in problems_of(hive_database="a-b")
    assert "hooks.hive_table: " in problems_of(hive="thrift://a:9083", hive_table="a.b")


def test_the_command_line_takes_no_literal_secret_of_a_header(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text("")
    with pytest.raises(InvalidConfiguration) as caught:
        load(file, sets=[f"hooks.webhook_headers.Authorization=Bearer {SECRET}"], environment={})
    assert "a secret, given on a command line" in str(caught.value) and SECRET not in str(caught.value)
