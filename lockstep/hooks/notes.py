"""What a hook remembers between runs: the commit up to which it has delivered all, beside the table."""

from __future__ import annotations

import json
import logging
from hashlib import sha256

from lockstep.errors import Failed
from lockstep.hooks.commits import Mark
from table.store.port import Store

log = logging.getLogger("lockstep.hooks")

NOTE = ".lockstep_hook"
NOTE_BYTES_MAX = 4_096
NOTE_VERSION = 1
WHY_CHARACTERS_MAX = 100


class NoteUnreadable(Exception):
    """It is there, and what it says is not known: nobody goes on without it. For an operator."""


class HookNote:
    """`store`: the table's own folder for what is about it. One hook of one pipeline's; for one thread."""

    def __init__(self, store: Store, *, pipeline: str, hook: str) -> None:
        self._store, self._pipeline, self._hook = store, pipeline, hook
        self._path = f"{NOTE}_{sha256(pipeline.encode()).hexdigest()[:12]}_{hook}"

    def begin(self, newest: Mark) -> Mark:
        """Where the hook goes on: behind the commit that was noted. One that has no note yet begins behind
        the table's newest commit, and notes that before the run commits anything.

        Raises `NoteUnreadable`, and writes nothing then; `Failed` where there can be no note.
        """
        try:
            noted = self._read()
            if noted is not None and noted <= newest:
                return noted
            if noted is not None:
                log.warning(
                    "hook %s: the table ends before instant %s, up to which all was told: it was restored or "
                    "made anew; the hook goes on with what is committed from now on",
                    *(self._hook, noted.instant),
                )
            self.write(newest)
        except OSError as error:
            where = self._store.place(self._path)
            why = error.strerror or type(error).__name__
            raise Failed(f"{where} cannot be read and written: {why}: see who may do so.") from error
        return newest

    def write(self, mark: Mark) -> None:
        """Raises `OSError`."""
        said = {
            "version": NOTE_VERSION,
            "pipeline": self._pipeline,
            "hook": self._hook,
            "delivered": mark.to_json(),
        }
        self._store.put(self._path, json.dumps(said).encode(), durable=True)

    def _read(self) -> Mark | None:
        """None where there is none."""
        try:
            said = json.loads(self._store.read(self._path, bytes_max=NOTE_BYTES_MAX))
            if said["version"] != NOTE_VERSION:
                raise ValueError("it is of another version")
            if said["pipeline"] != self._pipeline:
                raise ValueError("it is another pipeline's")
            return Mark.from_json(said["delivered"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = type(error).__name__ if not str(error) or isinstance(error, KeyError) else str(error)
            raise NoteUnreadable(
                f"its note {self._store.place(self._path)} cannot be read ({why[:WHY_CHARACTERS_MAX]}), so "
                "that nobody knows what was told: mend it, or delete it to begin anew with what is committed "
                "from then on"
            ) from error
