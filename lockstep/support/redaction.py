"""The secrets that a configuration leads to, and text without them, however they are spelled in it.

What is secret: what a reference (`${env:…}`, `${file:…}`) leads to, a literal whose name says so, what stands
for a password in an address or a property of several parts, and what this process's environment holds under
such a name.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from lockstep.config import Config
from lockstep.config.properties import HIDDEN, is_secret_name, resolve_references
from lockstep.config.sources import flatten
from lockstep.errors import ConfigError
from lockstep.support.spelled import BASE64_MIN, hexadecimal, sought, without

ALONE_MAX = 3
"""Secrets of so few characters are replaced where they stand alone: as parts of words they are everywhere."""
LINE_MIN = 16
"""Of a secret of several lines, such as a key, each of this length is one as well: logs are read by line."""
ENVIRONMENT_MIN = 8
NO_SECRETS = frozenset({"storage.credentials"})
"""Named like one, and none: it says of what kind they are."""

_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_ADDRESS = re.compile(r"(://)[^\s/@:\"']{0,200}:([^\s/@\"']{1,200})@")
_PART = re.compile(r"(?:pass\w*|secret\w*|token\w*|\w*key)\s*[=:]\s*[\"']?([^\"'\s;,&]+)", re.IGNORECASE)
_USER = re.compile(r"(^|[._-])user(name)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What is to be found nowhere."""

    values: frozenset[str]
    problems: tuple[str, ...] = ()
    """References that lead nowhere here: what they stand for cannot be looked for."""

    def __repr__(self) -> str:
        return f"Secrets({len(self.values)})"


def secrets_of(config: Config, environment: Mapping[str, str], *, more: Iterable[str] = ()) -> Secrets:
    """`environment`: this process's. `more`: others that are known."""
    found: set[str] = {value for value in more if value}
    users: set[str] = set()
    problems: list[str] = []
    for name, value in _leaves(config.to_mapping()):
        references = _REFERENCE.findall(value)
        try:
            whole, *parts = (_resolved(name, one, environment) for one in (value, *references))
        except ConfigError as error:
            problems.append(str(error))
            continue
        hidden = name not in NO_SECRETS and is_secret_name(name)
        if hidden or parts:
            found |= {whole, *parts} if hidden or references == [value] else set(parts)
        found |= {unquote(match[2]) for match in _ADDRESS.finditer(whole)}
        if hidden:
            found |= set(_PART.findall(whole))
        if _USER.search(name):
            users.add(whole)
    found |= {
        value for name, value in environment.items() if is_secret_name(name) and len(value) >= ENVIRONMENT_MIN
    }
    short = {one for one in found if len(one.encode("utf-8", "surrogatepass")) < BASE64_MIN}
    found |= {f"{user}:{secret}" for user, secret in product(users, short) if user != secret}
    return Secrets(values=frozenset(one for one in found if one.strip()), problems=tuple(problems))


def _resolved(name: str, value: str, environment: Mapping[str, str]) -> str:
    section, _, setting = name.partition(".")
    return resolve_references({setting: value}, section=section, environment=environment)[setting]


def redacted(config: Config) -> dict[str, Any]:
    """The configuration for others: references as they are, literal secrets not at all."""
    mapping: dict[str, Any] = config.redacted()
    return {section: _hidden(values, section) for section, values in mapping.items()}


def _hidden(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _hidden(inner, f"{name}.{key}") for key, inner in value.items()}
    if name not in NO_SECRETS and is_secret_name(name) and isinstance(value, str) and value:
        return value if _REFERENCE.fullmatch(value) else HIDDEN
    return value


def _leaves(mapping: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and text of every setting that is one, or a list of some."""
    for name, value in flatten(mapping):
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, str) and one:
                yield name, one


class Redactor:
    """Text without secrets."""

    def __init__(self, secrets: Secrets) -> None:
        whole = {line for value in secrets.values for line in _lines(value) if len(line) > ALONE_MAX}
        self._sought = [one for text in sorted(whole, key=_longest_first) for one in sought(text)]
        spelled = {form for text in whole for form in hexadecimal(text)}
        spelled |= {form for value in secrets.values if len(value) < BASE64_MIN for form in spellings(value)}
        self._long = sorted((one for one in spelled if len(one) > ALONE_MAX), key=_longest_first)
        short = sorted((one for one in spelled if 0 < len(one) <= ALONE_MAX), key=_longest_first)
        alone = "|".join(map(re.escape, short))
        self._short = re.compile(rf"(?<!\w)(?:{alone})(?!\w)") if short else None
        self.has_short = bool(short)

    def __call__(self, text: str) -> str:
        text = without(text, self._sought, HIDDEN)  # longest first: what one is a part of goes with it
        for secret in self._long:
            text = text.replace(secret, HIDDEN)
        if self._short is not None:
            text = self._short.sub(HIDDEN, text)
        return _ADDRESS.sub(rf"\1{HIDDEN}:{HIDDEN}@", text)


def _longest_first(text: str) -> tuple[int, str]:
    return -len(text), text


def _lines(secret: str) -> set[str]:
    lines = [line.strip() for line in secret.splitlines()]
    return {secret, secret.strip(), *(line for line in lines if len(line) >= LINE_MIN)}


def spellings(secret: str) -> set[str]:
    """Of a secret that is too short for its inner part to be looked for: as it stands as a whole."""
    forms = _lines(secret)
    for one in tuple(forms):
        escaped = json.dumps(one)[1:-1]
        forms |= {escaped, json.dumps(escaped)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1]}
        forms |= {repr(one)[1:-1], html.escape(one), quote(one, safe=""), quote(one), quote_plus(one)}
        forms.add(re.sub(r"([\\:=#! ])", r"\\\1", one))  # a Java properties file
        raw = one.encode("utf-8", "surrogatepass")
        for encoded in (base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()):
            forms |= {encoded, encoded.rstrip("=")}
    return {form for form in forms if form.strip()}
