"""Where settings come from: the file, the environment, `--conf`, `--set`; strongest last.

Every source is flattened to dotted names (`transaction.interval`, `source.kafka.security.protocol`), so that
one piece of code decides what a name means. Each value keeps where it was given, for the sentence about it.
"""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_origin

from lockstep.config.model import SECTIONS
from lockstep.config.problems import Problem, nearest
from lockstep.config.properties import holds_reference, is_reference
from lockstep.config.secrets import holds_secret
from lockstep.errors import ConfigError

FILE_BYTES_MAX = 1_048_576
ENVIRONMENT_PREFIX = "LOCKSTEP_"
CONF_PREFIX = "spark.lockstep."

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
_COMMA = re.compile(r",(?![^()]*\))")
"""None of those within a function."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Synonym:
    """A name that is accepted for a setting."""

    setting: str
    convert: Callable[[object], object]
    """Turns its value into the setting's."""


def _seconds(value: object) -> object:
    return f"{value}s"


SYNONYMS: Mapping[str, Synonym] = {
    "hoodie.kafka.commit.interval.secs": Synonym("transaction.interval", _seconds),
    "hoodie.kafka.coordinator.write.timeout.secs": Synonym("transaction.write_timeout", _seconds),
    "hoodie.kafka.control.topic": Synonym("control.topic", lambda value: value),
}
"""The names of Apache Hudi RFC-32."""

KINDS: Mapping[str, Any] = {
    f"{section}.{field.alias or name}": get_origin(field.annotation) or field.annotation or str
    for section, model in SECTIONS.items()
    for name, field in model.model_fields.items()
}
"""Setting -> the Python type that its value has: `dict` for properties, `tuple` for lists."""

_HEADERS = "hooks.webhook_headers"
_ADDRESSES = frozenset({"hooks.webhook", "hooks.openlineage"})
"""Addresses whose path and query let anybody post there."""
_HOST_ALONE = re.compile(r"(?:file:.*|https?://[^/?#@]*)[/?#]*", re.IGNORECASE | re.DOTALL)

PROPERTY_TABLES = tuple(setting for setting, kind in KINDS.items() if kind is dict)
"""Settings whose keys are free: `source.kafka`, `table.hudi`."""


@dataclass(frozen=True, slots=True)
class Given:
    """One value and where it was given."""

    name: str
    value: object
    where: str
    layer: str
    as_text: bool
    secret_allowed: bool = True
    """It did not come from a command line."""


@dataclass(slots=True)
class SettingsLayers:
    """All layers, put one over the other."""

    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    origins: dict[str, Given] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    base: str = ""

    def overlay(self, layer: Iterable[Given]) -> None:
        """Lay one layer over what is there; of one layer's equal names the last wins."""
        spelled: dict[str, str] = {}
        unknown: set[str] = set()
        for given in layer:
            setting, value = self._meaning(given)
            if setting is None:
                section = given.name.partition(".")[0]
                if section in SECTIONS or section not in unknown:
                    self.problems.append(_unknown(given))
                unknown.add(section)
                continue
            other = spelled.setdefault(setting, given.name)
            if other != given.name:
                sentence = f"given twice, as {other} and as {given.name}: keep one"
                self.problems.append(Problem(settings=(setting,), sentence=sentence, where=given.where))
                continue
            self._put(setting, value, given)

    def where(self, setting: str) -> str:
        """What to edit to change a setting: where it was given, or the file where it was not."""
        if setting in self.origins:
            return self.origins[setting].where
        table = next((table for table in PROPERTY_TABLES if setting.startswith(table + ".")), setting)
        return self.origins[table].where if table in self.origins else self.base

    def _meaning(self, given: Given) -> tuple[str | None, object]:
        synonym = SYNONYMS.get(given.name)
        if synonym is not None:
            logger.warning("%s: %s is taken as %s", given.where, given.name, synonym.setting)
            return synonym.setting, synonym.convert(given.value)
        if given.name in KINDS:
            return given.name, given.value
        if any(given.name.startswith(table + ".") for table in PROPERTY_TABLES):
            return given.name, given.value
        return None, None

    def _put(self, setting: str, value: object, given: Given) -> None:
        kind = KINDS.get(setting, str)
        try:
            if given.as_text and isinstance(value, str):
                value = _from_text(value, kind)
        except ValueError as error:
            self.problems.append(Problem(settings=(setting,), sentence=str(error), where=given.where))
            return
        if kind is dict and isinstance(value, Mapping):
            for name, inner in flatten(value):
                self._put_property(f"{setting}.{name}", inner, given)
            return
        if setting not in KINDS:
            self._put_property(setting, value, given)
            return
        if not given.secret_allowed and _is_secret_setting(setting, value):
            self._refuse_secret(setting, given, 'write "${env:NAME}" or "${file:/path}" instead')
            return
        section, _, name = setting.partition(".")
        self.values.setdefault(section, {})[name] = value
        self.origins[setting] = given

    def _refuse_secret(self, setting: str, given: Given, instead: str) -> None:
        sentence = (
            f"a secret, given on a command line, where other users of the machine can read it: {instead}"
        )
        self.problems.append(Problem(settings=(setting,), sentence=sentence, where=given.where))

    def _put_property(self, setting: str, value: object, given: Given) -> None:
        section, table, name = setting.split(".", 2)
        if not given.secret_allowed and _is_secret_property(f"{section}.{table}", name, value):
            instead = 'write "${env:NAME}" or "${file:/path}" instead'
            if table == "hudi":  # Hudi knows no references
                instead = "write it into the pipeline's file, which only its user may read"
            self._refuse_secret(setting, given, instead)
            return
        properties = self.values.setdefault(section, {}).setdefault(table, {})
        if isinstance(properties, dict):
            properties[name] = value
            self.origins[setting] = given


def _is_secret_setting(setting: str, value: object) -> bool:
    """Return whether a setting that is no table of properties holds a secret in clear text."""
    texts = [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
    if setting in _ADDRESSES and any(not (is_reference(one) or _HOST_ALONE.fullmatch(one)) for one in texts):
        return True
    return any(holds_secret("", one) for one in texts)


def _is_secret_property(table: str, name: str, value: object) -> bool:
    """Return whether a property holds a secret in clear text: each header of a webhook may."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if table == _HEADERS:
        return not holds_reference(text)
    return table != "record.columns" and holds_secret(name, text)


def read_file(path: Path) -> Iterator[Given]:
    """The settings of a TOML file. Raises `ConfigError` where there is no such file, or it is not TOML."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}; give the configuration with -c FILE"
        ) from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(
            f"{path} is larger than {FILE_BYTES_MAX} bytes: it does not look like a configuration"
        )
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    except ValueError as error:  # Python's own, of thousands of digits
        raise ConfigError(f"{path} holds a number that is too large for any setting") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply for any setting") from error
    for section, table in document.items():
        if section in SECTIONS and not isinstance(table, Mapping):
            raise ConfigError(f"{path}: {section} is a section: write [{section}] and its settings below")
    for name, value in flatten(document):
        section = name.partition(".")[0]
        where = f"{path}, [{section}]" if section in SECTIONS else f"{path}"
        if name in SECTIONS:
            continue  # an empty section
        yield Given(name, value, where, "file", as_text=False)


def read_environment(environment: Mapping[str, str]) -> Iterator[Given]:
    """`LOCKSTEP_SECTION__KEY`, and `LOCKSTEP_SOURCE__KAFKA__SECURITY_PROTOCOL` for a property of librdkafka.

    Variables without a double underscore are not settings.
    """
    synonyms = {name.upper().replace(".", "_").replace("_", "__", 1): name for name in SYNONYMS}
    for variable in sorted(environment):
        rest = variable.removeprefix(ENVIRONMENT_PREFIX)
        if rest == variable or "__" not in rest:
            continue
        name = synonyms.get(rest)
        if name is None:
            section, key, *inner = rest.lower().split("__", 2)
            dotted = (section, key) != ("record", "columns")
            name = ".".join([section, key, *(part.replace("_", ".") if dotted else part for part in inner)])
        yield Given(name, environment[variable], f"environment {variable}", "environment", as_text=True)


def read_conf(conf: Mapping[str, str]) -> Iterator[Given]:
    """`spark.lockstep.<setting>` out of a Spark configuration; everything else in it is Spark's."""
    for key, value in conf.items():
        if key.startswith(CONF_PREFIX):
            name = key.removeprefix(CONF_PREFIX)
            yield Given(name, value, f"--conf {key}", "--conf", as_text=True, secret_allowed=False)


def read_sets(assignments: Sequence[str]) -> Iterator[Given]:
    """`setting=value` as given to `--set`. Raises `ConfigError` for one without `=`."""
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        name = name.strip().replace('"', "")
        if not separator or not name:
            # Not repeated whole: whatever it is might be a secret.
            raise ConfigError(f"--set {name.split(' ')[0]} has no '=': write --set transaction.interval=5s")
        yield Given(name, value, f"--set {name}", "--set", as_text=True, secret_allowed=False)


def flatten(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Dotted name and value of every leaf: TOML reads `security.protocol = …` as a table in a table."""
    open_tables = [(prefix, iter(mapping.items()))]  # a stack: as deep as somebody writes dots
    while open_tables:
        prefix, items = open_tables[-1]
        for key, value in items:
            if isinstance(value, Mapping) and value:
                open_tables.append((f"{prefix}{key}.", iter(value.items())))
                break
            yield f"{prefix}{key}", value
        else:
            open_tables.pop()


def _from_text(text: str, kind: object) -> object:
    """A value out of a source that knows text only. What does not fit stays text and is refused later."""
    if kind is int:
        return int(text) if _WHOLE.fullmatch(text) else text
    if kind is bool:
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    if kind is tuple and not text.lstrip().startswith("["):
        return [item.strip() for item in _COMMA.split(text)] if text.strip() else []
    if kind is tuple or kind is dict:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            example = '["a", "b"] or a,b' if kind is tuple else '{"name": "value"}'
            raise ValueError(f"not JSON: write {example} ({error.msg} at character {error.pos})") from None
        except (ValueError, RecursionError):  # of thousands of digits; of thousands of brackets
            raise ValueError("larger or deeper than any setting is") from None
    return text


def _unknown(given: Given) -> Problem:
    section, _, key = given.name.partition(".")
    if section not in SECTIONS:
        known = [*SECTIONS, *SYNONYMS, *(setting.partition(".")[2] for setting in KINDS)]
        hint = nearest(given.name, list(SYNONYMS)) or nearest(section, known)
        return Problem(settings=(section,), sentence=f"not a section{hint}", where=given.where)
    siblings = {s.partition(".")[2]: s for s in KINDS if s.startswith(section + ".")}
    elsewhere = {setting.partition(".")[2]: setting for setting in KINDS}
    if key in elsewhere:
        hint = f"; did you mean {elsewhere[key]}?"
    else:
        hint = nearest(key, siblings) or nearest(given.name, list(KINDS))
    return Problem(settings=(given.name,), sentence=f"not a setting{hint}", where=given.where)
