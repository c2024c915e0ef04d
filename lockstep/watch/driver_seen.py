"""What the driver's own answers tell from one to the next: deaths, outages, alarms. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from lockstep.watch.status import alarms

_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")
SAID_MAX = 256


@dataclass(slots=True)
class DriverSeen:
    """What was said before is no news, though its figures have changed."""

    run: str = ""
    outage: bool = False
    deaths: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, None] = field(default_factory=dict)

    def hear(self, live: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The next answer: what is new in it, as kind and text."""
        if live.get("run") != self.run:
            self.run, self.outage = str(live.get("run")), False
            self.deaths.clear()
            self.alarms.clear()
        failures = live.get("failures", {})
        yield from self._outage(failures)
        yield from self._deaths(failures)
        yield from self._alarms(live)

    def _outage(self, failures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        lasts = bool(failures.get("outage_ms")) and bool(failures.get("reasons"))
        if lasts and not self.outage:
            yield "outage", str(failures["reasons"][-1])
        self.outage = lasts

    def _deaths(self, failures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Each is told with how often it happened; once more of it is news."""
        said = {_NUMBERS.sub("#", text): str(text) for text in failures.get("deaths", ())}
        for shape, text in said.items():
            if self.deaths.get(shape) != text:
                yield "death", text
        self.deaths = said

    def _alarms(self, live: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        shapes = {_NUMBERS.sub("#", text): text for text in islice(alarms(live), SAID_MAX)}
        for shape, text in shapes.items():
            if shape not in self.alarms:
                yield "alarm", text
        self.alarms = dict.fromkeys(shapes)


def deceased(text: str) -> tuple[str, str] | None:
    """Who died, and of what, of a sentence such as `worker-1: its process died`."""
    worker, separator, reason = text.partition(": ")
    return (worker, reason) if separator and worker.startswith("worker-") else None
