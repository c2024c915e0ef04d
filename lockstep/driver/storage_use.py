"""Whether the table's store can be used from here, before anything relies on it: soon, and in a sentence."""

from __future__ import annotations

import contextlib
import socket
import uuid
from collections.abc import Iterator

from lockstep.errors import Failed
from participant.worker.shared import WHAT_TO_DO
from table.errors import TableError
from table.store.location import Location, store_at
from table.store.probe import PREFIX, nearest, probe
from table.store.settings import StoreSettings


def tried(path: str, storage: StoreSettings | None) -> list[tuple[str, str]]:
    """What was tried, and why it failed. Runs on an executor, too."""
    try:
        return [(one.what, one.why_not) for one in probe(path, storage)]
    except (TableError, OSError) as error:
        return [("reach it", str(error))]


def used(done: list[tuple[str, str]], path: str, storage: StoreSettings | None) -> str:
    """What was done, as a sentence. Raises `Failed` that names all that could not be, each reason once."""
    reasons: dict[str, list[str]] = {}
    for what, why in done:
        if why:
            reasons.setdefault(why, []).append(what)
    if reasons:
        failed = "; ".join(f"{', '.join(whats)}: {why}" for why, whats in reasons.items())
        shared = (
            "; see that the folder is shared with the executors and that their user may write to it"
            if storage is None
            else ""
        )
        raise Failed(f"under {path} it is not possible to {failed}{shared}")
    return f"under {path} it is possible to {', '.join(what for what, _ in done)}"


@contextlib.contextmanager
def left(path: str) -> Iterator[str]:
    """While it lasts, a file of ours lies where the table is, on a file system, or is to be; its address.
    Raises `OSError`.
    """
    folder = nearest(Location.parse(path), None)
    store, name = store_at(str(folder)), f"{PREFIX}{uuid.uuid4().hex}"
    store.put(name, b"")
    try:
        yield f"{folder}/{name}"
    finally:
        with contextlib.suppress(OSError):
            store.delete(name)


def seen(where: str) -> tuple[str, bool]:
    """Which machine this is, and whether it has the file that was left there. Runs on an executor, too."""
    folder, _, name = where.rpartition("/")
    try:
        found = store_at(folder).stat(name) is not None
    except OSError:
        found = False
    return socket.gethostname(), found


def check_shared(looks: list[tuple[str, bool]], path: str) -> None:
    """Raises `Failed` where somebody has another disk there than the driver."""
    others = sorted({host for host, sees in looks if not sees})
    if others:
        raise Failed(
            f"an executor on {', '.join(others)} does not see what the driver writes at {path}. {WHAT_TO_DO}"
        )


def check_use(path: str, storage: StoreSettings | None) -> str:
    """Raises `Failed`."""
    return used(tried(path, storage), path, storage)
