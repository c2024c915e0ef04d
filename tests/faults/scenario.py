"""Faults on the real parts: what is done to a pipeline, the one outcome that is expected, how soon.

Every scenario is a function that takes a running world and returns what it measured. The catalogue is what
`docs/reliability.md` lists, `make faults` draws from and `make test` takes a small selection of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.stage import Stage


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one scenario showed. `recovery_s`: from the fault's end (or the kill) to the next commit.

    `expiry_s`: on top of the scenario's limit, because the fault left the table locked.
    """

    recovery_s: float | None = None
    expiry_s: float = 0.0
    notes: dict[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`fault` and `expected` are sentences of the documentation; `limit_s` bounds `recovery_s`."""

    name: str
    group: str
    fault: str
    expected: str
    play: Callable[[Stage], Outcome]
    limit_s: float | None = None
    in_tests: bool = False


CATALOGUE: dict[str, Scenario] = {}


def scenario(
    group: str, *, fault: str, expected: str, limit_s: float | None = None, in_tests: bool = False
) -> Callable[[Callable[[Stage], Outcome]], Callable[[Stage], Outcome]]:
    """Put the function into the catalogue under its own name. `in_tests`: `make test` plays it too."""

    def put(play: Callable[[Stage], Outcome]) -> Callable[[Stage], Outcome]:
        name = play.__name__  # type: ignore[attr-defined]
        assert name not in CATALOGUE, f"two scenarios are called {name}"
        CATALOGUE[name] = Scenario(name, group, fault, expected, play, limit_s, in_tests)
        return play

    return put
