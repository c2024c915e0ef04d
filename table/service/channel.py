"""What both ends of the table service's connection agree on."""

from __future__ import annotations

TOKEN_KEY = "lockstep-token"
"""The metadata key of the run's token."""

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
KEEPALIVE_MS = 30_000

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
)
