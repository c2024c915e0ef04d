"""W2: no watermark goes back, the table's or a source partition's, whoever commits."""

from table.memory.timeline import MemoryInstant
from table.state import TableState
from table.watermark import Watermark
from tests.simulation.checkers.base import Checker


class WatermarksGoForward(Checker):
    name = "W2"

    def __init__(self) -> None:
        self._before = Watermark(of="")

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        before, after = self._before, state.watermark
        if after is None:
            self.require(not before.of, f"instant {instant.time} has no watermark, the one before had")
            return
        moves = {"the table": (before.at_ms, after.at_ms)}
        for partition, mark in before.marks.items():
            now = after.marks.get(partition)
            moves[str(partition)] = (mark.at_ms, now.at_ms if now is not None else None)
        for what, (was_ms, is_ms) in moves.items():
            if was_ms is not None and (is_ms is None or is_ms < was_ms):
                self.violated(f"instant {instant.time}: of {what} it was {was_ms} ms and is {is_ms} ms")
        self._before = after
