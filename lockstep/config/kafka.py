"""What every Kafka client is made with: resolved at the place of use, never stored, never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.config.model import Config
from lockstep.config.properties import resolve_references
from lockstep.config.secrets import HIDDEN, holds_secret, without_secrets
from lockstep.errors import ConfigError

HINTS = {
    "No provider for SASL mechanism GSSAPI": (
        ". The wheel of confluent-kafka has no Kerberos: install a librdkafka with it, and confluent-kafka "
        "from its source (pip install --no-binary confluent-kafka confluent-kafka), on driver and workers"
    ),
    "Unsupported SASL mechanism": ". There are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER",
}
"""Remedies by the text of librdkafka's error."""


def resolve_kafka(config: Config, *, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """librdkafka's properties with secrets resolved in this process, `bootstrap.servers` among them.

    Raises `ConfigError` naming the variable or the file that cannot be had, never a value.
    """
    resolved = resolve_references(config.source.kafka, environment=environment)
    return {**resolved, "bootstrap.servers": config.source.bootstrap_servers}


def checked_kafka(config: Config) -> dict[str, str]:
    """`resolve_kafka`, read by librdkafka: raises `ConfigError` for an unknown name, a wrong value, or values
    that do not go together as well.

    Makes a client of each kind, as a run's driver and workers will, and drops it; whether anybody answers is
    not waited for.
    """
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient

    properties = resolve_kafka(config)
    quiet: dict[str, Any] = {**properties, "log_level": "0"}
    try:
        AdminClient(quiet)
        Consumer({**quiet, "group.id": config.group_id}).close()
        Producer(quiet)
        if config.dead_letter_topics or config.hooks.topic:
            Producer({**quiet, "acks": "all", "enable.idempotence": True})
    except KafkaException as error:
        reason = error.args[0].str()
        for name, value in properties.items():
            if value and (holds_secret(name, value) or value != config.source.kafka.get(name, value)):
                reason = reason.replace(value, HIDDEN)
        reason = without_secrets(reason) + next((said for word, said in HINTS.items() if word in reason), "")
        raise ConfigError(f"source.kafka: librdkafka refuses the properties: {reason}") from None
    return properties
