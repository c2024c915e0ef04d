"""One POST: bounded in time and size, verified, and never sent on to another address.

Python's own client: it follows no redirects, reads no `.netrc`, and knows no proxy of the environment's.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

from lockstep.hooks.port import SinkError

ANSWER_BYTES_MAX = 65_536
"""Read of an answer, so that the server is not cut off while it speaks; none of it is kept."""
USER_AGENT = "lockstep"


class Poster:
    """`address`: http or https, checked. `headers`: sent to it, and to nobody else."""

    def __init__(self, address: str, headers: Mapping[str, str], *, timeout_s: float) -> None:
        parts = urlsplit(address)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"User-Agent": USER_AGENT, **headers}
        self._timeout_s = timeout_s
        # Of this system, and of SSL_CERT_FILE and SSL_CERT_DIR.
        self._context = ssl.create_default_context() if self._secure else None

    def post(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Raises `SinkError` for every answer but 2xx. What the server wrote is not repeated."""
        connection = self._connection()
        was_cut = threading.Event()
        cut = threading.Timer(self._timeout_s, _cut, [connection, was_cut])
        cut.daemon = True
        cut.start()
        try:
            connection.connect()
            if was_cut.is_set():  # when there was nothing to cut yet
                raise TimeoutError
            connection.request("POST", self._target, body, {**self._headers, **headers})
            with connection.getresponse() as answer:
                status = answer.status
                answer.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = isinstance(error, TimeoutError) or was_cut.is_set()
            raise SinkError(self._late() if late else _why(error)) from error
        finally:
            cut.cancel()
            connection.close()
        if was_cut.is_set():  # to the client that is an answer's end, which it may not have been
            raise SinkError(self._late())
        if not 200 <= status < 300:
            hint = ", and another address, which is not followed" if 300 <= status < 400 else ""
            raise SinkError(f"last answer {status}{_phrase(status)}{hint}")

    def connect(self) -> None:
        """Only see that somebody answers there, with a certificate that holds. Raises `SinkError`."""
        connection = self._connection()
        try:
            connection.connect()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SinkError(_why(error)) from error
        finally:
            connection.close()

    def _late(self) -> str:
        return f"no answer within {self._timeout_s:.0f} s"

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_s, context=self._context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)


def _cut(connection: http.client.HTTPConnection, was_cut: threading.Event) -> None:
    """A server that gives a byte from time to time would be waited for without an end."""
    was_cut.set()
    open_socket: socket.socket | None = connection.sock
    if open_socket is None:
        return
    try:
        socket.socket.shutdown(open_socket, socket.SHUT_RDWR)
    except OSError:
        return  # it is closed


def _phrase(status: int) -> str:
    """In our words: what the server calls it is its own text."""
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _why(error: Exception) -> str:
    """Never an exception's own text where that may hold what was sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"no answer that is HTTP ({type(error).__name__})"
