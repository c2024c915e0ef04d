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
Table = Mapping[Any, Mapping[type[Any], Any]]
"""State -> event -> `Step`."""
ENDS = ("FENCED", "HALTED", "STOPPED")
"""Final, and reached from nearly everywhere: said in words, and not drawn."""
MACHINES: Mapping[str, Table] = {"coordinator": coordinator.TABLE, "participant": participant.TABLE}


def diagram(table: Table) -> str:
    """One machine as Mermaid draws it: each step between two states once, with the events that lead there."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {next(iter(table)).name}"]
    for (state, to), events in _steps(table).items():
        if to.name not in ENDS:
            lines.append(f"    {state.name} --> {to.name}: {', '.join(map(_event, events))}")
    lines.append("```")
    for end in table:
        if end.name in ENDS:
            ways = [(state.name, events) for (state, to), events in _steps(table).items() if to is end]
            lines += ["", f"{end.name} is final. {_ways(ways)}."]
    return "\n".join(lines)


def _ways(ways: list[tuple[str, list[type[Any]]]]) -> str:
    """Which events lead there, and from where."""
    by_events: dict[str, list[str]] = {}
    for state, events in ways:
        for event in events:
            by_events.setdefault(_event(event), []).append(state)
    most = len(ways)
    said = []
    for event, states in by_events.items():
        others = sorted({state for state, _ in ways} - set(states))
        if len(states) == most:
            said.append(f"{event} leads there from every other state that is not final")
        elif len(others) < len(states):
            said.append(f"{event} from all of these but {', '.join(others)}")
        else:
            said.append(f"{event} from {', '.join(states)}")
    return "; ".join(said)


def _steps(table: Table) -> dict[tuple[Any, Any], list[type[Any]]]:
    """(state, next state) -> the events, in the order of the tables."""
    found: dict[tuple[Any, Any], list[type[Any]]] = {}
    for state, row in table.items():
        for to in table:
            events = [event for event, step in row.items() if to in step.to]
            if events:
                found[state, to] = events
    return found


def markdown(table: Table) -> str:
    """One machine: first what most states do with an event, then, state by state, what differs."""
    usual = _usual(table)
    lines = ["| event | usually | |", "|---|---|---|"]
    lines += [f"| {_event(event)} | {_does(step)} | {_meaning(event)} |" for event, step in usual.items()]
    lines += ["", "| state | differs in |", "|---|---|"]
    lines += [f"| {state.name} | {'; '.join(_differences(row, usual))} |" for state, row in table.items()]
    return "\n".join(lines)


def updated(document: str) -> str:
    """The document with every machine's tables in their place. Raises `ValueError` where it has no place."""
    parts = {f"{machine} states": partial(markdown, table) for machine, table in MACHINES.items()}
    parts |= {f"{machine} diagram": partial(diagram, table) for machine, table in MACHINES.items()}
    return fill(document, parts, DOCUMENT.name)


def _usual(table: Table) -> dict[type[Any], str | None]:
    """What most states do with an event, None for illegal, in the order in which the tables name events."""
    events = dict.fromkeys(event for row in table.values() for event in row)
    votes = {event: Counter(_method(row, event) for row in table.values() if row) for event in events}
    return {event: counted.most_common(1)[0][0] for event, counted in votes.items()}


def _method(row: Mapping[type[Any], Any], event: type[Any]) -> str | None:
    return row[event].method if event in row else None


def _differences(row: Mapping[type[Any], Any], usual: Mapping[type[Any], str | None]) -> Iterator[str]:
    if not row:
        yield "final: nothing more is legal"
        return
    different = {event: _method(row, event) for event in usual if _method(row, event) != usual[event]}
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
