"""How the table's store is reached, as the configuration says it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lockstep.config import Config, InvalidConfiguration, from_json, from_mapping, load
from lockstep.config.storage import store_settings
from lockstep.errors import ConfigError
from table.store.hdfs.settings import HdfsSettings
from table.store.objects.settings import (
    AccountKey,
    Anonymous,
    AssumedRole,
    ClientSecret,
    Credentials,
    Encryption,
    FixedKeys,
    KeyFile,
    ManagedIdentity,
    ObjectSettings,
    Profile,
    ProviderChain,
    WebIdentity,
)
from table.store.settings import StoreSettings

SECRET = "correct-horse-battery-staple"
ROLE = "arn:aws:iam::123456789012:role/lake"
KEYS = {"credentials": "keys", "access_key": "${env:KEY}", "secret_key": "${env:SECRET}"}
AZURE = "abfss://lake@account.dfs.core.windows.net/events"
APPLICATION = {"tenant": "t", "client_id": "c", "client_secret": "${env:SECRET}"}
KNOWN = {"KEY": "AKIAKEY", "SECRET": SECRET, "TOKEN": "token"}


def config_of(path: str = "s3a://lake/events", **storage: Any) -> Config:
    return from_mapping(
        {
            "pipeline": {"id": "events"},
            "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["events"]},
            "record": {"schema": "event_id STRING"},
            "table": {"path": path, "name": "events"},
            "storage": storage,
        }
    )


def settings_of(path: str = "s3a://lake/events", **storage: Any) -> StoreSettings | None:
    config = config_of(path, **storage)
    return store_settings(config.table.path, config.storage, environment=KNOWN)


def problems_of(**storage: Any) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        config_of(**storage)
    return str(caught.value)


def test_a_table_on_a_file_system_needs_nothing_and_is_told_nothing() -> None:
    assert settings_of("file:///data/lake/events") is None
    assert "means nothing to a table on a file system" in problems_of(
        path="file:///data/lake/events", region="eu-central-1"
    )


def test_spellings_of_one_address_are_one() -> None:
    for spelled in ("s3://lake/events/", "s3n://lake/events", "S3A://lake/events"):
        assert config_of(spelled).table.path == "s3a://lake/events"


def test_what_the_section_says_is_how_the_store_is_reached() -> None:
    assert settings_of() == ObjectSettings()
    found = settings_of(
        endpoint="https://127.0.0.1:8333/",
        region="eu-central-1",
        path_style=True,
        encryption="aws:kms",
        kms_key="key",
        part_size="16MiB",
    )
    assert found == ObjectSettings(
        endpoint="https://127.0.0.1:8333",
        region="eu-central-1",
        path_style=True,
        encryption=Encryption(algorithm="aws:kms", kms_key="key"),
        part_bytes=16 << 20,
    )


@pytest.mark.parametrize(
    ("storage", "credentials"),
    [
        ({}, ProviderChain()),
        ({"credentials": "profile", "profile": "lake"}, Profile("lake")),
        ({"credentials": "role", "role": ROLE}, AssumedRole(arn=ROLE)),
        (
            {"credentials": "role", "role": ROLE, "profile": "me", "external_id": "${env:TOKEN}"},
            AssumedRole(arn=ROLE, profile="me", external_id="token"),
        ),
        (
            {"credentials": "role", "role": ROLE, "role_endpoint": "https://sts.example.org/"},
            AssumedRole(arn=ROLE, endpoint="https://sts.example.org"),
        ),
        (
            {"credentials": "web_identity", "role": ROLE, "token_file": "/t"},
            WebIdentity(arn=ROLE, token_file="/t"),
        ),
        (KEYS, FixedKeys("AKIAKEY", SECRET)),
        ({**KEYS, "session_token": "${env:TOKEN}"}, FixedKeys("AKIAKEY", SECRET, "token")),
    ],
)
def test_credentials_come_from_where_the_section_says(
    storage: Mapping[str, str], credentials: Credentials
) -> None:
    found = settings_of(**storage)
    assert found is not None and found.credentials == credentials
    assert pickle.loads(pickle.dumps(found)) == found, "workers get them with their task"


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ({"credentials": "keys"}, "storage.access_key: missing"),
        ({"credentials": "profile"}, "storage.profile: missing"),
        ({"credentials": "web_identity", "role": ROLE}, "storage.token_file: missing"),
        ({"access_key": "${env:KEY}"}, 'storage.access_key: means nothing to storage.credentials = "chain"'),
        ({"credentials": "profile", "profile": "a", "role": ROLE}, "storage.role: means nothing"),
        ({"encryption": "aws:kms", "endpoint": "http://127.0.0.1:1"}, "storage.endpoint: is http"),
        ({"role_endpoint": "https://sts.example.org"}, "storage.role_endpoint: means nothing"),
        ({"kms_key": "key"}, "storage.kms_key: means nothing without storage.encryption"),
    ],
)
def test_what_does_not_go_together_is_refused(storage: Mapping[str, str], said: str) -> None:
    assert said in problems_of(**storage)


@pytest.mark.parametrize(
    ("storage", "credentials"),
    [
        ({}, ProviderChain()),
        ({"credentials": "key_file", "key_file": "/run/lake.json"}, KeyFile("/run/lake.json")),
        ({"credentials": "none", "endpoint": "http://127.0.0.1:4443"}, Anonymous()),
    ],
)
def test_googles_credentials_come_from_where_the_section_says(
    storage: Mapping[str, str], credentials: Credentials
) -> None:
    found = settings_of("gs://lake/events", **storage)
    assert isinstance(found, ObjectSettings) and found.credentials == credentials
    assert found.endpoint == storage.get("endpoint", "")
    assert pickle.loads(pickle.dumps(found)) == found, "workers get them with their task"


@pytest.mark.parametrize(
    ("storage", "credentials"),
    [
        ({"credentials": "account_key", "account_key": "${env:SECRET}"}, AccountKey(SECRET)),
        (
            {"credentials": "client_secret", **APPLICATION},
            ClientSecret(tenant="t", client_id="c", secret=SECRET),
        ),
        ({"credentials": "managed_identity"}, ManagedIdentity()),
        ({"credentials": "managed_identity", "client_id": "c"}, ManagedIdentity("c")),
    ],
)
def test_azures_credentials_come_from_where_the_section_says(
    storage: Mapping[str, str], credentials: Credentials
) -> None:
    found = settings_of(AZURE, **storage)
    assert isinstance(found, ObjectSettings) and found.credentials == credentials
    assert pickle.loads(pickle.dumps(found)) == found, "workers get them with their task"
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("path", "storage", "said"),
    [
        (
            AZURE,
            {},
            '"chain" is none of a table on abfss://: give account_key, client_secret, managed_identity',
        ),
        (AZURE, {"credentials": "account_key"}, "storage.account_key: missing"),
        (AZURE, {"credentials": "client_secret", "tenant": "t"}, "storage.client_secret: missing"),
        (AZURE, {"credentials": "managed_identity", "region": "eu"}, "storage.region: means nothing"),
        (AZURE, {"credentials": "managed_identity", "tenant": "t"}, "storage.tenant: means nothing"),
        (
            AZURE,
            {"credentials": "managed_identity", "endpoint": "http://127.0.0.1:1"},
            "storage.endpoint: is http, and Hadoop sends the tokens",
        ),
        ("s3a://lake/events", {"account_key": "${env:SECRET}"}, "storage.account_key: means nothing"),
        ("gs://lake/events", {"region": "eu"}, "storage.region: means nothing to a table on gs://"),
        ("gs://lake/events", {"path_style": True}, "storage.path_style: means nothing to a table on gs://"),
        ("gs://lake/events", {"encryption": "AES256"}, "storage.encryption: means nothing"),
        ("gs://lake/events", {"config_folder": "/etc/h"}, "storage.config_folder: means nothing"),
        ("gs://lake/events", KEYS, "of a table on gs://: give chain, key_file, none"),
        ("gs://lake/events", {"credentials": "key_file"}, "storage.key_file: missing"),
        ("gs://lake/events", {"key_file": "/k"}, 'means nothing to storage.credentials = "chain"'),
        ("s3a://lake/events", {"credentials": "none"}, "of a table on s3a://: give chain, profile, role"),
        ("s3a://lake/events", {"key_file": "/k"}, "storage.key_file: means nothing"),
    ],
)
def test_what_is_of_another_store_is_refused(path: str, storage: Mapping[str, Any], said: str) -> None:
    assert said in problems_of(path=path, **storage)


def test_a_secret_is_a_reference_and_is_shown_nowhere() -> None:
    config = config_of(**KEYS)
    assert config.redacted()["storage"]["secret_key"] == "${env:SECRET}"
    found = settings_of(**KEYS)
    for shown in (repr(config), config.to_json(), repr(found), str(config.redacted())):
        assert SECRET not in shown
    assert from_json(config.to_json()) == config
    said = problems_of(credentials="keys", access_key="${env:KEY}", secret_key=SECRET)
    assert "storage.secret_key" in said and SECRET not in said


def test_a_secret_on_a_command_line_is_refused_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text('[table]\npath = "s3a://lake/events"\n', encoding="utf-8")
    with pytest.raises(InvalidConfiguration) as caught:
        load(
            path, environment={"LOCKSTEP_STORAGE__ACCESS_KEY": SECRET}, sets=[f"storage.secret_key={SECRET}"]
        )
    assert "storage.secret_key" in str(caught.value) and SECRET not in str(caught.value)


def test_a_secret_that_cannot_be_had_is_named_by_its_setting() -> None:
    config = config_of(**KEYS)
    with pytest.raises(ConfigError, match=r"storage\.secret_key: the environment variable SECRET is not set"):
        store_settings(config.table.path, config.storage, environment={"KEY": "k"})


def test_the_table_is_asked_for_where_its_store_is() -> None:
    assert config_of(region="eu-central-1").table_spec().storage == ObjectSettings(region="eu-central-1")
    assert SECRET not in repr(config_of().table_spec())


def test_a_table_on_hdfs_is_told_where_the_clusters_configuration_is_and_nothing_else() -> None:
    path = "hdfs://cluster/lake/events"
    assert settings_of(path) == HdfsSettings()
    assert settings_of(path, config_folder="/etc/hadoop/conf/") == HdfsSettings(
        config_folder="/etc/hadoop/conf"
    )
    assert "only storage.config_folder means anything" in problems_of(path=path, region="eu-central-1")
    assert "means nothing to a table on s3a://" in problems_of(config_folder="/etc/hadoop/conf")
    assert "means nothing to a table on a file system" in problems_of(
        path="file:///data/lake/events", config_folder="/etc/hadoop/conf"
    )
