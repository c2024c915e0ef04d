"""Where rivals keep their tables: a folder of a load's own, an S3 server of its own, near or far, or an HDFS.

Servers are SeaweedFS, and a name node with one data node; they are on the disk that folders are on, and begin
empty with each load. Far: between S3 and the rival is a proxy that lets each direction's bytes arrive later.
What the bench itself reads does not go through the proxy.
"""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import psutil

from lockstep.launch.local_server import HOST, LocalServer
from lockstep.stores.hdfs import HdfsServer
from lockstep.stores.local import S3Server, key_files, storage_section
from table.store.settings import StoreSettings

LATENCY_MS = 20.0
"""Of each request to a store that is far, where nobody says otherwise."""
BUCKET = "lake"
PROXY = Path(__file__).with_name("jobs") / "slow_proxy.py"
SERVER, BESIDE = "store", "proxy"
"""Folders of a load."""


class Place(StrEnum):
    """As labels of rivals end, and names of evidence."""

    FILE = "file"
    S3 = "s3"
    FAR = "s3-far"
    HDFS = "hdfs"


TITLES = {Place.FILE: "", Place.S3: "on S3", Place.FAR: "on S3, far", Place.HDFS: "on HDFS"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """`root`: the address of a folder that no other load has. `section`: [storage] of Lockstep's
    configuration, as TOML. `storage`: how rivals reach it, None where it is a folder; `beside`: how the bench
    does. `pids`: of the processes that serve it.
    """

    root: str
    section: str = ""
    storage: StoreSettings | None = None
    beside: StoreSettings | None = None
    pids: tuple[int, ...] = ()

    @property
    def table(self) -> str:
        """The address of a Hudi table's folder."""
        return f"{self.root}/table"

    def cpu_s(self) -> float:
        """CPU seconds that its servers have taken so far; of those that have ended nothing."""
        taken = 0.0
        for pid in self.pids:
            with suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                taken += times.user + times.system
        return taken


class SlowProxy(LocalServer):
    """`bench/jobs/slow_proxy.py` as a process: see `LocalServer`."""

    kind = "slow-proxy"

    def __init__(self, data_dir: Path, *, to_port: int, latency_ms: float) -> None:
        super().__init__(data_dir)
        self._to_port = to_port
        self._latency_ms = latency_ms

    @property
    def endpoint(self) -> str:
        return f"http://{self.address}"

    def stop(self, *, timeout_s: float = 0.0) -> None:
        """It holds nothing."""
        self.kill()

    def _launch(self) -> None:
        words = (self.port, self._to_port, self._latency_ms)
        self._spawn([sys.executable, "-I", str(PROXY), *map(str, words)])

    def _asker(self) -> Callable[[], bool]:
        def answers() -> bool:
            with suppress(OSError), socket.create_connection((HOST, self.port), timeout=1.0):
                return True
            return False

        return answers


def file_lake(folder: Path) -> Lake:
    """Tables are in this folder."""
    return Lake(root=f"file://{folder}")


@contextmanager
def lake_at(place: Place, folder: Path, *, latency_ms: float = LATENCY_MS) -> Iterator[Lake]:
    """The lake of a load whose folder this is; what serves it ends with the block. Raises `Failed`."""
    if place is Place.FILE:
        yield file_lake(folder)
        return
    if place is Place.HDFS:
        with HdfsServer(folder / SERVER) as hdfs:
            root = f"{hdfs.url}/bench"
            yield Lake(root=root, storage=hdfs.settings, beside=hdfs.settings, pids=(hdfs.pid,))
        return
    with ExitStack() as stack:
        server = stack.enter_context(S3Server(folder / SERVER))
        server.make_bucket(BUCKET)
        endpoint, pids = server.endpoint, [server.pid]
        if place is Place.FAR:
            proxy = stack.enter_context(
                SlowProxy(folder / BESIDE, to_port=server.port, latency_ms=latency_ms)
            )
            endpoint, pids = proxy.endpoint, [*pids, proxy.pid]
        yield Lake(
            root=f"s3a://{BUCKET}/bench",
            section=storage_section(endpoint, **key_files(folder)),
            storage=replace(server.settings, endpoint=endpoint),
            beside=server.settings,
            pids=tuple(pids),
        )


def remove_stored(folder: Path) -> None:
    """What the server of a load kept; its log stays."""
    shutil.rmtree(folder / SERVER / "data", ignore_errors=True)
