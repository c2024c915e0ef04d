"""The socket on which the JVM calls Python back, for the JVM that Spark started and for nobody else.

PySpark opens it without a token: any user of the machine could call the driver's Python objects, the check
before a commit among them. Py4J can ask for one, and here it does. What PySpark's pinned threads use on
Java's side loses its token where it is told the port (Py4J's `PythonClient.copyWith`): it is made anew.
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JAuthenticationError

from table.errors import Refused

log = logging.getLogger(__name__)

PY4J_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")

PINNED = "py4j.PythonClient"
"""The class of Java's side where every Python thread has a thread of the JVM, as is PySpark's default."""


IDLE_S = 30
"""How long Java keeps a connection that is not used; as Py4J has it."""


class StrangersAreCounted(logging.Filter):
    """Py4J logs a stack trace for everybody without the token; here it is one line each time they double."""

    def __init__(self) -> None:
        super().__init__()
        self.strangers = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if not (record.exc_info and isinstance(record.exc_info[1], Py4JAuthenticationError)):
            return True
        self.strangers += 1
        if not self.strangers & (self.strangers - 1):
            log.warning(
                "refused on the driver's callback port so far, for want of its token: %d. See who on this "
                "machine looks for open ports.",
                self.strangers,
            )
        return False


_STRANGERS = StrangersAreCounted()
for _name in PY4J_LOGGERS:
    logging.getLogger(_name).addFilter(_STRANGERS)


def start_callbacks(gateway: Any) -> None:
    """Let the JVM call Python objects; once for a gateway. Raises `Refused` where anybody could."""
    parameters = gateway.callback_server_parameters
    if gateway.__dict__.get("_callback_server") is not None:  # getattr would ask the JVM
        if not parameters.auth_token:
            raise Refused(
                "Py4J's callback server was started without a token before Lockstep was: any user of this "
                "machine could call into the driver. Let nothing else use callbacks in this application."
            )
        return
    parameters.auth_token = gateway.gateway_parameters.auth_token
    parameters.eager_load = parameters.daemonize = parameters.daemonize_connections = True
    parameters.port = 0
    gateway.start_callback_server(parameters)
    port = gateway._callback_server.server_socket.getsockname()[1]
    gateway._callback_server.port = gateway._python_proxy_port = port
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    server.resetCallbackClient(server.getCallbackClient().getAddress(), port)
    if server.getCallbackClient().getClass().getName() == PINNED:
        _authenticate(gateway, server, port, parameters.auth_token)


def _authenticate(gateway: Any, server: Any, port: int, token: str) -> None:
    """Java's side with the token: Py4J has a constructor for that, and no way to hand the result over."""
    java, known = gateway.jvm, server.getGateway()
    client = java.py4j.PythonClient(
        known,
        None,
        port,
        server.getCallbackClient().getAddress(),
        IDLE_S,
        java.java.util.concurrent.TimeUnit.SECONDS,
        java.javax.net.SocketFactory.getDefault(),
        server,
        True,
        0,
        token,
    )
    field = known.getClass().getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(known, client)
