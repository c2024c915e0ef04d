"""Whether this machine has the table that the driver has, of one on a file system."""

from __future__ import annotations

import logging
import socket

from table.kinds import table_kind
from table.port import TableLayout
from table.service.place import is_noted
from table.store.settings import StoreSettings

WHAT_TO_DO = (
    "What is at file:// must be on a file system that driver and all workers share under one path: mount it "
    "on all machines, or keep the table in an object store or on HDFS"
)

log = logging.getLogger(__name__)


def unshared(layout: TableLayout, storage: StoreSettings | None, pipeline: str) -> str:
    """Why what would be written here is nowhere to the driver; empty where it is not. `storage`: see
    `participant.worker.spec.WorkerSpec`.

    Before its workers start the driver leaves a note in the table's folder; on a disk of this machine's own
    there is none, though all could be written there. A disk that does not answer is no other disk: that is
    waited out, as it is later.
    """
    if storage is not None or not layout.path.startswith("/"):
        return ""
    notes = table_kind(layout.kind).notes(layout.path)
    try:
        if is_noted(notes, pipeline):
            return ""
    except OSError as error:
        log.warning("whether %s is the driver's folder cannot be seen: %s", layout.path, error.strerror)
        return ""
    return (
        f"the folder {layout.path} on {socket.gethostname()} is not the one that the driver has: the note "
        f"that the driver has just left in {notes.place()} is not there. {WHAT_TO_DO}"
    )
