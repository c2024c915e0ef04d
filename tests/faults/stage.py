"""Where a scenario plays: a pipeline, its broker, and what is needed to hit it at a certain moment."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.broker import Broker
from tests.harness import Pipeline, Run


@dataclass(slots=True)
class Stage:
    """One scenario's own topic, table and broker. `close` ends whatever was started here."""

    broker: Broker
    pipeline: Pipeline
    run: Run | None = None
