"""What keeps the page from being served, and what it does not show."""

from __future__ import annotations

from lockstep.errors import LockstepError


class NoPage(LockstepError):
    """The page cannot be served; the sentence says why, and what to do."""


class Hidden(LockstepError):
    """It is there, and is not for readers of the page."""
