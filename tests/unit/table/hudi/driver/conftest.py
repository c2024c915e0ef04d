"""A JVM with Py4J's own server, made as Spark makes its own, with a secret; Spark adds nothing to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters

SECRET = "s" * 32
END_S = 30.0
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


@pytest.fixture
def java(tmp_path: Path) -> Iterator[int]:
    """The port of its server."""
    source = tmp_path / "Server.java"
    source.write_text(SERVER, encoding="utf-8")
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    command = ["java", "-cp", str(py4j), str(source), SECRET]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.communicate("end\n" if process.poll() is None else None, timeout=END_S)


@pytest.fixture
def gateway(java: int) -> Iterator[Any]:
    """A connection to it, as PySpark makes its own."""
    made = ClientServer(
        java_parameters=JavaParameters(port=java, auth_token=SECRET, auto_convert=True),
        python_parameters=PythonParameters(port=0, eager_load=False),
    )
    yield made
    made.shutdown()
