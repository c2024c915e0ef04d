"""Properties of a Java client as librdkafka takes them, held against librdkafka itself."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.migrate.clients import RANGES, RENAMED, SAME_NAME, UNLIMITED
from lockstep.migrate.sheet import Verdict
from tests.unit.lockstep.migrate.test_rules import line, translated
from tests.unit.lockstep.migrate.theirs import ICEBERG, S3, STOCKS


def test_librdkafka_knows_every_name_that_is_handed_to_it() -> None:
    values = {
        "security.protocol": "plaintext",
        "check.crcs": "true",
        "enable.metrics.push": "false",
        "sasl.oauthbearer.token.endpoint.url": "https://host/token",
    }
    for name in SAME_NAME:
        Consumer({"group.id": "a", "log_level": "0", name: values.get(name, "50000")}).close()
    assert set(RENAMED.values()) <= set(RANGES)


AROUND = {name: (low - 1, low, high, high + 1, -1, 0, 2**31 - 1) for name, (low, high) in RANGES.items()}
"""Numbers of a Java client, which takes more than librdkafka does."""


@pytest.mark.parametrize("name", RANGES)
def test_librdkafka_takes_every_number_that_is_handed_to_it(name: str) -> None:
    """Else a report says *same* of a property with which no run starts."""
    theirs = next((java for java, ours in RENAMED.items() if ours == name), name)
    for number in AROUND[name]:
        sheet = translated("s3", {**S3, f"consumer.override.{theirs}": str(number)})
        verdict = line(sheet, f"consumer.override.{theirs}").verdict
        kafka = sheet.settings["source.kafka"]
        assert isinstance(kafka, dict)
        low, high = RANGES[name]
        taken = low <= number <= high or (number == -1 and name in UNLIMITED)
        assert verdict is (Verdict.SAME if taken else Verdict.DIFFERS), number
        Consumer({"group.id": "a", "log_level": "0", **kafka}).close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client.dns.lookup", "default"),
        ("fetch.max.bytes", "2147483647"),
        ("max.partition.fetch.bytes", "2147483647"),
        ("ssl.cipher.suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        ("sasl.mechanism", "AWS_MSK_IAM"),
    ],
)
def test_what_librdkafka_refuses_is_not_handed_to_it(name: str, value: str) -> None:
    sheet = translated("s3", {**S3, f"consumer.override.{name}": value})
    told = line(sheet, f"consumer.override.{name}")
    assert told.verdict is Verdict.NO_EQUAL and told.why and "source.kafka" not in sheet.settings


@pytest.mark.parametrize("name", sorted({*RANGES, *RENAMED}))
@pytest.mark.parametrize("value", ["", "x", "1.5"])
@pytest.mark.parametrize(("kind", "given", "prefix"), [("s3", S3, "consumer."), ("streamer", STOCKS, "")])
def test_a_value_that_is_not_a_number_is_reported_and_ends_nothing(
    kind: str, given: dict[str, str], prefix: str, name: str, value: str
) -> None:
    translation = translated(kind, {**given, prefix + name: value})
    assert line(translation, prefix + name).verdict is Verdict.NO_EQUAL


def test_a_mechanism_that_librdkafka_has_not_asks_for_another_one() -> None:
    module = "software.amazon.msk.auth.iam.IAMLoginModule required;"
    iam = {"consumer.override.sasl.mechanism": "AWS_MSK_IAM", "consumer.override.sasl.jaas.config": module}
    sheet = translated("s3", {**S3, **iam})
    assert "instead of AWS_MSK_IAM: SCRAM-SHA-512" in sheet.open["source.kafka.sasl.mechanism"]
    assert "source.kafka.sasl.username" not in sheet.open


@pytest.mark.parametrize(
    "options",
    [
        'clientId="kc" clientSecret="hidden" scope="lake read" extension_logicalCluster="lkc-1"',
        'oauth.client.id="kc" oauth.client.secret="hidden" oauth.scope="lake read" '
        'oauth.token.endpoint.uri="https://t/token" extension_logicalCluster=lkc-1',
    ],
    ids=["Kafka's", "Strimzi's"],
)
def test_a_client_of_oauth_keeps_its_scope_and_extensions(options: str) -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    given = {
        **S3,
        "consumer.override.sasl.mechanism": "OAUTHBEARER",
        "consumer.override.sasl.jaas.config": f"{module} {options};",
        "consumer.override.sasl.oauthbearer.token.endpoint.url": "https://t/token",
    }
    sheet = translated("s3", given)
    assert sheet.settings["source.kafka"] == {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "kc",
        "sasl.oauthbearer.client.secret": "${env:KAFKA_CLIENT_SECRET}",
        "sasl.oauthbearer.scope": "lake read",
        "sasl.oauthbearer.token.endpoint.url": "https://t/token",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
    }
    assert "source.kafka.sasl.oauthbearer.token.endpoint.url" not in sheet.open
    without = translated("s3", {name: one for name, one in given.items() if not name.endswith(".url")})
    assert without.says("source.kafka.sasl.oauthbearer.token.endpoint.url") is ("endpoint" in options)


def test_change_events_say_themselves_which_rows_they_delete() -> None:
    given = {
        **ICEBERG,
        "iceberg.tables.cdc-field": "_cdc.op",
        "transforms": "d",
        "transforms.d.type": "io.tabular.iceberg.connect.transforms.DebeziumTransform",
    }
    sheet = translated("iceberg", given)
    assert sheet.settings["record.envelope"] == "debezium"
    assert "table.delete_field" not in sheet.open and "table.delete_field" not in sheet.settings
    without = translated("iceberg", {name: one for name, one in given.items() if "transforms" not in name})
    assert "_cdc.op" in without.open["table.delete_field"]


def test_values_of_glues_registry_are_named_as_such() -> None:
    glue = "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter"
    sheet = translated("s3", {**S3, "value.converter": glue})
    assert "AWS Glue's registry" in sheet.open["record.format"]


@given(st.dictionaries(st.sampled_from(sorted(RANGES)), st.integers(-1, 2**31 - 1), max_size=6))
@settings(max_examples=40, deadline=None)
def test_librdkafka_takes_any_numbers_together(numbers: dict[str, int]) -> None:
    """It refuses some numbers beside others, all of which a Java client takes."""
    theirs = {ours: java for java, ours in RENAMED.items()}
    given = {f"consumer.override.{theirs.get(name, name)}": str(value) for name, value in numbers.items()}
    kafka = translated("s3", {**S3, **given}).settings.get("source.kafka", {})
    assert isinstance(kafka, dict)
    Consumer({"group.id": "a", "log_level": "0", **kafka}).close()
