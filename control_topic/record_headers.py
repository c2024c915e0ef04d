"""A record's headers, which anybody may have written."""

from __future__ import annotations

from operator import methodcaller

from confluent_kafka import Message

Headers = list[tuple[str, str | bytes | None]]

READ = methodcaller("headers")
"""Not a call of the interpreter's own: once it is warm it does not look whether such a call both answers and
fails, which confluent-kafka's does, and what is in that answer ends the process."""


def headers_of(record: Message) -> Headers | None:
    """None where they cannot be read. Not to be called twice for one record.

    Kafka asks that a header's name be UTF-8, and no broker looks: confluent-kafka raises where one is not.
    """
    try:
        return list(READ(record) or ())
    except (SystemError, UnicodeDecodeError):
        return None
