"""Finding files that Lockstep wrote for instants that the table's timeline does not know.

Such a file is a sign of a commit that the timeline has lost: its archive was not copied, or restored from an
older backup, or deleted by a lifecycle rule.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict

from table.hudi.layout import META_FOLDER
from table.hudi.upkeep.candidates import instant_of_ours
from table.hudi.upkeep.sweep import Timelines
from table.store.paths import of_draft
from table.store.port import Store

NO_NOTES: frozenset[str] = frozenset()


def unknown_files(store: Store, timelines: Timelines, *, after: str = "") -> dict[str, list[str]]:
    """Return files by their instant, for instants later than `after` without a commit or a rollback.

    Lists the whole table. Raises `TableError` and `OSError`.
    """
    by_instant: dict[str, list[str]] = defaultdict(list)
    for folder, names in store.walk(leaving_out=(META_FOLDER,)):
        for name in names:
            if not of_draft(name) and (instant := instant_of_ours(name, NO_NOTES)) > after:
                by_instant[instant].append(posixpath.join(folder, name))
    pending = timelines.pending()
    for instant in list(by_instant):
        if instant in pending or timelines.named(instant, carried_out=False) is not None:
            del by_instant[instant]
    for instant in timelines.named_in_archive(list(by_instant), NO_NOTES) if by_instant else ():
        del by_instant[instant]
    for instant in timelines.rolled_back(list(by_instant)) if by_instant else ():
        del by_instant[instant]
    return dict(by_instant)
