"""S12: files outside completed instants are cleaned, and no file of a completed one is ever removed."""

from tests.simulation.checkers.base import Checker


class NoStrayFiles(Checker):
    name = "S12"

    def at_end(self) -> None:
        timeline = self.world.storage.timeline
        named = {file.path for instant in timeline.completed for file in instant.files}
        gone = sorted(named - timeline.files.keys())
        stray = sorted(timeline.files.keys() - named)
        self.require(not gone, f"committed files that are gone: {gone[:5]}")
        self.require(not stray, f"files of no commit that are left after the sweep: {stray[:5]}")
