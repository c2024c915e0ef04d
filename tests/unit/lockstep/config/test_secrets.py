"""Secrets are recognized by name and by value, and names and values that only look like some are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.config.secrets import (
    HIDDEN,
    holds_secret,
    is_secret_name,
    redact,
    secrets_within,
    shown,
    without_secrets,
)

NAMES = [
    "sasl.password",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.key.pem",
    "sasl.jaas.config",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.jwt.assertion",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "value.converter.basic.auth.user.info",
    "value.converter.bearer.auth.token",
    "confluent.license",
    "value.converter.bearer.auth.client.secret",
    "aws.access.key.id",
    "aws.secret.access.key",
    "s3.sse.customer.key",
    "s3.proxy.password",
    "iceberg.catalog.credential",
    "iceberg.catalog.header.Authorization",
    "iceberg.catalog.s3.secret-access-key",
    "iceberg.catalog.s3.access-key-id",
    "iceberg.catalog.s3.sse.key",
    "iceberg.catalog.gcs.oauth2.token",
    "iceberg.catalog.jdbc.password",
    "iceberg.catalog.oauth2.credential",
    "iceberg.catalog.adls.sas-token.acct.dfs.core.windows.net",
    "iceberg.catalog.adls.connection-string.acct",
    "spark.hadoop.fs.azure.sas.cont.acct.blob.core.windows.net",
    "spark.hadoop.fs.azure.sas.fixed.token.acct.dfs.core.windows.net",
    "spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth2.client.secret.acct.dfs.core.windows.net",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.session.token",
    "spark.hadoop.fs.s3a.encryption.key",
    "spark.hadoop.fs.gs.auth.service.account.private.key",
    "spark.authenticate.secret",
    "spark.ssl.keyPassword",
    "spark.kubernetes.authenticate.driver.oauthToken",
    "parquet.encryption.key.list",
    "hoodie.write.commit.callback.http.api.key",
    "hoodie.write.commit.callback.http.custom.headers",
    "transforms.f.passphrase",
    "transforms.f.sas",
    "transforms.f.hmac.key",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_SAS_TOKEN",
    "X-Api-Key",
    "X-Auth-Token",
    "Cookie",
]
OTHER_NAMES = [
    "sasl.username",
    "ssl.ca.pem",
    "ssl.certificate.pem",
    "sasl.oauthbearer.token.endpoint.url",
    "client.id",
    "key.converter",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.key.location",
    "sasl.kerberos.keytab",
    "record.key",
    "table.key",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.table.recordkey.fields",
    "session.timeout.ms",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.login.callback.handler.class",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "hadoop.security.credential.provider.path",
    "value.converter.basic.auth.credentials.source",
    "fs.azure.sas.token.provider.type",
    "fs.gs.auth.service.account.private.key.file",
    "parquet.encryption.column.keys",
    "spark.kubernetes.driver.secrets.my-secret",
    "spark.kubernetes.driver.secretKeyRef.NAME",
    "spark.kubernetes.authenticate.submission.oauthTokenFile",
    "spark.io.encryption.keySizeBits",
    "spark.io.encryption.enabled",
    "spark.ssl.enabled",
    "storage.credentials",
]
PEM = "-----BEGIN RSA PRIVATE KEY-----\nPLANTED\n-----END RSA PRIVATE KEY-----"
VALUES = {
    'x.PlainLoginModule required username="me" password="PLANTED";': "PLANTED",
    "x.ScramLoginModule required username=me password=PLANTED;": "PLANTED",
    "x.OAuthBearerLoginModule required clientId='a' clientSecret='PLANTED' scope=x;": "PLANTED",
    "https://me:PLANTED@registry:8081/path": "PLANTED",
    "https://PLANTED@registry:8081": "PLANTED",
    "https://catalog.example.org/v1?token=PLANTED&a=b": "PLANTED",
    "https://hooks.example.org/?a=b&api_key=PLANTED#c": "PLANTED#c",
    "sv=2022-11-02&ss=b&sig=PLANTED%3D": "PLANTED%3D",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=PLANTED==": "PLANTED==",
    "Endpoint=sb://a/;SharedAccessKeyName=n;SharedAccessKey=PLANTED": "PLANTED",
    "Bearer PLANTED-0123": "PLANTED-0123",
    '{"user": "me", "password": "PLANTED"}': "PLANTED",
    "id AKIAPLANTED012345678 of AWS": "AKIAPLANTED012345678",
    "eyJQTEFOVEVE0.eyJQTEFOVEVE0.signature": "eyJQTEFOVEVE0.eyJQTEFOVEVE0.signature",
    f"a\n{PEM}\nb": PEM,
}
OTHER_VALUES = [
    "abfss://container@account.dfs.core.windows.net/lake",
    "hdfs://nn:8020/user@example.org/x",
    "https://registry.example.org:8081/subjects/a-value/versions/latest?x=1",
    "Basic authentication, as the registry wants it",
    "config=5, orig=3, passed=7",
    "token STRING, password STRING",
    'password="${file:/run/secrets/kafka:password}"',
    "https://${env:USER}:${env:PASSWORD}@host",
    "",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_is_recognized_by_its_name(name: str) -> None:
    assert is_secret_name(name) and shown(name, "x") == HIDDEN and holds_secret(name, "x")
    assert shown(name, "${env:X}") == "${env:X}" and not holds_secret(name, "${env:X}")
    assert not holds_secret(name, "") and not holds_secret(name, "true")


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_name_that_sounds_like_a_secret_is_shown(name: str) -> None:
    assert not is_secret_name(name) and shown(name, "x") == "x"


@pytest.mark.parametrize("value", VALUES)
def test_a_secret_is_recognized_by_its_value(value: str) -> None:
    assert VALUES[value] in secrets_within(value)
    assert "PLANTED" not in without_secrets(value) and HIDDEN in without_secrets(value)
    assert holds_secret("client.id", value) and "PLANTED" not in redact({"client.id": value})["client.id"]


@pytest.mark.parametrize("value", OTHER_VALUES)
def test_a_value_without_a_secret_is_shown_as_it_is(value: str) -> None:
    assert without_secrets(value) == value and [*secrets_within(value)] == []
    assert not holds_secret("client.id", value)


def test_the_arn_of_a_key_is_no_secret() -> None:
    """`--conf spark.hadoop.fs.s3a.encryption.key=arn:aws:kms:…` has to be possible."""
    arn = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd"
    assert not holds_secret("spark.hadoop.fs.s3a.encryption.key", arn)
    assert shown("spark.hadoop.fs.s3a.encryption.key", arn) == arn


@given(st.text(max_size=300), st.sampled_from([*VALUES]), st.text(max_size=300))
def test_text_around_a_secret_does_not_bring_it_back(before: str, value: str, after: str) -> None:
    """Hiding a second time changes nothing, and what was hidden once is not shown after it."""
    told = without_secrets(f"{before} {value} {after}")
    assert "PLANTED" not in told.replace(before, "").replace(after, "") or "PLANTED" in before + after
    assert without_secrets(told) == told


def test_json_without_its_secrets_is_json() -> None:
    given = {
        "openlineage_api_key": "",
        "password": 'PLANTED "in" quotes \\',
        "token": "${env:TOKEN}",
        "inside": {"secret": "PLANTED"},
        "text": "password = 'PLANTED one'",
    }
    for indent in (None, 1):
        told = without_secrets(json.dumps(given, indent=indent))
        assert "PLANTED" not in told
        try:
            left = json.loads(told)
        except ValueError:
            left = None
        assert left == {
            **given,
            "password": HIDDEN,
            "inside": {"secret": HIDDEN},
            "text": f"password = '{HIDDEN}'",
        }
