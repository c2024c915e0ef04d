"""The class by which the driver takes Hudi's file lock: the same file, and one holder in this JVM.

The table's properties name Hudi's own (`LOCK_PROVIDER`), which others use beside us: what they have in common
is the file.
"""

from __future__ import annotations

from typing import Any

from table.hudi.driver.compiled import lock_class
from table.hudi.modes import LOCK_PROVIDER

NAME = "lockstep.hudi.OneHolderLockProvider"
SOURCE = "OneHolderLockProvider.java"


def one_holder_lock(jvm: Any, gateway: Any) -> str:
    """Its name, by which Hudi finds it from here on. Raises `Refused` where this Hudi's is another one."""
    misfit = "the table lock does not fit the Hudi on the class path"
    lock_class(jvm, gateway, name=NAME, source=SOURCE, beside=LOCK_PROVIDER, misfit=misfit)
    return NAME


def lock_held_s(jvm: Any, path: str) -> float:
    """How long this JVM has held the lock that is this file, also while it stood still; negative where it has
    not.
    """
    return float(jvm.lockstep.hudi.OneHolderLockProvider.heldS(path))
