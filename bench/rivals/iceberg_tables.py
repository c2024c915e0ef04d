"""Where Iceberg's sink keeps a table: in a folder by a Hadoop catalog, or on S3 by Iceberg's own S3FileIO.

Then the catalog is beside the store: JDBC on a SQLite file of the load's. So a commit needs no rename, which
S3 has not; a catalog that is a service would answer slower. Its own tables are made beforehand, and the sink
is told so: which of its tasks looks for them (Iceberg 1.10.0 does not close what it finds) cannot write then.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from bench.lakes import Lake
from bench.rivals import iceberg_metadata
from lockstep.errors import Failed
from table.store.location import Location, store_at
from table.store.objects.settings import FixedKeys, ObjectSettings

NAME, NAMESPACE, TABLE = "iceberg", "db", "events"
METADATA_BYTES_MAX = 256 * 1024 * 1024
PATIENCE_S = 30.0
_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE iceberg_tables(
    catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties(
    catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255),
    property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key));
"""


class Warehouse(Protocol):
    """`catalog`: properties of the sink's catalog, without `iceberg.catalog.` before them."""

    @property
    def catalog(self) -> Mapping[str, str]: ...

    def newest(self) -> Mapping[str, Any] | None:
        """The table's current metadata; None before there is a table. Raises `Failed`."""


class FolderWarehouse:
    """Below this folder, which is made."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder

    @property
    def catalog(self) -> Mapping[str, str]:
        return {"type": "hadoop", "warehouse": self._folder.as_uri()}

    def newest(self) -> Mapping[str, Any] | None:
        return iceberg_metadata.newest_metadata(self._folder / NAMESPACE / TABLE)


class StoreWarehouse:
    """In this lake, below `name`; the catalog is in the folder, which is made."""

    def __init__(self, lake: Lake, name: str, folder: Path) -> None:
        assert isinstance(lake.storage, ObjectSettings) and lake.beside is not None
        folder.mkdir(parents=True)
        self._storage: ObjectSettings = lake.storage
        self._file = folder / "catalog.db"
        self._root = f"{lake.root}/{name}"
        self._store = store_at(self._root, setting="the warehouse", settings=lake.beside)
        self._last: tuple[str, Mapping[str, Any]] = ("", {})
        with closing(sqlite3.connect(self._file)) as catalog:
            catalog.executescript(_SCHEMA)
            catalog.execute(
                "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')", (NAME, NAMESPACE)
            )
            catalog.commit()

    @property
    def catalog(self) -> Mapping[str, str]:
        keys = self._storage.credentials
        assert isinstance(keys, FixedKeys)
        return {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{self._file}",
            "jdbc.init-catalog-tables": "false",
            "warehouse": f"s3://{_bucket_and_path(self._root)}",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": self._storage.region,
            "s3.endpoint": self._storage.endpoint,
            "s3.path-style-access": "true",
            "s3.access-key-id": keys.access_key,
            "s3.secret-access-key": keys.secret_key,
        }

    def newest(self) -> Mapping[str, Any] | None:
        where = self._committed()
        if where is None:
            return None
        if where != self._last[0]:
            path = where.partition("://")[2].removeprefix(_bucket_and_path(self._root) + "/")
            try:
                metadata = json.loads(self._store.read(path, bytes_max=METADATA_BYTES_MAX))
            except (OSError, ValueError) as error:
                raise Failed(f"{where} cannot be read: {error}.") from error
            self._last = (where, metadata)
        return self._last[1]

    def _committed(self) -> str | None:
        """Where the catalog says that the table's metadata is."""
        with closing(sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True, timeout=PATIENCE_S)) as read:
            found = read.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
                (NAMESPACE, TABLE),
            ).fetchone()
        return str(found[0]) if found else None


def warehouse_in(lake: Lake, name: str, folder: Path) -> Warehouse:
    """A new one, of a load's own."""
    return FolderWarehouse(folder) if lake.storage is None else StoreWarehouse(lake, name, folder)


def _bucket_and_path(address: str) -> str:
    location = Location.parse(address)
    return location.authority + location.path
