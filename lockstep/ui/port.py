"""What the page is shown from: somebody who watches a pipeline, and somebody who gives it orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Page(Protocol):
    """How a pipeline stands, as of one moment."""

    @property
    def number(self) -> int:
        """Grows with every change."""

    @property
    def document(self) -> dict[str, Any]:
        """All of it, fit for JSON."""


class Watched(Protocol):
    """One pipeline that is watched. Every call is safe from any thread."""

    def page(self) -> Page:
        """The newest."""

    def wait(self, number: int, timeout_s: float) -> Page:
        """The newest, at once where it is newer than `number`."""

    def story(self, transaction: str) -> dict[str, Any] | None:
        """All that is known of one transaction."""

    def source_partitions(self) -> list[dict[str, Any]]:
        """All of them, the worst first."""

    def dead_letter(self, topic: str, partition: int, offset: int) -> dict[str, Any] | None:
        """The value of one that the page names; None where it names no such one.

        Raises `Hidden` where values are nobody's to see, `LockstepError` where it cannot be had.
        """

    def metrics(self, *, openmetrics: bool) -> bytes:
        """For a scraper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedOrder:
    """What a reader of the page orders, as they wrote it."""

    action: str
    """Of `control_topic.controls.ACTIONS`."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Setting -> value, as the configuration calls and spells them."""
    who: str = ""
    why: str = ""
    host: str = ""
    """From where."""
    run: str = ""
    """Which they saw; empty: whichever goes on."""


class Ordering(Protocol):
    """Gives orders to one pipeline's run. Every call is safe from any thread."""

    def give(self, wanted: WantedOrder) -> int:
        """The order's number, once it is taken. Raises `LockstepError` where it is not."""
