"""All parts at once, each in its own time, into one archive."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from time import monotonic

from lockstep.errors import sentence
from lockstep.support.archive import Archive
from lockstep.support.parts import Found, Part
from lockstep.support.redaction import ALONE_MAX, Secrets


class _Gathering:
    """A part that is being gathered, on a thread that holds up nobody."""

    def __init__(self, part: Part) -> None:
        self.part, self.found, self.error = part, Found(), ""
        self._thread = Thread(target=self._gather, name=f"gather-{part.title}", daemon=True)
        self._thread.start()

    def _gather(self) -> None:
        try:
            self.part.gather(self.found)
        except Exception as error:  # noqa: BLE001 - said in the listing; the others go on
            self.error = sentence(error)

    def join(self, timeout_s: float) -> None:
        self._thread.join(max(0.0, timeout_s))
        if self._thread.is_alive():
            self.error = f"it took longer than {self.part.within_s:.0f} s"


def collect(archive: Archive, at_once: Sequence[Part], in_turn: Sequence[Part], secrets: Secrets) -> None:
    """`in_turn`: those that take much memory."""
    began_s = monotonic()
    for gathering in [_Gathering(part) for part in at_once]:
        gathering.join(began_s + gathering.part.within_s - monotonic())
        _add(archive, gathering)
    for part in in_turn:
        gathering = _Gathering(part)
        gathering.join(part.within_s)
        _add(archive, gathering)
    for problem in secrets.problems:
        archive.miss("secrets", f"{problem}; what it leads to was not looked for")
    if any(len(value) <= ALONE_MAX for value in secrets.values):
        archive.miss("secrets", "one is so short that it was replaced only where it stands alone")


def _add(archive: Archive, gathering: _Gathering) -> None:
    found = gathering.found
    for name, what in gathering.part.names.items():
        text = found.members.get(name)
        if text is not None:
            archive.add(name, text, what)
        elif not gathering.error:
            archive.miss(name, "there is nothing")
    for why in [*list(found.problems), *([gathering.error] if gathering.error else [])]:
        archive.miss(", ".join(gathering.part.names), why)
