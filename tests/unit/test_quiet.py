"""Log lines of Kafka clients while a broker is away."""

from __future__ import annotations

import logging

from control_topic.quiet import OncePerWindow


def record(name: str, text: str, level: int = logging.ERROR) -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 1, text, (), None)


def test_a_client_says_the_same_thing_once_a_window_and_then_how_often_it_wanted_to() -> None:
    now_s = [0.0]
    quiet = OncePerWindow(window_s=10, clock_s=lambda: now_s[0])
    refused = [quiet.filter(record("lockstep.source", f"connect to port {n} refused")) for n in range(5)]
    assert refused == [True, False, False, False, False]
    now_s[0] = 10.0
    again = record("lockstep.source", "connect to port 9 refused")
    assert quiet.filter(again)
    assert again.getMessage() == "connect to port 9 refused (and 4 more like it)"


def test_other_messages_and_other_loggers_are_never_kept_back() -> None:
    quiet = OncePerWindow(window_s=10, clock_s=lambda: 0.0)
    assert quiet.filter(record("control_topic.kafka.client", "a"))
    assert quiet.filter(record("control_topic.kafka.client", "b"))
    assert [quiet.filter(record("table.hudi.client.x", "same")) for _ in range(3)] == [True] * 3
    assert [quiet.filter(record("lockstep.source", "i", logging.INFO)) for _ in range(3)] == [True] * 3
