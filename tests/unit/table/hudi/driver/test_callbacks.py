"""The driver's callback port on a real JVM, with Py4J's own server in it: it answers who has the token."""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass, field
from typing import Any

import pytest

from table.errors import Refused
from table.hudi.driver.callbacks import StrangersAreCounted, start_callbacks
from tests.unit.table.hudi.driver.conftest import SECRET

WAIT_S = 10.0


@dataclass
class Counter:
    """Something that the JVM calls."""

    calls: list[str] = field(default_factory=list)

    def run(self) -> None:
        self.calls.append("run")

    class Java:
        implements = ("java.lang.Runnable",)


def called_from_a_thread_of_its_own(gateway: Any, counter: Counter) -> None:
    thread = gateway.jvm.java.lang.Thread(counter)
    thread.start()
    thread.join()


def says(gateway: Any, command: bytes) -> bytes:
    """What a stranger who says this is answered, until the connection is closed."""
    with socket.create_connection(("127.0.0.1", gateway._callback_server.port), timeout=WAIT_S) as stranger:
        stranger.sendall(command)
        heard = b""
        try:
            while answer := stranger.recv(1_000):
                heard += answer
        except ConnectionResetError:
            pass
        except TimeoutError:
            heard += b"... and the connection is kept"
        return heard


def call_of_every_object(gateway: Any) -> bytes:
    names = list(gateway.gateway_property.pool.dict)
    assert names, "there is nothing that could be called"
    return b"".join(b"c\n%s\nrun\ne\n" % name.encode() for name in names)


def test_the_jvm_calls_back_from_any_thread(gateway: Any) -> None:
    start_callbacks(gateway)
    counter = Counter()
    called_from_a_thread_of_its_own(gateway, counter)
    executor = gateway.jvm.java.util.concurrent.Executors.newSingleThreadExecutor()
    executor.submit(counter).get()
    executor.shutdown()
    start_callbacks(gateway)  # again, as each of those who need it does
    called_from_a_thread_of_its_own(gateway, counter)
    assert len(counter.calls) == 3


def test_a_stranger_on_the_callback_port_calls_nothing_and_hears_nothing(gateway: Any) -> None:
    start_callbacks(gateway)
    counter = Counter()
    called_from_a_thread_of_its_own(gateway, counter)
    assert says(gateway, call_of_every_object(gateway)) == b""
    refusal = says(gateway, b"A\nguessed\ne\n" + call_of_every_object(gateway))
    assert SECRET.encode() not in refusal
    assert len(refusal) < 10, "a refusal, and nothing of what was asked for"
    assert counter.calls == ["run"]
    called_from_a_thread_of_its_own(gateway, counter)
    assert counter.calls == ["run", "run"]


def test_a_port_that_somebody_opened_to_everybody_is_refused(gateway: Any) -> None:
    gateway.start_callback_server(gateway.callback_server_parameters)
    with pytest.raises(Refused, match="without a token"):
        start_callbacks(gateway)


def test_strangers_are_a_line_each_time_they_double_and_no_stack_traces(
    gateway: Any, caplog: pytest.LogCaptureFixture
) -> None:
    counted = StrangersAreCounted()
    from py4j.protocol import Py4JAuthenticationError

    error = Py4JAuthenticationError("x")
    record = logging.LogRecord("py4j", logging.ERROR, "", 0, "x", None, (type(error), error, None))
    with caplog.at_level(logging.WARNING):
        assert not any(counted.filter(record) for _ in range(1_000))
    assert len([one for one in caplog.records if one.name == "table.hudi.driver.callbacks"]) == 10
    assert counted.filter(logging.LogRecord("py4j", logging.ERROR, "", 0, "x", None, None))
