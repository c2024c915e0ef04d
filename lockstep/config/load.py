"""Out of the layers one valid configuration, or every problem at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lockstep.config.checks import check_relations, check_schema
from lockstep.config.model import SECTIONS, Config
from lockstep.config.problems import InvalidConfiguration, Problem, nearest, shown
from lockstep.config.sections import CONTROL_TOPIC_PREFIX
from lockstep.config.sources import (
    Given,
    SettingsLayers,
    flatten,
    read_conf,
    read_environment,
    read_file,
    read_sets,
)
from lockstep.errors import ConfigError


def load(
    path: Path | None,
    *,
    environment: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
    sets: Sequence[str] = (),
    defaults: Mapping[str, str] | None = None,
    with_schema: bool = True,
) -> Config:
    """The configuration of the file, overlaid by environment, `--conf` and `--set`, strongest last.

    `environment` is this process's where it is not given; `conf` is a Spark configuration.
    `with_schema=False` leaves the schema's own checks out, for commands that never touch the table;
    `defaults` are settings that such a command needs not to be told.
    Raises `InvalidConfiguration` with every problem, `ConfigError` where a source cannot be read at all.
    """
    settings = SettingsLayers(base=str(path) if path else "")
    settings.overlay(Given(n, value, "", "default", as_text=True) for n, value in (defaults or {}).items())
    if path is not None:
        settings.overlay(read_file(path))
    settings.overlay(read_environment(os.environ if environment is None else environment))
    settings.overlay(read_conf(conf or {}))
    settings.overlay(read_sets(sets))
    return _build(settings, with_schema=with_schema)


def from_mapping(mapping: Mapping[str, Mapping[str, Any]], *, with_schema: bool = True) -> Config:
    """The configuration in a mapping as the file would have it. Raises `InvalidConfiguration`."""
    settings = SettingsLayers()
    settings.overlay(_settings_of(mapping))
    return _build(settings, with_schema=with_schema)


def overlaid(config: Config, sets: Sequence[str]) -> Config:
    """A configuration as it would be with these, spelled as by `--set`. Without the schema's own checks.

    Raises `InvalidConfiguration`, `ConfigError` for what is not NAME=VALUE.
    """
    settings = SettingsLayers()
    settings.overlay(_settings_of(config.to_mapping()))
    settings.overlay(read_sets(sets))
    return _build(settings, with_schema=False)


def from_json(text: str) -> Config:
    """The inverse of `Config.to_json`. Raises `ConfigError`."""
    try:
        mapping = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"what should be a configuration is not JSON: {error}") from error
    if not isinstance(mapping, Mapping):
        raise ConfigError("what should be a configuration is not an object of sections")
    return from_mapping(mapping)


def _settings_of(mapping: Mapping[str, Mapping[str, Any]]) -> Iterator[Given]:
    for name, value in flatten(mapping):
        if name not in SECTIONS or value != {}:
            yield Given(name, value, "", "mapping", as_text=False)


def _build(settings: SettingsLayers, *, with_schema: bool) -> Config:
    values = {section: dict(settings.values.get(section, {})) for section in SECTIONS}
    problems = list(settings.problems)
    _derive_control_topic(values)
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        problems += _explain(error, settings)
        config = Config.model_validate(_patched(values, error))
    # What is already known to be wrong was replaced above: its relations say nothing.
    suspect = {problem.settings[0] for problem in problems}
    checks = chain(check_relations(config), check_schema(config) if with_schema else ())
    for problem in checks:
        if not suspect.intersection(problem.settings):
            problems.append(replace(problem, where=settings.where(problem.settings[0])))
    if problems:
        raise InvalidConfiguration(problems)
    return config


def _derive_control_topic(values: dict[str, dict[str, Any]]) -> None:
    pipeline = values["pipeline"].get("id")
    if not values["control"].get("topic") and isinstance(pipeline, str):
        values["control"]["topic"] = CONTROL_TOPIC_PREFIX + pipeline


def _patched(values: Mapping[str, Mapping[str, Any]], error: ValidationError) -> dict[str, dict[str, Any]]:
    """Every wrong value replaced by its default or its example, so that the rest can be checked."""
    patched = {section: dict(given) for section, given in values.items()}
    for detail in error.errors(include_url=False):
        section, key = str(detail["loc"][0]), str(detail["loc"][1])
        name, field = next(
            (name, field)
            for name, field in SECTIONS[section].model_fields.items()
            if key in (name, field.alias)
        )
        patched[section].pop(key, None)
        if field.is_required():
            assert field.examples, f"{section}.{name} has no example"
            patched[section][field.alias or name] = field.examples[0]
    return patched


def _explain(error: ValidationError, settings: SettingsLayers) -> Iterator[Problem]:
    seen: set[str] = set()
    for detail in error.errors(include_url=False):
        setting = f"{detail['loc'][0]}.{detail['loc'][1]}"
        if setting == "control.topic" and setting not in settings.origins and detail["type"] == "missing":
            continue  # only for want of pipeline.id, which has a problem of its own
        if setting not in seen:
            seen.add(setting)
            yield Problem(
                settings=(setting,), sentence=_sentence(setting, detail), where=settings.where(setting)
            )


def _sentence(setting: str, detail: ErrorDetails) -> str:
    """pydantic's finding in words for somebody who does not know pydantic."""
    value, kind, context = detail.get("input"), detail["type"], detail.get("ctx", {})
    section, _, name = setting.partition(".")
    if kind == "missing":
        field = next(f for n, f in SECTIONS[section].model_fields.items() if name in (n, f.alias))
        example = (field.examples or [""])[0]
        return f"missing; write {name} = {_toml(example)} or the like below [{section}]"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        choices = [choice.strip("'") for choice in str(context["expected"]).replace(" or ", ", ").split(", ")]
        hint = nearest(value, choices) if isinstance(value, str) else ""
        return f"{shown(value)} is not one of {', '.join(choices)}{hint}"
    wanted = {
        "int_type": "a whole number",
        "string_type": "text",
        "bool_type": "true or false",
        "tuple_type": 'a list, ["…"]',
        "greater_than_equal": f"{context.get('ge')} or more",
        "less_than_equal": f"{context.get('le')} or less",
    }.get(kind)
    return f"{shown(value)} is not {wanted}" if wanted else str(detail["msg"])


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"'
