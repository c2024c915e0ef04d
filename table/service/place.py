"""Which run has a pipeline's place: the one that started last.

Two runs of one pipeline fence each other's workers in Kafka's group, in turns, unless the older one ends.
That it is older may not be taken from the control topic, to which anybody may write. So each run writes its
name into the table's own folder when it starts, over whatever is there: what is read there later is the name
of the last one, by the order of the file system and nobody's clock. Who can write there, can end the table.

It decides nothing about records: that is the timeline's, which compares epochs and offsets.
"""

from __future__ import annotations

import contextlib
import json
from hashlib import sha256

from table.store.port import Store

NOTE = ".lockstep_run"
NOTE_BYTES_MAX = 4_096
RUN_CHARACTERS_MAX = 100


class Place:
    """`store`: the table's own folder for what is about it. Belongs to `run`; safe to use from any thread."""

    def __init__(self, store: Store, *, pipeline: str, run: str) -> None:
        self._pipeline = pipeline
        self._run = run
        self._store = store

    def occupy(self) -> None:
        """This run is the last one that started. Raises `OSError`."""
        said = json.dumps({"pipeline": self._pipeline, "run": self._run}).encode()
        self._store.put(_note(self._pipeline), said)

    def taken_by(self) -> str:
        """The run that started after this one; empty where there is none, or none is known.

        A note that is gone is written again: of two runs that do so, one comes last.
        """
        run = last_started(self._store, self._pipeline)
        if not run:
            with contextlib.suppress(OSError):
                self.occupy()
        return "" if run == self._run else run


def last_started(store: Store, pipeline: str) -> str:
    """The run that has the pipeline's place; empty where none is known. `store`: as `Place` has it."""
    try:
        said = json.loads(store.read(_note(pipeline), bytes_max=NOTE_BYTES_MAX))
        who, run = said["pipeline"], said["run"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    known = isinstance(run, str) and len(run) <= RUN_CHARACTERS_MAX and who == pipeline
    return run if known else ""


def is_noted(store: Store, pipeline: str) -> bool:
    """Whether a run has ever had the pipeline's place. `store`: as `Place` has it. Raises `OSError`."""
    return store.stat(_note(pipeline)) is not None


def _note(pipeline: str) -> str:
    return f"{NOTE}_{sha256(pipeline.encode()).hexdigest()[:12]}"
