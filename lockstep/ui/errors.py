"""What keeps the page from being served."""

from __future__ import annotations

from lockstep.errors import LockstepError


class NoPage(LockstepError):
    """The page cannot be served; the sentence says why, and what to do."""
