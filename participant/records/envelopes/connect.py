"""Kafka Connect's envelope around JSON, `{"schema": …, "payload": …}`: a null payload deletes a row."""

from __future__ import annotations

from participant.records.envelopes.plain import Plain
from participant.records.null_payloads import NullPayloads
from participant.records.port import Asked, Decoder, Format


class Connect:
    """See `participant.records.port.Envelope`. Its values are objects with a field `payload`."""

    def decoder(self, asked: Asked, values: Format, keys: Format) -> Decoder:
        """Raises `SchemaError`."""
        inner = Plain().decoder(asked, values, keys)
        return NullPayloads(inner, needs_keys=True) if asked.upserts else inner
