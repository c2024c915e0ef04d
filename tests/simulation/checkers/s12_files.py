"""S12: files outside completed instants are cleaned, and no file of a completed one is ever removed."""

from table.memory.timeline import InstantPhase
from tests.simulation.checkers.base import Checker


class NoStrayFiles(Checker):
    name = "S12"

    def at_end(self) -> None:
        timeline = self.world.storage.timeline
        named = {file.path for instant in timeline.completed for file in instant.files}
        gone = sorted(named - timeline.files.keys())
        open_ones = {i.time for i in timeline.instants.values() if i.phase is InstantPhase.INFLIGHT}
        stray = sorted(
            path
            for path, file in timeline.files.items()
            if path not in named and file.instant not in open_ones
        )
        self.require(not gone, f"committed files that are gone: {gone[:5]}")
        self.require(not stray, f"files of no commit that are left after the sweep: {stray[:5]}")
