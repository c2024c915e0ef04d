"""What ends a thread of the driver's JVM is said in one line: jvm/Uncaught.java."""

from __future__ import annotations

from typing import Any

from table.hudi.driver.compiled import java_class
from table.hudi.modes import LOCK_PROVIDER

NAME = "lockstep.hudi.Uncaught"
SOURCE = "Uncaught.java"


def say_uncaught(jvm: Any, gateway: Any) -> None:
    """From here on. Raises `Refused` where this Hudi's JVM cannot have it."""
    misfit = "what says why a thread ended does not fit the JVM"
    java_class(jvm, gateway, name=NAME, source=SOURCE, beside=LOCK_PROVIDER, misfit=misfit)
    jvm.lockstep.hudi.Uncaught.install()
