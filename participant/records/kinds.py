"""Which formats and envelopes there are. To add one: a folder beside this module, and a line here.

What a line names is imported when it is used, and not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

FORMATS: Mapping[str, str] = {"json": "participant.records.json.format:JsonFormat"}
"""Name in the configuration -> the `participant.records.port.Format`. Of values and of keys alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeKind:
    """What is to be known of an envelope before it is used."""

    made_by: str
    """Its `participant.records.port.Envelope`, as `module:class`."""
    formats: frozenset[str] = field(default_factory=lambda: frozenset(FORMATS))
    """Those of values that it can be read from."""
    brings_order: bool = False
    """Whether its records say by themselves which of two is newer, and which delete: the table then has a
    column of positions, and only upserts make sense."""


ENVELOPES: Mapping[str, EnvelopeKind] = {
    "none": EnvelopeKind(made_by="participant.records.envelopes.plain:Plain"),
    "debezium": EnvelopeKind(
        made_by="participant.records.envelopes.debezium.envelope:ChangeEvents",
        formats=frozenset({"json"}),
        brings_order=True,
    ),
}
"""Name in the configuration -> what it is."""


def made(name: str) -> Any:
    """What `module:class` names, made without arguments."""
    return resolve_name(name)()
