"""The secrets that a configuration leads to, and text without them, however they are spelled in it.

What is secret: what a reference (`${env:…}`, `${file:…}`) leads to, a literal whose name says so, what stands
for a password in an address or a property of several parts, what the hooks send and where to, the ticket of
the page's cookie, and what this process's environment holds under such a name.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from lockstep.config import Config
from lockstep.config.hooks import host_of
from lockstep.config.properties import resolve_references
from lockstep.config.secrets import HIDDEN, is_secret_name, secrets_within, shown, without_secrets
from lockstep.config.sources import flatten
from lockstep.errors import ConfigError
from lockstep.support.spelled import BASE64_MIN, hexadecimal, sought, without
from lockstep.ui.access import LOCALHOST, Access

ALONE_MAX = 3
"""Secrets of so few characters are replaced where they stand alone: as parts of words they are everywhere."""
LINE_MIN = 16
"""Of a secret of several lines, such as a key, each of this length is one as well: logs are read by line."""
ENVIRONMENT_MIN = 8
HEADERS = "hooks.webhook_headers."
ADDRESSES = frozenset({"hooks.webhook", "hooks.openlineage"})
"""What is behind their hosts is as good as a password."""

_REFERENCE = re.compile(r"\$\{[^{}]*\}")
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
        header = name.startswith(HEADERS)
        hidden = header or is_secret_name(name)
        if name in ADDRESSES:
            found |= set(_behind_the_host(whole))
        if header:
            found |= {word for word in whole.split() if len(word) >= ENVIRONMENT_MIN}  # without its "Bearer"
        if hidden or parts:
            found |= {whole, *parts} if hidden or references == [value] else set(parts)
        found |= {unquote(one) for one in secrets_within(whole)}
        if _USER.search(name):
            users.add(whole)
    found |= set(_tickets(config, environment))
    found |= {
        value for name, value in environment.items() if is_secret_name(name) and len(value) >= ENVIRONMENT_MIN
    }
    short = {one for one in found if len(one.encode("utf-8", "surrogatepass")) < BASE64_MIN}
    found |= {f"{user}:{secret}" for user, secret in product(users, short) if user != secret}
    return Secrets(values=frozenset(one for one in found if one.strip()), problems=tuple(problems))


def _behind_the_host(address: str) -> Iterator[str]:
    """What is not shown of it: its path and its query, as a whole and what is long in them."""
    try:
        shown, parts = host_of(address), urlsplit(address)
    except ValueError:  # no address: where it is referred to, all of it is secret
        return
    if shown == address:
        return
    for one in (address[len(shown) :], parts.path, parts.query, parts.fragment):
        if len(one.strip("/")) > ALONE_MAX:
            yield one
    yield from (unquote(one) for one in parts.path.split("/") if len(one) >= LINE_MIN)
    yield from (value for _, value in parse_qsl(parts.query) if len(value) >= ENVIRONMENT_MIN)


def _tickets(config: Config, environment: Mapping[str, str]) -> Iterator[str]:
    """What the page's cookie holds."""
    with suppress(ConfigError, ValueError):  # there is no page with such a token
        if token := config.ui.resolved_token(environment):
            yield Access(bind=LOCALHOST, token=token).ticket()


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
    return shown(name, value) if isinstance(value, str) else value


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
        return without_secrets(text)


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
