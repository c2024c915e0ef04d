"""A pipeline's file: what was made of theirs, and, as comments, what somebody else has to say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.items import Comment, Table

from control_topic.spelling import one_line
from lockstep.config.load import from_mapping
from lockstep.config.model import SECTIONS
from lockstep.config.problems import InvalidConfiguration, Problem
from lockstep.config.sources import Given as GivenValue
from lockstep.config.sources import SettingsLayers, flatten, read_sets
from lockstep.migrate.sheet import PROPERTY_TABLES

Document = Mapping[str, Mapping[str, Any]]
"""Section -> name -> value, as the file has it."""


def document(settings: Mapping[str, object], sets: Sequence[str]) -> dict[str, dict[str, Any]]:
    """In the order of the file, overlaid by `--set`.

    Raises `ConfigError`, `InvalidConfiguration` for what `--set` says and no setting is.
    """
    layers = SettingsLayers()
    layers.overlay(
        GivenValue(f"{name}.{inner}" if name in PROPERTY_TABLES else name, value, "", "theirs", as_text=False)
        for name, given in settings.items()
        for inner, value in (flatten(given) if isinstance(given, Mapping) else [("", given)])
    )
    layers.overlay(read_sets(sets))
    if layers.problems:
        raise InvalidConfiguration(layers.problems)
    return {section: layers.values[section] for section in SECTIONS if layers.values.get(section)}


def problems_of(made: Document) -> tuple[Problem, ...]:
    """Why a run would refuse the file; none where it would take it."""
    try:
        from_mapping(made)
    except InvalidConfiguration as error:
        return error.problems
    return ()


def to_toml(made: Document, missing: Mapping[str, str], head: Sequence[str]) -> str:
    """The file. `missing`: setting -> what is to be said there; `head`: the first lines, as comments."""
    text = tomlkit.document()
    for line in head:
        text.add(_comment(line))
    for section in SECTIONS:
        wanted = {name: what for name, what in missing.items() if name.partition(".")[0] == section}
        if section not in made and not wanted:
            continue
        table = tomlkit.table()
        for name, value in made.get(section, {}).items():
            if not isinstance(value, Mapping):
                table.add(name, _value(value))
        for name, what in wanted.items():
            table.add(_comment(f"{name.partition('.')[2]} = …   # {what}"))
        for name, value in made.get(section, {}).items():
            if isinstance(value, Mapping):
                table.add(name, _properties(value))
        text.add(tomlkit.nl())
        text.add(section, table)
    return tomlkit.dumps(text)


def _properties(values: Mapping[str, object]) -> Table:
    table = tomlkit.table()
    for name, value in values.items():
        table.add(name, _value(value))
    return table


def _comment(line: str) -> Comment:
    return tomlkit.comment(one_line(line))


def _value(value: object) -> Any:
    return tomlkit.item(list(value) if isinstance(value, tuple) else value)
