"""Orphaned data files of a table, and the proof for each that no commit names it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FILES_ALWAYS = 10
"""Orphaned files that a sweep removes whatever share of the table's files they are."""

NOT_LISTED = "the commit of its instant does not list it"
ROLLED_BACK = "its instant was rolled back"
REMOVED_PLAN = "the plan of its instant was removed"
UNKNOWN = "the timeline has neither a commit nor a rollback of its instant"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A data file that Lockstep wrote and that no commit on the timeline lists.

    `path`: below the table. `instant`: in its name. `proof`: why no commit lists it, one of the texts above.
    """

    path: str
    instant: str
    proof: str

    @property
    def is_orphan(self) -> bool:
        """Whether it may be removed."""
        return self.proof != UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """Result of a sweep.

    `files`: data files of the table that were seen. `share`: the share of them that the sweep may remove, 0
    to 1. `found`: orphaned files, and files of unknown instants. `removed`: orphaned files that were removed.
    """

    files: int
    share: float
    found: Sequence[FoundFile]
    removed: int = 0

    @property
    def limited(self) -> bool:
        """Whether there are too many orphaned files for a sweep to remove any."""
        orphans = len(self.orphans)
        return orphans > FILES_ALWAYS and orphans > self.share * self.files

    @property
    def orphans(self) -> list[FoundFile]:
        """Files with a proof."""
        return [one for one in self.found if one.is_orphan]

    @property
    def alarm(self) -> str:
        """Sentences for the operator, empty if the sweep needs none."""
        said = []
        if self.limited:
            said.append(
                f"The sweep removed nothing: {len(self.orphans):,} of {self.files:,} files are orphaned, and "
                f"services.sweep_share allows {self.share:.0%}. `lockstep sweep -c …` lists them with the "
                "proof for each, and removes them with --execute"
            )
        if unknown := self.unknown:
            instants = len({one.instant for one in unknown})
            said.append(
                f"{len(unknown):,} files of {instants:,} instants are kept: the timeline has neither a "
                f"commit nor a rollback of these instants. One of the files: {unknown[0].path}. A part of "
                "the timeline may be missing: compare .hoodie/timeline/history with a backup. "
                "`lockstep sweep -c …` lists the files"
            )
        return ". ".join(said)

    @property
    def unknown(self) -> list[FoundFile]:
        """Files without a proof, which stay."""
        return [one for one in self.found if not one.is_orphan]
