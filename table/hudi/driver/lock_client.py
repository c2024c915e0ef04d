"""The class with which Hudi's storage lock reaches S3.

Hudi 1.2.0 takes the class of a scheme by its name, and has its own in a module with another SDK and another
configuration. Ours is jvm/S3StorageLockClient.java.
"""

from __future__ import annotations

from typing import Any

from table.errors import Refused
from table.hudi.driver.compiled import HAVE_PACKAGES, lock_class

NAME = "org.apache.hudi.aws.transaction.lock.S3StorageLockClient"
SOURCE = "S3StorageLockClient.java"
BESIDE = "org.apache.hudi.client.transaction.lock.StorageLockClient"
LEASE_FILE = ".hoodie/.locks/table_lock.json"
"""Where Hudi has the lock, below the table."""
MARK = "configure"
"""A method that Hudi's own class does not have."""


def lock_client(jvm: Any, gateway: Any) -> Any:
    """The class, as Py4J has it. Raises `Refused` where the JVM lacks what it needs, or has another one."""
    found = lock_class(
        jvm,
        gateway,
        name=NAME,
        source=SOURCE,
        beside=BESIDE,
        misfit="the lock of tables on S3 does not fit this Hudi or this Hadoop",
        advice=HAVE_PACKAGES,
    )
    if MARK not in {str(method.getName()) for method in found.getMethods()}:
        raise Refused(
            f"{NAME} of hudi-aws is on the class path, which takes no endpoint and does not look whether a "
            "write that was not answered has landed: take it out, Lockstep brings its own"
        )
    return jvm.org.apache.hudi.aws.transaction.lock.S3StorageLockClient
