"""The classes with which Hudi's storage lock reaches an object store, by the table's scheme.

Hudi 1.2.0 takes the class of a scheme by its name, and has its own in modules with other SDKs and another
configuration. Ours are jvm/S3StorageLockClient.java, jvm/GCSStorageLockClient.java and
jvm/AzureStorageLockClient.java, and share jvm/StorageLock.java.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from table.errors import Refused
from table.hudi.driver.azure_connector import BLOBS
from table.hudi.driver.compiled import HAVE_PACKAGES, lock_class
from table.store.location import AZURE, GOOGLE, S3

CLASSES: Mapping[str, str] = {
    S3: "org.apache.hudi.aws.transaction.lock.S3StorageLockClient",
    GOOGLE: "org.apache.hudi.gcp.transaction.lock.GCSStorageLockClient",
    AZURE: "org.apache.hudi.azure.transaction.lock.AzureStorageLockClient",
}
"""Scheme -> the class that Hudi asks for."""
NAME = CLASSES[S3]
HELPERS: Mapping[str, tuple[str, ...]] = {
    S3: ("StorageLock",),
    GOOGLE: ("StorageLock",),
    AZURE: ("StorageLock", BLOBS),
}
"""What a scheme's class is made of."""
BESIDE = "org.apache.hudi.client.transaction.lock.StorageLockClient"
LEASE_FILE = ".hoodie/.locks/table_lock.json"
"""Where Hudi has the lock, below the table."""
MARK = "configure"
"""A method that Hudi's own classes do not have."""


def lock_client(jvm: Any, gateway: Any, scheme: str = S3) -> Any:
    """The class, as Py4J has it. Raises `Refused` where the JVM lacks what it needs, or has another one."""
    name = CLASSES[scheme]
    source = f"{name.rsplit('.', 1)[-1]}.java"
    found = lock_class(
        jvm,
        gateway,
        name=name,
        source=source,
        beside=BESIDE,
        misfit=f"the lock of tables on {scheme}:// does not fit this Hudi or this Hadoop",
        advice=HAVE_PACKAGES,
        helpers=HELPERS[scheme],
    )
    if MARK not in {str(method.getName()) for method in found.getMethods()}:
        raise Refused(
            f"{name} of Hudi's own is on the class path, which takes no endpoint and does not look whether a "
            "write that was not answered has landed: take it out, Lockstep brings its own"
        )
    parts = name.split(".")
    client = jvm
    for part in parts:
        client = getattr(client, part)
    return client
