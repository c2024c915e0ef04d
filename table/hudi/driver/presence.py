"""Whether a table is there. One that is not is made; one whose writer died over its properties is mended."""

from __future__ import annotations

import logging
import time
from contextlib import suppress

from table.errors import Refused, Unavailable
from table.hudi.driver.session import Session
from table.hudi.layout import META_FOLDER, PROPERTIES
from table.hudi.reader.stored import PROPERTIES_BYTES_MAX, parse_properties
from table.port import TableSpec
from table.store.port import Store

log = logging.getLogger(__name__)

CHECKSUM = "hoodie.table.checksum"
"""Hudi takes no properties without it (`HoodieTableConfig`)."""
REWRITTEN_S = 60
"""Hudi rewrites the properties of a table in milliseconds: who has not in so many seconds never will."""


def ensure(session: Session, spec: TableSpec, schema: str) -> bool:
    """Afterwards the table is there, to be loaded. True where it was not. Raises `Refused`, `Unavailable`."""
    if is_new(session.store):
        session.create(spec, schema)
        return True
    check_whole(session.store)
    if died_over_properties(session.store):
        log.warning(
            "table %s: somebody died while rewriting %s: its backup is taken", spec.path, PROPERTIES[0]
        )
        session.recover_properties()
    return False


def died_over_properties(store: Store) -> bool:
    """Whether the table's properties are in their backup alone, for longer than it takes to rewrite them."""
    written, backup = (store.stat(f"{META_FOLDER}/{name}") for name in PROPERTIES)
    return written is None and backup is not None and time.time() - backup.modified_s > REWRITTEN_S


def check_whole(store: Store) -> None:
    """Raise `Refused` with what to do where whoever made the table was killed while it wrote the properties,
    or `Unavailable` where it may be writing them now. Who is killed later leaves a backup, which Hudi takes.
    """
    written, backup = (store.stat(f"{META_FOLDER}/{name}") for name in PROPERTIES)
    if written is None or backup is not None:
        return
    try:
        raw = store.read(f"{META_FOLDER}/{PROPERTIES[0]}", bytes_max=PROPERTIES_BYTES_MAX)
        if CHECKSUM in parse_properties(raw.decode("utf-8", "replace")):
            return
        begun = has_instants(store)
    except OSError as error:
        raise Unavailable(f"table.path {store.place()} cannot be read: {error.strerror}") from error
    what = f"{store.place(f'{META_FOLDER}/{PROPERTIES[0]}')} is not whole ({len(raw):,} bytes, no checksum)"
    if time.time() - written.modified_s <= REWRITTEN_S:
        raise Unavailable(f"{what}: somebody may be making the table just now; start again in a minute")
    if begun:
        raise Refused(f"{what}, and the table has commits: put it back from a copy, then start again")
    raise Refused(
        f"{what}: a driver was killed while it made the table. Nothing was ever committed to it: remove "
        f"{store.place(META_FOLDER)}, and start again"
    )


def has_instants(store: Store) -> bool:
    """Whether anybody has begun to write to the table, in a timeline of today's layout or of older ones."""
    names: list[str] = []
    for folder in (META_FOLDER, f"{META_FOLDER}/timeline"):
        with suppress(FileNotFoundError):
            names += store.names(folder)
    return any(name[:14].isdigit() for name in names)


def is_new(store: Store) -> bool:
    """Whether no table is there yet. A folder that holds something else is somebody's: refuse it."""
    path = store.place()
    try:
        for name in PROPERTIES:
            found = store.stat(f"{META_FOLDER}/{name}")
            if found is not None and not found.is_folder:
                return False
        held = [name for name in store.names() if not name.startswith(".")]
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        raise Refused(f"table.path {path} is a file: give a folder") from None
    except OSError as error:
        raise Unavailable(f"table.path {path} cannot be read: {error.strerror}") from error
    if held:
        raise Refused(
            f"table.path {path} holds {held[0]} and is no Hudi table: give an empty folder or a table's path"
        )
    return True
