"""Google's XML API in front of a server that has its JSON API only.

fake-gcs-server keeps conditions on puts by the JSON API, and by no other; the library by which Python reaches
Google's storage speaks the XML API. What is asked by that is asked of the server by the other: put, read,
list, delete, upload in parts. What is JSON already, as all of the JVM's, is passed on. Each request is one of
the server's, which decides; parts of an upload are kept here until they are put together.

Source of both: cloud.google.com/storage/docs/xml-api and /json_api.
"""

from __future__ import annotations

import http.client
import json
import threading
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from lockstep.launch.local_server import HOST

JSON_API = ("/storage/", "/upload/", "/download/", "/batch/", "/_internal/", "/b/")
META = "x-goog-meta-"
TIMEOUT_S = 60.0
KEYS_MAX = 1_000
NO_KEY, NO_BUCKET, FAILED = "NoSuchKey", "NoSuchBucket", "PreconditionFailed"
_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"}
)


class XmlFront:
    """Listens on `port`, of loopback, and asks the server on `behind`. To be closed."""

    def __init__(self, port: int, behind: int) -> None:
        self._server = _Server((HOST, port), _Handler)
        self._server.behind = behind
        self._thread = threading.Thread(target=self._server.serve_forever, name="google-xml", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128
    behind = 0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.uploads: dict[str, tuple[Mapping[str, str], dict[int, bytes]]] = {}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone, or a server behind that was killed: nobody is left to be told."""


class _Answer:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, {k.lower(): v for k, v in headers.items()}, body


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._behind = http.client.HTTPConnection(HOST, self.server.behind, timeout=TIMEOUT_S)

    def finish(self) -> None:
        self._behind.close()
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """The server behind has a log."""

    def do_GET(self) -> None:
        self._take()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = do_GET

    def _take(self) -> None:
        body = self._body()
        if self.path.startswith(JSON_API):
            self._say(self._ask(self.command, self.path, body, dict(self.headers.items())))
            return
        address = urlsplit(self.path)
        bucket, _, key = address.path.lstrip("/").partition("/")
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        self._say(self._xml(unquote(bucket), unquote(key), query, body))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            found = bytearray()
            while size := int(self.rfile.readline().split(b";")[0], 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return bytes(found)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _xml(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> _Answer:
        command = self.command
        if command in ("GET", "HEAD"):
            return self._read(bucket, key) if key else self._list(bucket, query)
        if command == "DELETE" and "uploadId" in query:
            self.server.uploads.pop(query["uploadId"], None)
            return _Answer(204, {}, b"")
        if command == "DELETE":
            answer = self._ask("DELETE", f"/storage/v1/b/{_part(bucket)}/o/{_part(key)}")
            return _Answer(204, {}, b"") if answer.status < 300 else self._told(answer, bucket)
        if command == "PUT" and "uploadId" not in query:
            return self._put(bucket, key, body, dict(self.headers.items()))
        return self._parts(bucket, key, query, body)

    def _read(self, bucket: str, key: str) -> _Answer:
        headers = {name: self.headers[name] for name in ("Range",) if name in self.headers}
        path = f"/download/storage/v1/b/{_part(bucket)}/o/{_part(key)}"
        answer = self._ask(self.command, path, headers=headers)
        if answer.status not in (200, 206):
            return self._told(answer, bucket)
        wanted = self.headers.get("If-Match")
        if wanted and wanted.strip('"') != answer.headers.get("etag", "").strip('"'):
            return _error(412, FAILED)
        return answer

    def _list(self, bucket: str, query: dict[str, str]) -> _Answer:
        asked = {"prefix": query.get("prefix", ""), "maxResults": query.get("max-keys", str(KEYS_MAX))}
        if query.get("delimiter"):
            asked["delimiter"] = query["delimiter"]
        if query.get("start-after"):  # which the other API has inclusive
            asked["startOffset"] = query["start-after"] + "\0"
        if query.get("continuation-token"):
            asked["pageToken"] = query["continuation-token"]
        answer = self._ask("GET", f"/storage/v1/b/{_part(bucket)}/o?{urlencode(asked)}")
        if answer.status != 200:
            return self._told(answer, bucket)
        found = json.loads(answer.body)
        lines = [
            f"<Contents><Key>{escape(one['name'])}</Key><Size>{one['size']}</Size>"
            f"<LastModified>{one['updated']}</LastModified><ETag>&quot;{escape(one['etag'])}&quot;</ETag>"
            f"<Generation>{one['generation']}</Generation></Contents>"
            for one in found.get("items") or ()
        ]
        lines += [
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
            for one in found.get("prefixes") or ()
        ]
        if token := found.get("nextPageToken"):
            lines.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        return _document(200, f"<ListBucketResult>{''.join(lines)}</ListBucketResult>")

    def _put(self, bucket: str, key: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        given = {name.lower(): value for name, value in headers.items()}
        metadata = {name.removeprefix(META): value for name, value in given.items() if name.startswith(META)}
        asked = {"uploadType": "multipart"}
        if "x-goog-if-generation-match" in given:
            asked["ifGenerationMatch"] = given["x-goog-if-generation-match"]
        about = json.dumps({"name": key, "metadata": metadata}).encode()
        border = uuid.uuid4().hex.encode()
        parts = ((b"application/json", about), (b"application/octet-stream", body))
        content = b"".join(
            b"--%s\r\nContent-Type: %s\r\n\r\n%s\r\n" % (border, kind, part) for kind, part in parts
        )
        content += b"--%s--\r\n" % border
        path = f"/upload/storage/v1/b/{_part(bucket)}/o?{urlencode(asked)}"
        kind = f"multipart/related; boundary={border.decode()}"
        answer = self._ask("POST", path, content, {"Content-Type": kind})
        if answer.status != 200:
            return self._told(answer, bucket)
        made = json.loads(answer.body)
        return _Answer(200, {"ETag": f'"{made["etag"]}"', "x-goog-generation": made["generation"]}, b"")

    def _parts(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> _Answer:
        uploads = self.server.uploads
        if "uploads" in query:
            upload = uuid.uuid4().hex
            uploads[upload] = (dict(self.headers.items()), {})
            named = f"<Bucket>{escape(bucket)}</Bucket><Key>{escape(key)}</Key><UploadId>{upload}</UploadId>"
            return _document(200, f"<InitiateMultipartUploadResult>{named}</InitiateMultipartUploadResult>")
        headers, parts = uploads.get(query.get("uploadId", ""), ({}, {}))
        if not headers:
            return _error(404, "NoSuchUpload")
        if self.command == "PUT":
            parts[int(query["partNumber"])] = body
            return _Answer(200, {"ETag": f'"{uuid.uuid4().hex}"'}, b"")
        whole = b"".join(parts[number] for number in sorted(parts))
        answer = self._put(bucket, key, whole, headers)
        if answer.status != 200:
            return answer
        uploads.pop(query["uploadId"], None)
        tag = escape(answer.headers["etag"])
        named = f"<Bucket>{escape(bucket)}</Bucket><Key>{escape(key)}</Key><ETag>{tag}</ETag>"
        done = _document(200, f"<CompleteMultipartUploadResult>{named}</CompleteMultipartUploadResult>")
        done.headers |= {"x-goog-generation": answer.headers["x-goog-generation"]}
        return done

    def _told(self, answer: _Answer, bucket: str) -> _Answer:
        """An error as the XML API says it: which of bucket and object is missing the server does not say."""
        if answer.status != 404:
            code = {412: FAILED, 416: "InvalidRange"}.get(answer.status, "InternalError")
            return _error(answer.status, code)
        there = self._ask("GET", f"/storage/v1/b/{_part(bucket)}").status == 200
        return _error(404, NO_KEY if there else NO_BUCKET)

    def _ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> _Answer:
        sent = {name: value for name, value in (headers or {}).items() if name.lower() not in _HOP}
        sent["Host"] = self.headers.get("Host", "")
        if method in ("PUT", "POST", "PATCH"):
            sent["Content-Length"] = str(len(body))
        self._behind.request(method, path, body or None, sent)
        answer = self._behind.getresponse()
        content = answer.read()
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
        if method == "HEAD":
            kept["content-length"] = answer.getheader("Content-Length") or "0"
        return _Answer(answer.status, kept, content)

    def _say(self, answer: _Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "content-length" not in answer.headers and answer.status != 204:
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def _part(text: str) -> str:
    return quote(text, safe="")


def _document(status: int, xml: str) -> _Answer:
    body = f"<?xml version='1.0' encoding='UTF-8'?>{xml}".encode()
    return _Answer(status, {"content-type": "application/xml; charset=UTF-8"}, body)


def _error(status: int, code: str) -> _Answer:
    return _document(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>")
