"""The endpoint that Azurite lacks: what Hadoop's connector asks of `account.dfs.…`, asked of Azurite's blobs.

One address for both, as an emulator's is. Whatever does not come from that connector goes to Azurite as it
came. Its requests are those of hadoop-azure 3.3.4, whose signatures are looked at; what else is asked for is
answered 501 and remembered (`unknown`), never guessed.

Each call is done as Microsoft's REST reference says, Azure Data Lake Storage Gen2, Path and Filesystem:

* Create, `resource=file`: an empty blob, put on the very condition that came along; 409 PathAlreadyExists
  where `If-None-Match: *` fails, 412 where `If-Match` does.
* Create, `resource=directory`: a folder, which is remembered; one that is there already is no error without a
  condition.
* Create, `x-ms-rename-source`: of a file: one that is put where nothing is, and the source deleted.
* Update, `append`: kept until it is flushed; nobody sees it.
* Update, `flush`: what was appended up to `position`, whole and without a gap, is put over the blob on
  condition that it is still the same; else 400 InvalidFlushPosition, or 412.
* Get Properties, `getStatus`, `getAccessControl`: of files; of folders, which are there with what is below
  them, or where they were made, also as the parents of a file that has gone since.
* Read, with `Range` and `If-Match`.
* List, not recursive: by names, in pages of `maxResults`, with `x-ms-continuation`.
* Delete: a file, or with `recursive=true` a folder and all below it; 409 DirectoryNotEmpty without it.

What is a folder shows in one more place, as in an account with a hierarchical namespace: one that is looked
at as a blob is an empty one with the metadata `hdi_isfolder`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from lockstep.launch.local_server import HOST
from tests.azure.folders import Answer, Folders, failed
from tests.azure.signed import signature

HADOOPS = "Azure Blob FS"
"""In how hadoop-azure calls itself."""
TIMEOUT_S = 60.0
BODY_MAX = 256 << 20
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding"})


class Front:
    """Listens on `port`, of loopback, and asks Azurite on `behind`. To be closed."""

    def __init__(self, port: int, behind: int, *, account: str, key: str) -> None:
        self.unknown: list[str] = []
        self._server = _Server((HOST, port), _Handler)
        self._server.front = self
        self.behind, self.account, self.key = behind, account, key
        self.folders = Folders(f"http://{HOST}:{behind}/{account}", account=account, key=key)
        self._thread = threading.Thread(target=self._server.serve_forever, name="azure-dfs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128
    front: Front

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone, or a server behind that was killed: nobody is left to be told."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._behind = HTTPConnection(HOST, self.server.front.behind, timeout=TIMEOUT_S)

    def finish(self) -> None:
        self._behind.close()
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """The server behind has a log."""

    def do_GET(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if size > BODY_MAX or "chunked" in self.headers.get("Transfer-Encoding", ""):
            self.close_connection = True
            self._say(failed(413, "RequestBodyTooLarge"))
            return
        body = self.rfile.read(size)
        try:
            answer = (
                self._as_hadoop(body) if HADOOPS in self.headers.get("User-Agent", "") else self._pass(body)
            )
        except (OSError, HTTPException):
            self.close_connection = True
            return
        self._say(answer)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = do_GET

    # --- Azurite's own ----------------------------------------------------------------------------------

    def _pass(self, body: bytes) -> Answer:
        self._behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _HOP and name.lower() != "expect":
                self._behind.putheader(name, value)
        self._behind.endheaders(body)
        got = self._behind.getresponse()
        content = got.read()
        kept = {name: value for name, value in got.getheaders() if name.lower() not in _HOP}
        if got.status == 201 and self.command == "PUT":
            _, container, path = self._place()
            self.server.front.folders.remember(container, path)
        if got.status == 404 and self.command in ("GET", "HEAD"):
            _, container, path = self._place()
            folder = path and "comp=" not in self.path and self.server.front.folders.as_blob(container, path)
            return folder or Answer(got.status, kept, content)
        return Answer(got.status, kept, content)

    def _place(self) -> tuple[str, str, str]:
        """Account, container, path; without what stands for none."""
        parts = unquote(urlsplit(self.path).path).lstrip("/").split("/", 2)
        account, container, path = (*parts, "", "")[:3]
        return account, container, path.strip("/")

    # --- Hadoop's connector -----------------------------------------------------------------------------

    def _as_hadoop(self, body: bytes) -> Answer:
        front = self.server.front
        account, container, path = self._place()
        headers = {name.lower(): value for name, value in self.headers.items()}
        given = headers.get("authorization", "")
        wanted = signature(self.command, self.path, headers, account=front.account, key=front.key)
        if account != front.account or given != wanted:
            return failed(403, "AuthenticationFailed")
        query = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        known = self._call(container, path, query, headers, body)
        if known is None:
            front.unknown.append(f"{self.command} {self.path} {headers}")
            return failed(501, "NotImplemented")
        return known()

    def _call(
        self, container: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Callable[[], Answer] | None:
        """None for what nobody has looked up."""
        folders, action, resource = (
            self.server.front.folders,
            query.get("action", ""),
            query.get("resource", ""),
        )
        method = headers.get("x-http-method-override", self.command)
        conditions = {name: headers[name] for name in ("if-match", "if-none-match") if name in headers}
        if method == "HEAD" and action in ("getStatus", "getAccessControl"):
            return lambda: folders.status(container, path)
        if method == "GET" and resource == "filesystem" and query.get("recursive") == "false":
            most, after = int(query.get("maxResults", "5000")), query.get("continuation", "")
            return lambda: folders.listed(container, query.get("directory", ""), most=most, after=after)
        if method == "GET" and path and not action and not resource:
            return lambda: folders.read(
                container, path, headers.get("range", ""), headers.get("if-match", "")
            )
        if method == "DELETE" and path and "recursive" in query:
            return lambda: folders.delete(container, path, recursive=query["recursive"] == "true")
        if method == "PATCH" and action == "append" and "flush" not in query:
            return lambda: folders.append(container, path, int(query["position"]), body)
        if method == "PATCH" and action == "flush":
            return lambda: folders.flush(container, path, int(query["position"]))
        if method == "PUT" and resource == "file" and "blobtype" not in query:
            return lambda: folders.create(container, path, conditions)
        if method == "PUT" and resource == "directory":
            return lambda: folders.make(container, path, conditions)
        if method == "PUT" and "x-ms-rename-source" in headers and conditions == {"if-none-match": "*"}:
            source = unquote(headers["x-ms-rename-source"]).partition(f"/{container}/")[2]
            return lambda: folders.rename(container, source, path)
        return None

    def _say(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "content-length" not in map(str.lower, answer.headers) and answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
