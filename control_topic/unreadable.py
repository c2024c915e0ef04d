"""What librdkafka answers where the bytes that came are no records. Pure."""

from __future__ import annotations

from confluent_kafka import KafkaError

UNREADABLE = frozenset(
    {
        KafkaError._BAD_MSG,
        KafkaError._BAD_COMPRESSION,
        KafkaError._NOT_IMPLEMENTED,
        KafkaError._UNDERFLOW,
        KafkaError.INVALID_MSG,
        76,  # UNSUPPORTED_COMPRESSION_TYPE, which the client has no name for
    }
)
"""The client goes on asking for the same."""
