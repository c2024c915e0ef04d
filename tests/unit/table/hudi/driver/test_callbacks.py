"""The driver's callback port on a real JVM, with Py4J's own server in it: it answers who has the token.

The JVM is made as Spark makes its own, with a secret; Spark itself adds nothing to this.
"""

from __future__ import annotations

import logging
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters

from table.errors import Refused
from table.hudi.driver.callbacks import StrangersAreCounted, start_callbacks

SECRET = "s" * 32
WAIT_S = 10.0
SERVER = """
import java.net.InetAddress;

public class Server {
    public static void main(String[] arguments) throws Exception {
        py4j.ClientServer made = new py4j.ClientServer.ClientServerBuilder()
            .authToken(arguments[0]).javaPort(0).javaAddress(InetAddress.getByName("127.0.0.1")).build();
        System.out.println(((py4j.JavaServer) made.getJavaServer()).getListeningPort());
        System.in.read();
        System.exit(0);
    }
}
"""


@dataclass
class Counter:
    """Something that the JVM calls."""

    calls: list[str] = field(default_factory=list)

    def run(self) -> None:
        self.calls.append("run")

    class Java:
        implements = ("java.lang.Runnable",)


@pytest.fixture
def java(tmp_path: Path) -> Iterator[int]:
    """The port of a JVM's Py4J server."""
    source = tmp_path / "Server.java"
    source.write_text(SERVER, encoding="utf-8")
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    command = ["java", "-cp", str(py4j), str(source), SECRET]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.communicate("end\n", timeout=30)


@pytest.fixture
def gateway(java: int) -> Iterator[Any]:
    """A connection to it, as PySpark makes its own."""
    made = ClientServer(
        java_parameters=JavaParameters(port=java, auth_token=SECRET, auto_convert=True),
        python_parameters=PythonParameters(port=0, eager_load=False),
    )
    yield made
    made.shutdown()


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
