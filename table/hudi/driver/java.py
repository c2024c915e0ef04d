"""Hudi's Java exceptions as ours: what they prove, and the one sentence in them that a person can use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from table.errors import OutcomeUnknown, Refused, TableError, Unavailable
from table.hudi.driver.storage import unwritable
from table.store.connectors import said_by_connectors
from table.store.port import Store

THROWN = (Py4JJavaError, CapturedException)
"""Java threw and is done. PySpark turns some exceptions (IllegalArgumentException) into its own kind."""
FAILED = (Py4JError, CapturedException, OSError)
"""Java threw, or did not answer."""

CAUSES_MAX = 20
MESSAGE_MAX = 400

ENVIRONMENT = (
    "HoodieLockException",
    "HoodieIOException",
    "HoodieHeartbeatException",
    "HoodieWriteConflictException",
    "HoodieWriteConflictAwaitingRollbackException",
    "ConcurrentModificationException",
    "SparkException",
    "IOException",
    "UncheckedIOException",
    "FileNotFoundException",
    "NoSuchFileException",
    "AccessDeniedException",
    "FileSystemException",
    "TimeoutException",
    "InterruptedException",
    # Of object stores: the SDK's, and what Hadoop's connector makes of them.
    "SdkClientException",
    "ClientExecutionTimeoutException",
    "AmazonS3Exception",
    "AWSClientIOException",
    "AWSServiceIOException",
    "AWSServiceThrottledException",
    "AWSStatus500Exception",
    "AWSS3IOException",
    "AWSNoResponseException",
    "InterruptedIOException",
    "AbfsRestOperationException",
    "InvalidAbfsRestOperationException",
    # Of HDFS: what its client throws as it is, and what its servers refuse.
    "RemoteException",
    "ConnectException",
    "SocketTimeoutException",
    "EOFException",
    "SafeModeException",
    "StandbyException",
    "RetriableException",
    "NSQuotaExceededException",
    "DSQuotaExceededException",
    "AccessControlException",
    "LeaseExpiredException",
    "RecoveryInProgressException",
    "AlreadyBeingCreatedException",
    "BlockMissingException",
)
"""Simple names of what passes when storage, lock or cluster serve again."""

LOCK_EXCEPTION = "HoodieLockException"
NO_LOCK = (
    "the table lock could not be had: another writer holds it, or left it behind, and then it expires by"
    " itself (hoodie.write.lock.filesystem.expire, in minutes; of a table in an object store"
    " hoodie.write.lock.storage.validity.timeout.secs)"
)
"""Hudi's own text ends in the middle, or names a thread."""

HEARTBEAT_EXPIRED = "Heartbeat for instant"


def causes(error: Py4JJavaError | CapturedException) -> list[tuple[str, str]]:
    """`(simple class name, first line of the message)` from the outermost exception to its root.

    As far as the JVM says it, which may have died since it threw: then empty, as where it never answered.
    """
    found: list[tuple[str, str]] = []
    throwable: Any = error.java_exception if isinstance(error, Py4JJavaError) else error._origin
    with contextlib.suppress(*FAILED):
        while throwable is not None and len(found) < CAUSES_MAX:
            message = str(throwable.getMessage() or "").strip()
            name = str(throwable.getClass().getSimpleName())
            found.append((name, message.split("\n", 1)[0][:MESSAGE_MAX]))
            throwable = throwable.getCause()
    return found


def sentence(error: BaseException) -> str:
    """The deepest cause that says something, without a stack trace."""
    if isinstance(error, OSError) and error.filename is not None:  # a store's; a connection has no file
        return f"{error.filename}: {error.strerror}"
    if not isinstance(error, THROWN):
        return f"the JVM did not answer ({type(error).__name__})"
    chain = causes(error)
    for name, message in reversed(chain):
        if message:
            return NO_LOCK if name == LOCK_EXCEPTION else said_by_connectors(message) or f"{name}: {message}"
    return chain[-1][0] if chain else "the JVM threw, and died before it said what"


def is_gone(error: BaseException) -> bool:
    """Whether a file was missing that had been listed."""
    return isinstance(error, THROWN) and any("FileNotFound" in name for name, _ in causes(error))


def is_environment(error: Py4JJavaError | CapturedException) -> bool:
    """Whether the same call may succeed later without anybody changing the configuration."""
    chain = causes(error)
    return not chain or any(
        name in ENVIRONMENT or message.startswith(HEARTBEAT_EXPIRED) for name, message in chain
    )


def without_effect(doing: str, error: BaseException, folder: Store | None = None) -> TableError:
    """The error for a call of which the caller knows that it had no effect.

    `folder`: where the table lock is, to be looked at where the lock could not be had.
    """
    why = sentence(error)
    if why == NO_LOCK and folder is not None:
        why = unwritable(folder) or why
    if isinstance(error, THROWN) and not is_environment(error):
        return Refused(f"{doing}: {why}")
    return Unavailable(f"{doing}: {why}")


@contextmanager
def reading(doing: str) -> Iterator[None]:
    """Translate what a call raises that changes nothing: it may always be asked again."""
    try:
        yield
    except FAILED as error:
        raise Unavailable(f"{doing}: {sentence(error)}") from error


@contextmanager
def changing(doing: str, folder: Store | None = None) -> Iterator[None]:
    """Translate what a call raises: without effect where Java threw, unknown where it fell silent.

    `folder`: as in `without_effect`.
    """
    try:
        yield
    except THROWN as error:
        raise without_effect(doing, error, folder) from error
    except FAILED as error:
        raise OutcomeUnknown(f"{doing}: {sentence(error)}: read the table before anything else") from error
