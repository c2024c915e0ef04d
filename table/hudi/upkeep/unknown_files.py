"""Finding files that Lockstep wrote for instants that the table's timeline does not know.

Such a file is a sign of a commit that the timeline has lost: its archive was not copied, or restored from an
older backup, or deleted by a lifecycle rule.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict

from table.hudi.layout import META_FOLDER
from table.hudi.upkeep.candidates import instant_of_ours
from table.hudi.upkeep.timeline_records import TimelineRecords
from table.store.paths import of_draft
from table.store.port import Store

NO_NOTES: frozenset[str] = frozenset()


def unknown_files(store: Store, timelines: TimelineRecords, *, after: str = "") -> dict[str, list[str]]:
    """Return files by their instant, for instants later than `after` without a commit or a rollback.

    Lists the whole table. Raises `TableError` and `OSError`.
    """
    by_instant: dict[str, list[str]] = defaultdict(list)
    for folder, names in store.walk(leaving_out=(META_FOLDER,)):
        for name in names:
            if not of_draft(name) and (instant := instant_of_ours(name, NO_NOTES)) > after:
                by_instant[instant].append(posixpath.join(folder, name))
    pending = timelines.pending()
    instants = {instant for instant in by_instant if instant not in pending}
    instants -= timelines.complete(instants)
    instants -= set(timelines.rolled_back(instants) if instants else ())
    return {instant: by_instant[instant] for instant in instants}
