"""Log lines of Kafka clients while a broker is away."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from control_topic.quiet import KAFKA_CLIENTS, OncePerWindow


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
    assert quiet.filter(record("control_topic.kafka.librdkafka", "a"))
    assert quiet.filter(record("control_topic.kafka.librdkafka", "b"))
    assert [quiet.filter(record("table.hudi.table", "same")) for _ in range(3)] == [True] * 3
    assert [quiet.filter(record("lockstep.source", "i", logging.INFO)) for _ in range(3)] == [True] * 3


def test_that_a_broker_is_away_is_one_sentence_a_window_whichever_client_says_it() -> None:
    now_s = [0.0]
    quiet = OncePerWindow(away_window_s=30, clock_s=lambda: now_s[0])
    first = record(
        "lockstep.source",
        "FAIL [rdkafka#consumer-3] [thrd:127.0.0.1:9092/1]: 127.0.0.1:9092/1: Connect to ipv4#127.0.0.1:9092"
        " failed: Connection refused (after 0ms in state CONNECT)",
    )
    assert quiet.filter(first)
    assert first.getMessage() == (
        "Kafka does not answer (Connect to ipv4#127.0.0.1:9092 failed: Connection refused):"
        " it is waited for, and nothing is lost"
    )
    others = [
        record("control_topic.kafka", "Trouble reading the control topic c: 1/1 brokers are down"),
        record("control_topic.kafka.librdkafka", "REQTMOUT: Timed out 1 in-flight, 0 retry-queued"),
        record("lockstep.source", "FAIL: Disconnected: connection closed by peer", logging.INFO),
    ]
    assert [quiet.filter(one) for one in others] == [False] * 3
    now_s[0] = 30.0
    again = record("control_topic.kafka", "Trouble writing to the control topic c: 1/1 brokers are down")
    assert quiet.filter(again)
    assert again.getMessage().endswith("nothing is lost (and 3 more like it)")


CLIENTS = re.compile(r"\b(?:Consumer|Producer|AdminClient)\(")
ROOT = Path(__file__).resolve().parents[3]


def test_every_client_of_kafka_logs_where_the_filter_listens() -> None:
    """The demo's and the settings' check of a client that never connects aside."""
    rooms = (
        "control_topic",
        "participant",
        "table",
        "lockstep/brokers",
        "lockstep/verify",
        "lockstep/driver",
    )
    texts = {file: file.read_text(encoding="utf-8") for room in rooms for file in (ROOT / room).rglob("*.py")}
    makers = {file: text for file, text in texts.items() if CLIENTS.search(text)}
    assert len(makers) > 5, "what makes clients is found"
    for file, text in makers.items():
        assert "logger=" in text, f"{file}: its clients log to stderr"
        names = re.findall(r"getLogger\((f?)\"([^\"]+)\"\)", text)
        told = [name.replace("{__name__}", "x") if f else name for f, name in names]
        assert any(name.endswith(KAFKA_CLIENTS) for name in told) or "starting" in text, f"{file}: {told}"
