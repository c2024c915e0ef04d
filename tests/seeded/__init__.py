"""Bugs put into the shells on purpose, one each: the tests that are named beside each must find it.

The simulator's seeded bugs (`tests/simulation/mutants`) are of the cores and of what it plays. These are of
what it does not have: readers of the timeline, the table lock, clients of Kafka, ports, logs. Each undoes
something that was mended once. It is found where each test that it names fails by what it asserts, or by an
error that the bug names, with the wrong piece in use; and where all of them pass without it.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Final

from tests.seeded import (
    absence,
    bombs,
    civil_times,
    clocks,
    events,
    files,
    letters,
    locks,
    marks,
    neighbours,
    orders,
    others,
    readers,
    rejects,
    secrets,
    sources,
    stores,
    strangers,
    words,
)
from tests.seeded.base import NAME, Bug, Note, note, put_in

_ALL: tuple[Bug, ...] = (
    *clocks.BUGS,
    *absence.BUGS,
    *civil_times.BUGS,
    *bombs.BUGS,
    *locks.BUGS,
    *others.BUGS,
    *files.BUGS,
    *strangers.BUGS,
    *rejects.BUGS,
    *secrets.BUGS,
    *letters.BUGS,
    *sources.BUGS,
    *stores.BUGS,
    *words.BUGS,
    *orders.BUGS,
    *marks.BUGS,
    *events.BUGS,
    *readers.BUGS,
    *neighbours.BUGS,
)

BUGS: Final = {bug.name: bug for bug in _ALL}


def put_in_named() -> None:
    """The bug that the environment names, where it names one. A process that cannot have it ends."""
    name = os.environ.get(NAME)
    if not name:
        return
    try:
        put_in(BUGS[name])
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody else hears of it
        note(Note.MISTAKEN, f"it cannot be put in: {error!r}")
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
