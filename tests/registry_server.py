"""A schema registry for tests: what Confluent documents of its REST interface, and faults that there are.

Schemas have one id wherever they are registered, and a GUID. Nothing is checked for compatibility. What of it
is claimed is held against the real client in tests/conformance/test_registry.py; docs/fakes.md lists it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import ssl
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.proto_files import compiled, encoded

WELL, HANG, DRIP, HTML, REDIRECT, ERROR, NONSENSE, LOST = (
    *("well", "hang", "drip", "html", "redirect", "error", "nonsense", "lost"),
)
"""What it does with whatever is asked: answers; never answers; a byte from time to time; a proxy's page;
leads elsewhere; 503; JSON of something else; a 404 that is not a registry's."""

Answer = tuple[int, Any]
SERIALIZED = ("serialized", "PROTOBUF")
ASKED = "asked.proto"
WORDS = re.compile(r"[ ;{]")
"""A .proto file has some, base64 has not."""
NAMESPACE = uuid.UUID("00000000-0000-0000-0000-00000000a4e0")


@dataclass(slots=True)
class Schemas:
    """What it knows."""

    texts: list[dict[str, Any]] = field(default_factory=list)
    """By id less one: the schema with its type and what it refers to."""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    """Ids, by version less one."""
    gone: set[int] = field(default_factory=set)
    """Ids that were deleted for good."""

    def register(self, subject: str, asked: dict[str, Any]) -> int:
        """The id: the one that it has."""
        one = {
            "schema": asked["schema"],
            "schemaType": asked.get("schemaType") or "AVRO",
            "references": asked.get("references") or [],
        }
        if one not in self.texts:
            self.texts.append(one)
        number = self.texts.index(one) + 1
        self.gone.discard(number)
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def told(self, number: int, spelling: str = "") -> dict[str, Any]:
        """As it is answered: what says nothing is left out. `spelling`: the `format` that is asked for."""
        one = self.texts[number - 1]
        text = self._serialized(one) if (spelling, one["schemaType"]) == SERIALIZED else one["schema"]
        told = {"schema": text, "guid": str(uuid.uuid5(NAMESPACE, json.dumps(one)))}
        if one["schemaType"] != "AVRO":
            told["schemaType"] = one["schemaType"]
        return told | ({"references": one["references"]} if one["references"] else {})

    def _serialized(self, one: dict[str, Any]) -> str:
        """The base64 of a FileDescriptorProto: as it was registered, or of a text, which protoc compiles."""
        if WORDS.search(one["schema"]) is None:
            return str(one["schema"])
        made = compiled({**self._sources(one), ASKED: one["schema"]})
        return encoded(next(file for file in made.file if file.name == ASKED))

    def _sources(self, one: dict[str, Any]) -> dict[str, str]:
        """Texts that it refers to, by the names that it has for them."""
        found: dict[str, str] = {}
        for to in one["references"]:
            other = self.texts[self.subjects[to["subject"]][to["version"] - 1] - 1]
            found |= {**self._sources(other), to["name"]: other["schema"]}
        return found


class Registry:
    """On a port of its own. `does`, `user`, `token` may be changed at any time. Close it, or use `with`."""

    def __init__(
        self, *, port: int = 0, tls: ssl.SSLContext | None = None, known: Schemas | None = None
    ) -> None:
        self.known = known if known is not None else Schemas()
        self.does = WELL
        self.user = ""
        """`name:password` that it wants; empty: nobody's."""
        self.token = ""
        self.asked: list[str] = []
        """Method and path, in order."""
        self._released = threading.Event()
        self._open: set[socket.socket] = set()
        self._tls = tls
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def setup(self) -> None:
                super().setup()
                registry._open.add(self.connection)

            def finish(self) -> None:
                registry._open.discard(self.connection)
                super().finish()

            def do_GET(self) -> None:
                registry._answer(self)

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing is logged."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://localhost:{self.port}"

    def close(self) -> None:
        """Its port refuses connections from then on, and those that were open are over.

        Another on it with the same `known` is it, come back.
        """
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        self.asked.append(f"{handler.command} {handler.path}")
        if self.does in (HANG, DRIP):
            self._stall(handler)
            return
        status, document = self._judged(handler, body)
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        content = json.dumps(document).encode()
        if self.does == HTML:
            status, content, headers = 200, b"<html>sign in</html>", {"Content-Type": "text/html"}
        elif self.does == REDIRECT:
            status, headers["Location"] = 302, f"{self.url}/elsewhere"
        elif self.does == LOST:
            status, content, headers = 404, b"<html>not here</html>", {"Content-Type": "text/html"}
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _stall(self, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        if self.does == HANG:
            self._released.wait(60)
            return
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not self._released.wait(0.05):
                handler.wfile.write(b" ")
        except OSError:
            return  # whoever waited has gone

    def _judged(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        said = handler.headers.get("Authorization", "")
        wanted = {f"Basic {base64.b64encode(self.user.encode()).decode()}"} if self.user else set()
        wanted |= {f"Bearer {self.token}"} if self.token else set()
        if wanted and said not in wanted:
            return 401, {"error_code": 40101, "message": "User cannot be authenticated"}
        if self.does == ERROR:
            return 503, {"error_code": 50301, "message": "no leader"}
        if self.does == NONSENSE:
            return 200, ["hello"]
        return self._routed(handler.command, handler.path, json.loads(body) if body else {})

    def _routed(self, method: str, path: str, asked: dict[str, Any]) -> Answer:
        parts = urlsplit(path)
        for verb, pattern, answer in ROUTES:
            match = re.fullmatch(pattern, parts.path)
            if verb == method and match is not None:
                query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
                return answer(self.known, [unquote(one) for one in match.groups()], asked | query)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


def _no_schema(what: str) -> Answer:
    return 404, {"error_code": 40403, "message": f"Schema {what} not found"}


def _by_id(known: Schemas, given: list[str], asked: dict[str, Any]) -> Answer:
    number = int(given[0])
    if not 1 <= number <= len(known.texts) or number in known.gone:
        return _no_schema(given[0])
    return 200, known.told(number, asked.get("format", ""))


def _by_guid(known: Schemas, given: list[str], asked: dict[str, Any]) -> Answer:
    for number in range(1, len(known.texts) + 1):
        if known.told(number)["guid"] == given[0] and number not in known.gone:
            return 200, known.told(number, asked.get("format", "")) | {"id": number}
    return _no_schema(given[0])


def _registered(known: Schemas, given: list[str], asked: dict[str, Any]) -> Answer:
    number = known.register(given[0], asked)
    return 200, {"id": number, **known.told(number)}


def _looked_up(known: Schemas, given: list[str], asked: dict[str, Any]) -> Answer:
    for version, number in enumerate(known.subjects.get(given[0], ()), 1):
        if known.texts[number - 1]["schema"] == asked["schema"]:
            return 200, {"id": number, "version": version, "subject": given[0], **known.told(number)}
    return _no_schema("of this text")


def _version(known: Schemas, given: list[str], asked: dict[str, Any]) -> Answer:
    subject, wanted = given
    versions = known.subjects.get(subject)
    if not versions:
        return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
    place = len(versions) if wanted == "latest" else int(wanted)
    if not 1 <= place <= len(versions):
        return 404, {"error_code": 40402, "message": f"Version {wanted} not found."}
    number = versions[place - 1]
    told = known.told(number, asked.get("format", ""))
    return 200, {"subject": subject, "version": place, "id": number, **told}


def _versions(known: Schemas, given: list[str], _asked: dict[str, Any]) -> Answer:
    found = known.subjects.get(given[0])
    if not found:
        return 404, {"error_code": 40401, "message": f"Subject '{given[0]}' not found."}
    return 200, list(range(1, len(found) + 1))


def _deleted(known: Schemas, given: list[str], asked: dict[str, Any]) -> Answer:
    """For good only with `permanent=true`: until then ids are answered."""
    found = known.subjects.get(given[0])
    if not found:
        return 404, {"error_code": 40401, "message": f"Subject '{given[0]}' not found."}
    if asked.get("permanent") == "true":
        del known.subjects[given[0]]
        held = {number for numbers in known.subjects.values() for number in numbers}
        known.gone |= set(found) - held
    return 200, list(range(1, len(found) + 1))


def _versions_of(known: Schemas, given: list[str], _asked: dict[str, Any]) -> Answer:
    number = int(given[0])
    if not 1 <= number <= len(known.texts) or number in known.gone:
        return _no_schema(given[0])
    return 200, [
        {"subject": subject, "version": numbers.index(number) + 1}
        for subject, numbers in sorted(known.subjects.items())
        if number in numbers
    ]


ROUTES: tuple[tuple[str, str, Callable[[Schemas, list[str], dict[str, Any]], Answer]], ...] = (
    ("GET", r"/schemas/ids/(\d+)", _by_id),
    ("GET", r"/schemas/ids/(\d+)/versions", _versions_of),
    ("GET", r"/schemas/guids/([0-9a-f-]+)", _by_guid),
    ("POST", r"/subjects/([^/]+)/versions", _registered),
    ("POST", r"/subjects/([^/]+)", _looked_up),
    ("GET", r"/subjects/([^/]+)/versions/(latest|\d+)", _version),
    ("GET", r"/subjects/([^/]+)/versions", _versions),
    ("DELETE", r"/subjects/([^/]+)", _deleted),
    ("GET", r"/subjects", lambda known, _given, _asked: (200, sorted(known.subjects))),
    ("GET", r"/config", lambda _known, _given, _asked: (200, {"compatibilityLevel": "BACKWARD"})),
)
