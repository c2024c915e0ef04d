"""Write the state tables of both cores into docs/protocol.md. Run by `make docs`, tested for staleness.

The tables are the cores' own (`coordinator/transitions.py`, `participant/transitions.py`): what the document
shows is what runs.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from control_topic.messages import TYPE_NAMES  # noqa: E402
from coordinator import transitions as coordinator  # noqa: E402
from participant import transitions as participant  # noqa: E402
from tools.places import fill  # noqa: E402

DOCUMENT = ROOT / "docs" / "protocol.md"
Table = Mapping[Any, Mapping[type[Any], str]]
MACHINES: Mapping[str, Table] = {"coordinator": coordinator.TABLE, "participant": participant.TABLE}


def markdown(table: Table) -> str:
    """One machine: first what most states do with an event, then, state by state, what differs."""
    usual = _usual(table)
    lines = ["| event | usually | |", "|---|---|---|"]
    lines += [f"| {_event(event)} | {_does(name)} | {_meaning(event)} |" for event, name in usual.items()]
    lines += ["", "| state | differs in |", "|---|---|"]
    lines += [f"| {state.name} | {'; '.join(_differences(row, usual))} |" for state, row in table.items()]
    return "\n".join(lines)


def updated(document: str) -> str:
    """The document with every machine's tables in their place. Raises `ValueError` where it has no place."""
    parts = {f"{machine} states": partial(markdown, table) for machine, table in MACHINES.items()}
    return fill(document, parts, DOCUMENT.name)


def _usual(table: Table) -> dict[type[Any], str | None]:
    """What most states do with an event, None for illegal, in the order in which the tables name events."""
    events = dict.fromkeys(event for row in table.values() for event in row)
    votes = {event: Counter(row.get(event) for row in table.values()) for event in events}
    return {event: counted.most_common(1)[0][0] for event, counted in votes.items()}


def _differences(row: Mapping[type[Any], str], usual: Mapping[type[Any], str | None]) -> Iterator[str]:
    if row and not any(row.values()):
        yield "final: everything is ignored"
        return
    different = {event: row.get(event) for event in usual if row.get(event) != usual[event]}
    for event, name in different.items():
        if name:
            yield f"{_event(event)} {_does(name)}"
    ignored = [_event(event) for event, name in different.items() if name == ""]
    if ignored:
        yield f"ignored: {', '.join(ignored)}"
    illegal = [_event(event) for event, name in different.items() if name is None]
    if illegal:
        yield f"illegal: {', '.join(illegal)}"
    if not different:
        yield "nothing"


def _event(event: type[Any]) -> str:
    return TYPE_NAMES.get(event, event.__name__)


def _does(name: str | None) -> str:
    if name is None:
        return "illegal"
    return f"`{name}`" if name else "ignored"


def _meaning(event: type[Any]) -> str:
    """What the shell's own events are, in their own words; messages have a table of their own."""
    if event in TYPE_NAMES:
        return ""
    return inspect.cleandoc(event.__doc__ or "").splitlines()[0]


if __name__ == "__main__":
    before = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(updated(before), encoding="utf-8")
    sys.stdout.write(f"{DOCUMENT.relative_to(ROOT)}\n")
