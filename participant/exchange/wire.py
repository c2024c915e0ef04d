"""How rows travel between workers: a stream of gRPC, whose messages are frames.

A frame is bytes that the table's kind made of rows (`table.port.Handing`), or `END`, which is the last.
Without it a stream has broken off, however it ends: to the taker a connection that was lost may look like one
that was closed.
"""

from __future__ import annotations

from collections.abc import Mapping

from table.service.channel import TOKEN_KEY

SERVICE = "lockstep.exchange.v1.Exchange"
METHOD = "Hand"
HAND = f"/{SERVICE}/{METHOD}"

END = b""
"""No rows are packed into nothing."""

TRANSACTION, SENDER, TAKER = "lockstep-transaction", "lockstep-sender", "lockstep-taker"
"""Metadata of a stream: which transaction it is of, and between which incarnations."""


def metadata(token: str, transaction: str, *, sender: str, taker: str) -> tuple[tuple[str, str], ...]:
    """Of a stream."""
    return (TOKEN_KEY, token), (TRANSACTION, transaction), (SENDER, sender), (TAKER, taker)


def named(given: Mapping[str, str | bytes], key: str) -> str:
    """What a stream says by this key; empty where that is nothing."""
    value = given.get(key, "")
    return value if isinstance(value, str) else ""
