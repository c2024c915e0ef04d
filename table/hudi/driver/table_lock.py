"""The lock of a table as its driver has it, one object for each kind: a file of Hudi's, or an object in a
store whose holder renews it.

Hudi takes and gives the lock back. What stands here is what Hudi leaves open: which class takes it, who holds
it and whether he is dead, whether this machine's clock is near enough to whose times count, and what a lock
that could not be given back needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from pyspark.sql import SparkSession

from table.errors import Refused
from table.hudi.driver.asking import Packages
from table.hudi.driver.azure_connector import check_folders
from table.hudi.driver.connector import NAME, SETTING, SPARING, known_by_lock
from table.hudi.driver.file_clock import FileClock
from table.hudi.driver.file_lock import NAME as ONE_HOLDER
from table.hudi.driver.file_lock import lock_held_s, one_holder_lock
from table.hudi.driver.holder import LOCK as LOCK_FILE
from table.hudi.driver.holder import LockHolder
from table.hudi.driver.lease import LeaseClock, LeaseHolder
from table.hudi.driver.lock_client import LEASE_FILE, lock_client
from table.hudi.driver.reach import executes_here, reach
from table.hudi.driver.watchdog import EXPIRE
from table.hudi.layout import META_FOLDER
from table.hudi.modes import LEASE_PROVIDER, LOCK_PROVIDER
from table.hudi.properties import LEASE, LOCK, LOCK_FOLDER
from table.store.location import AZURE, FILE, HDFS, S3, Location, store_at
from table.store.port import Store
from table.store.settings import StoreSettings


class Holder(Protocol):
    """Who holds the lock, for whoever finds it held."""

    def check(self) -> None:
        """Raise `Unavailable` where others may have the lock that Hudi says we hold. To be called then."""

    def free_if_dead(self) -> bool:
        """Remove the lock where its holder is proved dead; whether it was."""


class LockClock(Protocol):
    """This machine's clock against the one by which the lock expires."""

    def check(self) -> None:
        """Raise `ClockAhead` where they are too far apart for the lock, `Unavailable` where nobody knows."""

    def sentence(self) -> str:
        """How they compare, for a person. Raises as `check`."""


class TableLock(Protocol):
    """`holder`, `clock`: there after `use`. `folder`: where its file is; None where it is none."""

    holder: Holder
    clock: LockClock
    folder: Store | None

    def check_conditions(self) -> None:
        """Raise `Refused` where the table's store does not keep what the lock relies on."""

    def use(self, properties: Mapping[str, str], merged: dict[str, str]) -> None:
        """Let Hudi's client take it so. `properties`: as given; `merged`: all that the client gets, changed
        here. Raises `Refused`.
        """

    def lives_s(self, given: Any) -> int:
        """How long it lives that nobody renews or gives back; 0: for ever. `given`: the client's own."""

    def let_go(self, transactions: Any) -> None:
        """Of the lock that Hudi could not give back. `transactions`: the client's transaction manager."""


def lock_of(
    spark: SparkSession,
    path: str,
    base_path: str,
    store: Store,
    *,
    storage: StoreSettings | None,
    jvm_pid: int,
) -> TableLock:
    """The lock of the table at `path`. Raises `Refused` where it cannot be had here."""
    location = Location.parse(path)
    if storage is None or location.scheme == FILE:
        return FileLock(spark, path, jvm_pid)
    hadoop = reach(spark, location, storage)
    if location.scheme == HDFS:
        return FileLock(spark, path, jvm_pid, storage)
    client = lock_client(spark._jvm, spark.sparkContext._gateway, location.scheme)
    client.configure(hadoop)
    if location.scheme == S3 and hadoop.get(SETTING) in (NAME, SPARING):
        here = executes_here(spark)
        known_by_lock(spark._jvm, taken=client.written(), held=client.held(), here=here)
    return LeaseLock(spark, path, base_path, store, client, hadoop)


class FileLock:
    """A file, as Hudi makes them, in the table or in a folder that is configured. `storage`: how that is
    reached, on HDFS, whose name node creates a file once, as a file system does, and dates it.
    """

    def __init__(
        self, spark: SparkSession, path: str, jvm_pid: int, storage: StoreSettings | None = None
    ) -> None:
        self.holder: Holder
        self.clock: LockClock
        self.folder: Store | None = None
        self._storage = storage
        self._spark = spark
        self._path = path
        self._jvm_pid = jvm_pid

    def check_conditions(self) -> None:
        """A file system creates a file once."""

    def use(self, properties: Mapping[str, str], merged: dict[str, str]) -> None:
        folder = properties.get(LOCK_FOLDER) or f"{self._path}/{META_FOLDER}"
        locks = self.folder = store_at(folder, setting=LOCK_FOLDER, settings=self._storage)
        if LOCK_FOLDER in merged:  # as we spell it: Hudi knows no localhost, and a default file system
            merged[LOCK_FOLDER] = str(Location.parse(folder, setting=LOCK_FOLDER))
        is_hudis = merged.get(LOCK) == LOCK_PROVIDER
        if is_hudis:
            merged[LOCK] = one_holder_lock(self._spark._jvm, self._spark.sparkContext._gateway)
        expire_s = 60 * int(merged.get(EXPIRE, "0")) if is_hudis else 0
        self.clock = FileClock(self._path, locks, expire_s=expire_s)
        known = expire_s and merged[LOCK] == ONE_HOLDER  # others' providers tell nobody
        held_s = partial(lock_held_s, Packages(self._spark._jvm), locks.place(LOCK_FILE)) if known else None
        self.holder = LockHolder(locks, self._jvm_pid, expire_s=expire_s, held_s=held_s)

    def lives_s(self, given: Any) -> int:
        return 60 * int(given.getProperty(EXPIRE, "0"))

    def let_go(self, transactions: Any) -> None:
        """It stays until it expires, or its holder is proved dead: who removed it might remove another's."""


class LeaseLock:
    """An object whose holder renews it. `client`: the class by which Hudi reaches it. `hadoop`: with what
    Hadoop reaches the store.
    """

    def __init__(
        self, spark: SparkSession, path: str, base_path: str, store: Store, client: Any, hadoop: Any
    ) -> None:
        self.holder: Holder = LeaseHolder()
        self.clock: LockClock
        self.folder: Store | None = None
        self._spark = spark
        self._path = path
        self._base_path = base_path
        self._store = store
        self._client = client
        self._hadoop = hadoop

    def check_conditions(self) -> None:
        jvm: Any = self._spark._jvm
        location = Location.parse(self._path)
        if location.scheme == AZURE:
            check_folders(jvm, location, self._hadoop)
        client = self._client("nobody", f"{self._base_path}/{LEASE_FILE}", jvm.java.util.Properties())
        ignored = str(client.ignored())
        client.close()
        if ignored:
            raise Refused(
                f"table {self._path}: its server takes a put with {ignored} and does not keep the condition, "
                "so that two drivers could hold the table lock: keep the table on a server that has "
                "conditional puts (docs/stores.md)"
            )

    def use(self, properties: Mapping[str, str], merged: dict[str, str]) -> None:
        lease_s = int(merged[LEASE]) if merged[LOCK] == LEASE_PROVIDER else 0
        self.clock = LeaseClock(self._store, lease_s=lease_s)

    def lives_s(self, given: Any) -> int:
        return int(given.getProperty(LEASE, "0"))

    def let_go(self, transactions: Any) -> None:
        """Hudi would take it for held when it is asked again, and nobody renews it any more."""
        transactions.getLockManager().close()
