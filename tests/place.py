"""Where a test's table is, as everybody but its pipeline sees it: a folder, here or on a real HDFS, or a
bucket of a real S3 server or of what stands for Google's and Azure's.

What scenarios ask of a table goes through here, so that they are about the protocol and not about files.
Paths are relative to the table, as a `Store` has them.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from lockstep.launch.local_server import LocalServer
from lockstep.stores.gs import GsServer
from lockstep.stores.hdfs import HdfsServer
from lockstep.stores.local import ACCESS_KEY, SECRET_KEY, S3Server, secret_of, storage_section
from table.hudi.driver.fence import FOLDER as DECIDED
from table.hudi.driver.holder import LOCK, process_said, said_by
from table.hudi.driver.lock_client import LEASE_FILE
from table.hudi.layout import META_FOLDER
from table.hudi.reader.timeline import Timeline
from table.store.local import LocalStore
from table.store.location import store_at
from table.store.objects.settings import ObjectSettings
from table.store.port import Store, Upload
from table.store.settings import StoreSettings
from tests.azure.server import KEY as AZURE_KEY
from tests.azure.server import AzureServer, authority_of

TIMELINE = f"{META_FOLDER}/timeline"
METADATA_TIMELINE = f"{META_FOLDER}/metadata/{TIMELINE}"
MARKERS = f"{META_FOLDER}/.temp"

LOOK_S = 0.001
"""Between two looks at what lasts for some milliseconds only, in a folder."""
REQUEST_LOOK_S = 0.02
"""The same, where a look is a request."""
VARIABLES: Mapping[str, str] = {"access_key": "LAKE_KEY", "secret_key": "LAKE_SECRET"}
KEYS: Mapping[str, str] = {"LAKE_KEY": ACCESS_KEY, "LAKE_SECRET": SECRET_KEY}
"""The environment of whatever reaches the S3 server."""
AZURE_VARIABLE = "LAKE_ACCOUNT_KEY"
PROFILE_NAME = "lake"
SUCCESSOR = "successor"
"""An access key that may do everything, too, where the server knows it."""
PROFILES_VARIABLES = ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CREDENTIAL_PROFILES_FILE")
"""By which Python's library finds the file, and Java's."""
OWN_REQUEST_S, OWN_PATIENCE_S = 5.0, 2.0
"""Of us who look on: a server that was killed is not to hold us up for longer."""
LOCK_BYTES_MAX = 64 * 1024


class Place(Protocol):
    """`expiry_s`: so long a lock keeps all others away whose holder was killed. `holder_s`: so soon after it
    is taken it is written down by whom. `look_s`: between two looks at what lasts for some milliseconds only.
    """

    expiry_s: float
    holder_s: float
    look_s: float

    @property
    def address(self) -> str:
        """As `table.path` has it."""

    @property
    def plain(self) -> str:
        """As sentences have it, and libraries that open it themselves."""

    @property
    def settings(self) -> StoreSettings | None: ...

    @property
    def toml(self) -> str:
        """More of the pipeline's configuration."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Of whatever reads that configuration."""

    @property
    def store(self) -> Store: ...

    def timeline(self) -> Timeline:
        """Raises `TableError` where no table is there, or cannot be looked at."""

    def names(self, folder: str) -> list[str]:
        """Of what is in it; none where it is not there."""

    def folders(self) -> list[str]:
        """Of table partitions, one level deep."""

    def appeared_ms(self, name: str) -> int | None:
        """When this file of the timeline got its name, Unix epoch, milliseconds; None where nobody knows."""

    def markers(self) -> set[str]:
        """Instants whose markers are still there."""

    def uploads(self) -> list[Upload]:
        """Files that were begun, and that nobody sees."""

    def is_locked(self) -> bool:
        """Whether somebody holds the table lock, or left it behind."""

    def says_holder(self) -> bool:
        """Whether the lock is held and it is written down by whom."""

    def cleans_under_lock(self) -> bool:
        """Whether the lock was taken by Hudi itself, to clean."""


class Folder:
    """On this machine's file system."""

    expiry_s = 60.0
    holder_s = 0.5
    look_s = LOOK_S

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store = LocalStore(path)

    @property
    def address(self) -> str:
        return f"file://{self._path}"

    @property
    def plain(self) -> str:
        return str(self._path)

    @property
    def settings(self) -> None:
        return None

    @property
    def toml(self) -> str:
        return ""

    @property
    def environment(self) -> Mapping[str, str]:
        return {}

    @property
    def store(self) -> Store:
        return self._store

    def timeline(self) -> Timeline:
        return Timeline(self._path)

    def names(self, folder: str) -> list[str]:
        try:
            return self._store.names(folder)
        except FileNotFoundError:
            return []  # not made yet

    def folders(self) -> list[str]:
        return [one.name for one in self._path.iterdir() if one.name != META_FOLDER and one.is_dir()]

    def appeared_ms(self, name: str) -> int | None:
        """Hudi writes a completed instant under another name first."""
        try:
            return (self._path / TIMELINE / name).stat().st_ctime_ns // 1_000_000
        except FileNotFoundError:
            return None

    def markers(self) -> set[str]:
        return set(self.names(MARKERS))

    def uploads(self) -> list[Upload]:
        return []

    def is_locked(self) -> bool:
        return (self._path / META_FOLDER / LOCK).exists()

    def says_holder(self) -> bool:
        """The lock itself says it."""
        with contextlib.suppress(OSError):
            return process_said(said_by(self._lock())) is not None
        return False

    def cleans_under_lock(self) -> bool:
        with contextlib.suppress(OSError):
            return b"clean" in self._lock().lower()
        return False

    def _lock(self) -> bytes:
        return (self._path / META_FOLDER / LOCK).read_bytes()


class Remote:
    """On a server, on which we look directly. While it is away, nothing is there to be seen."""

    holder_s = 5.0
    look_s = REQUEST_LOOK_S

    def __init__(self, address: str, settings: StoreSettings) -> None:
        self._address = address
        self._settings = settings
        self._store = store_at(address, settings=settings)
        self._timeline: Timeline | None = None

    @property
    def address(self) -> str:
        return self._address

    @property
    def plain(self) -> str:
        return self._address

    @property
    def settings(self) -> StoreSettings:
        return self._settings

    @property
    def store(self) -> Store:
        return self._store

    def timeline(self) -> Timeline:
        """The same once the table is there: a client is not made for each look."""
        if self._timeline is None:
            self._timeline = Timeline(self._address, self._settings)
        self.names(TIMELINE)
        return self._timeline

    def names(self, folder: str) -> list[str]:
        try:
            return self._store.names(folder)
        except OSError:
            return []

    def folders(self) -> list[str]:
        return [name for name in self.names("") if name != META_FOLDER and not name.startswith(".")]

    def markers(self) -> set[str]:
        """SeaweedFS goes on listing folders that nothing is in any more, as others do not."""
        below = (folder.removeprefix(f"{MARKERS}/") for folder, names in self._store.walk(MARKERS) if names)
        return {folder.partition("/")[0] for folder in below}

    def uploads(self) -> list[Upload]:
        return list(self._store.uploads())

    def is_locked(self) -> bool:
        raise NotImplementedError

    def says_holder(self) -> bool:
        """What is meant is a holder that was called back, which the decision follows: that of an instant
        which is not completed is waited for.
        """
        decided = max((name for name in self.names(DECIDED) if name.isdecimal()), default="")
        completed = any(name.startswith(f"{decided}_") for name in self.names(TIMELINE))
        return bool(decided) and not completed and self.is_locked()

    def cleans_under_lock(self) -> bool:
        """A clean is open, and no instant is being decided."""
        return self.is_locked() and not self.says_holder()


class OnHdfs(Remote):
    """A folder of its own on this HDFS."""

    expiry_s = 60.0

    def __init__(self, server: HdfsServer) -> None:
        address = f"{server.url}/lake-{uuid.uuid4().hex[:12]}/events"
        super().__init__(address, replace(server.settings, patience_s=OWN_PATIENCE_S))

    @property
    def toml(self) -> str:
        return ""

    @property
    def environment(self) -> Mapping[str, str]:
        return {}

    def appeared_ms(self, name: str) -> int | None:
        """Hudi writes a completed instant under another name first."""
        try:
            found = self._store.stat(f"{TIMELINE}/{name}")
        except OSError:
            return None
        return None if found is None else round(1_000 * found.modified_s)

    def is_locked(self) -> bool:
        try:
            return self._store.stat(f"{META_FOLDER}/{LOCK}") is not None
        except OSError:
            return False


class InObjects(Remote):
    """In a bucket of its own, or what else it is called. `endpoint`: how the pipeline reaches the server, if
    that is not directly.
    """

    expiry_s = 3.0
    """The lock says which process holds it. One that is dead may still have requests under way."""
    CLOSE_MS = 1_000
    """What is seen by a look that followed another so soon has just appeared."""

    def __init__(self, address: str, settings: ObjectSettings, endpoint: str) -> None:
        own = replace(settings, request_timeout_s=OWN_REQUEST_S, patience_s=OWN_PATIENCE_S)
        super().__init__(address, own)
        self._endpoint = endpoint or settings.endpoint
        self._lock = threading.Lock()
        self._first_seen: dict[str, int] = {}
        self._looked_ms = 0

    def names(self, folder: str) -> list[str]:
        names = super().names(folder)
        if folder == TIMELINE and names:
            self._note(names)
        return names

    def _note(self, names: list[str]) -> None:
        """When each was there for the first time. An object's own date is in whole seconds."""
        with self._lock:
            now_ms = time.time_ns() // 1_000_000
            soon = now_ms - self._looked_ms <= self.CLOSE_MS
            for name in names:
                self._first_seen.setdefault(name, now_ms if soon else 0)
            self._looked_ms = now_ms

    def appeared_ms(self, name: str) -> int | None:
        """By the look that showed it first; where none had gone just before, the name says when it was put,
        but for the put itself.
        """
        return self._first_seen.get(name) or None

    def is_locked(self) -> bool:
        return holds_lease(self._store)


class OnGoogle(InObjects):
    """A bucket on a server of Google's API."""

    def __init__(self, server: GsServer, *, endpoint: str = "") -> None:
        bucket = f"lake-{uuid.uuid4().hex[:12]}"
        server.make_bucket(bucket)
        super().__init__(f"gs://{bucket}/lake/events", server.settings, endpoint)

    @property
    def toml(self) -> str:
        return f'\n[storage]\nendpoint = "{self._endpoint}"\ncredentials = "none"\n'

    @property
    def environment(self) -> Mapping[str, str]:
        return {}


class OnAzure(InObjects):
    """A container on a server of Azure's storage."""

    def __init__(self, server: AzureServer, *, endpoint: str = "") -> None:
        container = f"lake-{uuid.uuid4().hex[:12]}"
        server.make_bucket(container)
        super().__init__(f"abfss://{authority_of(container)}/lake/events", server.settings, endpoint)

    @property
    def toml(self) -> str:
        key = f'account_key = "${{env:{AZURE_VARIABLE}}}"'
        return f'\n[storage]\nendpoint = "{self._endpoint}"\ncredentials = "account_key"\n{key}\n'

    @property
    def environment(self) -> Mapping[str, str]:
        return {AZURE_VARIABLE: AZURE_KEY}


class Bucket(InObjects):
    """One on this server. `profiles`: where its keys are, as the profile `PROFILE_NAME`, if not in the
    environment.
    """

    def __init__(self, server: S3Server, *, endpoint: str = "", profiles: Path | None = None) -> None:
        self._profiles = profiles
        bucket = f"lake-{uuid.uuid4().hex[:12]}"
        server.make_bucket(bucket)
        super().__init__(f"s3a://{bucket}/lake/events", server.settings, endpoint)

    @property
    def toml(self) -> str:
        keys = {name: f"${{env:{variable}}}" for name, variable in VARIABLES.items()}
        section = "\n" + storage_section(self._endpoint, **keys)
        if self._profiles is None:
            return section
        return section.partition("credentials")[0] + f'credentials = "profile"\nprofile = "{PROFILE_NAME}"\n'

    @property
    def environment(self) -> Mapping[str, str]:
        if self._profiles is None:
            return KEYS
        return dict.fromkeys(PROFILES_VARIABLES, str(self._profiles))

    def write_profile(self, access_key: str) -> None:
        assert self._profiles is not None
        keys = f"aws_access_key_id = {access_key}\naws_secret_access_key = {secret_of(access_key)}\n"
        self._profiles.write_text(f"[{PROFILE_NAME}]\n{keys}", encoding="utf-8")


OnServer = Bucket | OnHdfs | OnGoogle | OnAzure


def place_on(server: LocalServer, *, endpoint: str = "") -> OnServer:
    """A place of its own on this server. `endpoint`: see `InObjects`."""
    match server:
        case S3Server():
            return Bucket(server, endpoint=endpoint)
        case GsServer():
            return OnGoogle(server, endpoint=endpoint)
        case AzureServer():
            return OnAzure(server, endpoint=endpoint)
        case HdfsServer():
            assert not endpoint, "nothing is between a pipeline and HDFS"
            return OnHdfs(server)
    raise AssertionError(f"no table is put on a {server.kind}")


def holds_lease(store: Store) -> bool:
    """Whether somebody holds the lock of a table in an object store; not where it cannot be looked at."""
    try:
        lock = json.loads(store.read(LEASE_FILE, bytes_max=LOCK_BYTES_MAX))
    except OSError:
        return False
    return bool(not lock["expired"] and lock["validUntil"] > time.time() * 1_000)


def below(place: Place) -> Iterator[tuple[str, str]]:
    """(table partition, name) of each file in one."""
    for folder in place.folders():
        for name in place.names(folder):
            yield folder, name
