"""What Hadoop's S3 connector is told, from the settings that the Python side obeys."""

from __future__ import annotations

import pytest

from table.errors import Refused
from table.kinds import HUDI, table_kind
from table.store.connectors import HadoopSettings, hadoop_settings
from table.store.location import Location
from table.store.objects.hadoop import CONNECTOR, SDK
from table.store.objects.settings import (
    AskedKeys,
    AssumedRole,
    Credentials,
    Encryption,
    FixedKeys,
    ObjectSettings,
    Profile,
    ProviderChain,
    WebIdentity,
)

OWN = "fs.s3a.bucket.lake."
KEYS = FixedKeys("the key", "the secret")


def told(settings: ObjectSettings) -> HadoopSettings:
    return hadoop_settings(Location.parse("s3a://lake/events"), settings)


def provider_of(credentials: Credentials) -> str:
    name = told(ObjectSettings(credentials=credentials)).plain[f"{OWN}aws.credentials.provider"]
    return name.rpartition(".")[2]


def test_only_a_table_in_an_object_store_fetches_its_connector() -> None:
    there, here = (table_kind(HUDI).needs(path) for path in ("s3://lake/events", "file:///lake/events"))
    assert there.packages == (*here.packages, CONNECTOR, SDK)
    assert not {CONNECTOR, SDK}.intersection(here.packages)
    assert set(there.reading) == {here.reading[0], CONNECTOR, SDK}


def test_endpoint_region_and_times_are_those_of_the_python_side_and_of_this_bucket_only() -> None:
    found = told(ObjectSettings(endpoint="http://127.0.0.1:1", region="eu-north-1", path_style=True))
    assert all(name.startswith(OWN) for name in found.plain)
    assert found.plain[f"{OWN}endpoint"] == "http://127.0.0.1:1"
    assert found.plain[f"{OWN}connection.ssl.enabled"] == "false"
    assert found.plain[f"{OWN}endpoint.region"] == "eu-north-1"
    assert found.plain[f"{OWN}path.style.access"] == "true"
    assert found.plain[f"{OWN}connection.timeout"] == "30000"
    provider = told(ObjectSettings())
    assert f"{OWN}endpoint" not in provider.plain and f"{OWN}endpoint.region" not in provider.plain


def test_keys_are_among_what_is_secret_and_in_nothing_that_is_shown() -> None:
    for keys in (KEYS, AskedKeys(lambda: KEYS)):
        found = told(ObjectSettings(credentials=keys))
        assert found.secret == {f"{OWN}access.key": "the key", f"{OWN}secret.key": "the secret"}
        assert "the secret" not in repr(found) and "the secret" not in str(dict(found.plain))
    with_token = told(ObjectSettings(credentials=FixedKeys("a", "b", "c")))
    assert with_token.secret[f"{OWN}session.token"] == "c"


def test_each_kind_of_credentials_has_its_provider() -> None:
    assert provider_of(ProviderChain()) == "DefaultAWSCredentialsProviderChain"
    assert provider_of(KEYS) == "SimpleAWSCredentialsProvider"
    assert provider_of(FixedKeys("a", "b", "c")) == "TemporaryAWSCredentialsProvider"
    assert provider_of(Profile("work")) == "ProfileCredentialsProvider"
    assert told(ObjectSettings(credentials=Profile("work"))).profile == "work"
    role = told(ObjectSettings(credentials=AssumedRole(arn="arn:aws:iam::1:role/r", profile="work")))
    assert role.plain[f"{OWN}assumed.role.arn"] == "arn:aws:iam::1:role/r" and role.profile == "work"
    identity = told(ObjectSettings(credentials=WebIdentity(arn="a", token_file="f")))
    assert identity.environment == {"AWS_ROLE_ARN": "a", "AWS_WEB_IDENTITY_TOKEN_FILE": "f"}


@pytest.mark.parametrize(
    ("endpoint", "region", "asked", "signed"),
    [
        ("", "eu-north-1", "sts.eu-north-1.amazonaws.com", "eu-north-1"),
        ("", "cn-north-1", "sts.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("http://127.0.0.1:1", "", "http://127.0.0.1:1", "us-east-1"),
        ("http://127.0.0.1:1", "here", "http://127.0.0.1:1", "here"),
    ],
)
def test_a_role_is_asked_for_in_the_buckets_region_or_where_the_settings_say(
    endpoint: str, region: str, asked: str, signed: str
) -> None:
    role = AssumedRole(arn="a", endpoint=endpoint)
    found = told(ObjectSettings(credentials=role, region=region)).plain
    assert found[f"{OWN}assumed.role.sts.endpoint"] == asked
    assert found[f"{OWN}assumed.role.sts.endpoint.region"] == signed
    unsaid = told(ObjectSettings(credentials=AssumedRole(arn="a"))).plain
    assert f"{OWN}assumed.role.sts.endpoint" not in unsaid


def test_what_hadoop_cannot_be_told_is_refused() -> None:
    for settings in (
        ObjectSettings(credentials=AssumedRole(arn="a", external_id="x")),
        ObjectSettings(encryption=Encryption(algorithm="aws:kms:dsse")),
    ):
        with pytest.raises(Refused):
            told(settings)
    with pytest.raises(Refused, match="file:// is not supported yet"):
        hadoop_settings(Location.parse("file:///lake/t"), ObjectSettings())


def test_encryption_is_named_as_hadoop_names_it() -> None:
    asked = Encryption(algorithm="aws:kms", kms_key="arn:aws:kms:key")
    found = told(ObjectSettings(encryption=asked))
    assert found.plain[f"{OWN}encryption.algorithm"] == "SSE-KMS"
    assert found.plain[f"{OWN}encryption.key"] == "arn:aws:kms:key"
