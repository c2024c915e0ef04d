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
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from table.store.port import Store

NOTE = ".lockstep_run"
NOTE_BYTES_MAX = 4_096
COMMITS = "commits"
"""Key of the note: whether the pipeline has commits."""
RUN_CHARACTERS_MAX = 100


class Place:
    """`store`: the table's own folder for what is about it. Belongs to `run`; safe to use from any thread."""

    def __init__(self, store: Store, *, pipeline: str, run: str) -> None:
        self._pipeline = pipeline
        self._run = run
        self._store = store
        self._has_commits = False

    def occupy(self) -> None:
        """This run is the last one that started. Raises `OSError`."""
        self._has_commits = self._has_commits or has_commits(self._store, self._pipeline)
        said = {"pipeline": self._pipeline, "run": self._run, COMMITS: self._has_commits}
        self._store.put(_note(self._pipeline), json.dumps(said).encode())

    def note_commits(self) -> None:
        """Note that the pipeline has commits: a later run that finds none does not start again by itself."""
        if self._has_commits:
            return
        self._has_commits = True
        with contextlib.suppress(OSError):
            if last_started(self._store, self._pipeline) == self._run:
                self.occupy()

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
        run = _said(store, pipeline).get("run")
    except OSError:
        return ""
    return run if isinstance(run, str) and len(run) <= RUN_CHARACTERS_MAX else ""


def has_commits(store: Store, pipeline: str) -> bool:
    """Return whether a run has noted commits of the pipeline; an older version's note has no such key.

    `store`: as `Place` has it. Raises `OSError`.
    """
    return _said(store, pipeline).get(COMMITS) is True


def _said(store: Store, pipeline: str) -> Mapping[str, Any]:
    """Return the pipeline's note, empty if there is none or it is damaged. Raises `OSError`."""
    try:
        said = json.loads(store.read(_note(pipeline), bytes_max=NOTE_BYTES_MAX))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) and said.get("pipeline") == pipeline else {}


def is_noted(store: Store, pipeline: str) -> bool:
    """Whether a run has ever had the pipeline's place. `store`: as `Place` has it. Raises `OSError`."""
    return store.stat(_note(pipeline)) is not None


def _note(pipeline: str) -> str:
    return f"{NOTE}_{sha256(pipeline.encode()).hexdigest()[:12]}"
