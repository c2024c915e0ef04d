"""A worker's part of a transaction: a marker, then the file, at once or in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.bucket.server import Act, Request, Unanswered
from tests.simulation.bucket.tape import Sleep, Steps, tries

if TYPE_CHECKING:
    from tests.simulation.bucket.world import World

MARKERS = ".hoodie/.temp"


@dataclass(slots=True)
class Task:
    """`path`: of the file. `said`: what the worker has reported: `written`, `failed`; empty: nothing yet."""

    world: World
    name: str
    instant: str
    path: str
    rows: bytes
    said: str = ""

    @property
    def marker(self) -> str:
        return f"{MARKERS}/{self.instant}/{self.path}.marker.CREATE"

    def steps(self) -> Steps[None]:
        try:
            yield from self._put(self.marker, b"")
            yield Sleep(self.world.shape.slow_worker_ms)
            if self.world.shape.in_parts:
                yield from self._in_parts()
            else:
                yield from self._put(self.path, self.rows)
            self.said = "written"
        except OSError:
            self.said = "failed"
        self.world.note(self.name, f"reports {self.path}: {self.said}")

    def _put(self, path: str, data: bytes) -> Steps[None]:
        for left in range(tries(self.world.shape.patient), 0, -1):
            try:
                yield Request(Act.PUT, path, data)
                return
            except Unanswered:
                if left == 1:
                    raise

    def _in_parts(self) -> Steps[None]:
        """As `table/store/objects/sink.py` ends a file: what was not answered is looked for, by its mark."""
        mark = self.world.rules.new_mark()
        number: str = yield Request(Act.BEGIN, self.path, mark=mark)
        half = len(self.rows) // 2
        for part in (self.rows[:half], self.rows[half:]):
            yield Request(Act.PART, self.path, part, number=number)
        try:
            yield Request(Act.COMPLETE, self.path, number=number)
            return
        except OSError:
            found = yield Request(Act.LOOK, self.path)
        if found is not None and found.mark == mark:
            return
        yield Request(Act.ABORT, self.path, number=number)
        raise OSError("not written")
