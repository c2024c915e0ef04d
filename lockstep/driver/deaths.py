"""Workers that die without a commit between them: so many end the run. Pure."""

from __future__ import annotations

from table.service.ledger import LedgerLimits

PAUSED_QUIET_S = LedgerLimits().outage_budget_ms / 1_000
"""Nothing is committed in a pause, however long it is: a loss so long after the one before is no crash
loop."""


class Deaths:
    """`deaths_max`: so many are borne."""

    def __init__(self, deaths_max: int) -> None:
        self._deaths_max = deaths_max
        self._reasons: list[str] = []
        self._last_s = 0.0

    def committed(self) -> None:
        """It is counted anew."""
        self._reasons.clear()

    def add(self, now_s: float, reason: str, *, paused: bool) -> str:
        """Why the run halts; empty where it goes on."""
        if paused and now_s - self._last_s > PAUSED_QUIET_S:
            self._reasons.clear()
        self._last_s = now_s
        self._reasons.append(reason)
        if len(self._reasons) <= self._deaths_max:
            return ""
        return (
            f"{len(self._reasons)} workers died without a commit between them; the last: {reason}. "
            "Nothing is lost: remove the cause and start again."
        )
