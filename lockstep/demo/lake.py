"""Where the demo's table is: in its folder, or on a store that the demo starts for itself."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.output import readable_duration

if TYPE_CHECKING:
    from table.store.settings import StoreSettings

FILE, S3, HDFS = "file", "s3", "hdfs"
STORES = (FILE, S3, HDFS)
"""As people ask for them. The commands that start the servers again are called the same."""
BUCKET = "lake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """`path`: the table's address. `storage`: how its store is reached, where that has to be told."""

    path: str
    section: str = ""
    """[storage] of the pipeline's configuration, as TOML."""
    storage: StoreSettings | None = None
    port: int = 0
    """Of its server, 0 where it has none."""
    started: str = ""
    """What was started for it, as a sentence; empty where it is nothing."""


def make_lake(store: str, folder: Path, stack: ExitStack) -> Lake:
    """What is started is ended by `stack`. Raises `Failed`."""
    if store == FILE:
        return Lake(path=(folder / "table").as_uri())
    return _on_s3(folder, stack) if store == S3 else _on_hdfs(folder, stack)


def _on_s3(folder: Path, stack: ExitStack) -> Lake:
    from lockstep.stores.local import S3Server, key_files, storage_section

    began = time.monotonic()
    server = S3Server(folder / S3)
    server.start()
    stack.callback(server.stop)
    server.make_bucket(BUCKET)
    return Lake(
        path=f"s3a://{BUCKET}/table",
        section="\n" + storage_section(server.endpoint, **key_files(folder)),
        storage=server.settings,
        port=server.port,
        started=f"an S3 server answers on {server.address} after {_since(began)}",
    )


def _on_hdfs(folder: Path, stack: ExitStack) -> Lake:
    from lockstep.stores.hdfs import HdfsServer

    began = time.monotonic()
    server = HdfsServer(folder / HDFS)
    server.start()
    stack.callback(server.stop)
    return Lake(
        path=f"{server.url}/lake/table",
        storage=server.settings,
        port=server.port,
        started=f"an HDFS answers on {server.address} after {_since(began)}",
    )


def _since(began: float) -> str:
    return readable_duration(int((time.monotonic() - began) * 1_000))
