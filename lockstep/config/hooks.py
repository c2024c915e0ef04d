"""What of `[hooks]` does not go together, and its secrets: resolved where they are used, never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from lockstep.config.hook_sections import HooksSection
from lockstep.config.problems import Problem
from lockstep.config.properties import (
    holds_reference,
    is_reference,
    refused_references,
    resolve_references,
)
from lockstep.config.secrets import HIDDEN, is_secret_name
from lockstep.config.values import HIVE_NAME, web_address_problem
from lockstep.errors import ConfigError
from table.store.location import Location

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
"""A token, as RFC 9110 has it."""
HEADER_CHARACTERS_MAX = 8_192
ADDRESS_CHARACTERS_MAX = 4_096
HEADERS_MAX = 50
MINUTE_MS = 60_000
OWN_HEADERS = frozenset(
    ("content-length", "content-type", "transfer-encoding", "host", "connection", "idempotency-key")
)


def check_complete(given: HooksSection, *, event_time: str, table: str) -> Iterator[Problem]:
    """`event_time`: `record.event_time`. `table`: where it is."""
    every, folder = "hooks.complete_every", "hooks.complete_folder"
    if given.complete_every_ms % MINUTE_MS:
        yield Problem(settings=(every,), sentence="not in whole minutes")
    if given.complete_every_ms and not event_time:
        sentence = "nothing is complete by an event time that is not declared: name the column that has it"
        yield Problem(settings=(every, "record.event_time"), sentence=sentence)
    if not given.complete_folder:
        return
    if not given.complete_every_ms:
        sentence = 'means nothing without hooks.complete_every: "24h" are days'
        yield Problem(settings=(folder, every), sentence=sentence)
    here, there = Location.parse(given.complete_folder, setting=folder), Location.parse(table)
    if (here.scheme, here.authority) != (there.scheme, there.authority):
        sentence = (
            f"not where the table is, {there.scheme}://{there.authority}: it is reached as the table is"
        )
        yield Problem(settings=(folder, "table.path"), sentence=sentence)
    elif f"{here.path}/".startswith(f"{there.path}/"):
        sentence = (
            "in the table's own folder, where readers would take it for a table partition: name another"
        )
        yield Problem(settings=(folder, "table.path"), sentence=sentence)


def check_hooks(given: HooksSection, taken: Mapping[str, str], *, table: str) -> Iterator[Problem]:
    """`taken`: topics that are used already, and what for. `table`: the name of the pipeline's."""
    if given.topic in taken:
        sentence = f"{given.topic} is also {taken[given.topic]}: name another"
        yield Problem(settings=("hooks.topic",), sentence=sentence)
    for name, whose in (("webhook_headers", "webhook"), ("openlineage_api_key", "openlineage")):
        if getattr(given, name) and not getattr(given, whose):
            sentence = f"means nothing without hooks.{whose}: take it out, or say whose it is"
            yield Problem(settings=(f"hooks.{name}", f"hooks.{whose}"), sentence=sentence)
    if given.openlineage_api_key and given.openlineage.startswith("file://"):
        sentence = "means nothing to a file: take it out"
        yield Problem(settings=("hooks.openlineage_api_key", "hooks.openlineage"), sentence=sentence)
    if not given.openlineage_namespace.strip():
        yield Problem(settings=("hooks.openlineage_namespace",), sentence='empty; write a name, "lockstep"')
    if given.hive and not given.hive_table and not HIVE_NAME.fullmatch(table):
        sentence = f"missing; {table!r} is no name in Hive: 1 to 128 letters, digits and '_'"
        yield Problem(settings=("hooks.hive_table", "table.name"), sentence=sentence)
    yield from _check_headers(given.webhook_headers)


def _check_headers(headers: Mapping[str, str]) -> Iterator[Problem]:
    if len(headers) > HEADERS_MAX:
        yield Problem(settings=("hooks.webhook_headers",), sentence=f"more than {HEADERS_MAX} headers")
    for name, why in refused_references(headers):
        yield Problem(settings=(f"hooks.webhook_headers.{name}",), sentence=why)
    for name, value in headers.items():
        setting = f"hooks.webhook_headers.{name}"
        if problem := _header_problem(name, value):
            yield Problem(settings=(setting,), sentence=problem)
        elif is_secret_name(name) and not holds_reference(value):
            sentence = 'a secret, given as it is: write "${env:NAME}" or "${file:/path}" for it'
            yield Problem(settings=(setting,), sentence=sentence)


def _header_problem(name: str, value: str) -> str:
    """Why it is no header to send, or an empty string; never with its value."""
    if not HEADER_NAME.fullmatch(name):
        return "not the name of a header"
    if name.lower() in OWN_HEADERS:
        return "set by Lockstep itself: take it out"
    if len(value) > HEADER_CHARACTERS_MAX or not value.isascii() or not value.isprintable():
        return f"a header holds printable ASCII, {HEADER_CHARACTERS_MAX} characters at most"
    return ""


def resolve_webhook(
    given: HooksSection, *, environment: Mapping[str, str] | None = None
) -> tuple[str, dict[str, str]]:
    """Its address and headers, secrets resolved in this process. Raises `ConfigError`, without a value."""
    address = _resolved_address("webhook", given.webhook, environment)
    headers = resolve_references(
        given.webhook_headers, section="hooks.webhook_headers", environment=environment
    )
    for name, value in headers.items():
        if problem := _header_problem(name, value):
            raise ConfigError(f"hooks.webhook_headers.{name}: {problem}")
    return address, headers


def resolve_lineage(given: HooksSection, *, environment: Mapping[str, str] | None = None) -> tuple[str, str]:
    """The address and the key, as `resolve_webhook` has it."""
    address = given.openlineage
    if not address.startswith("file://"):
        address = _resolved_address("openlineage", address, environment)
    name = "openlineage_api_key"
    key = resolve_references({name: given.openlineage_api_key}, section="hooks", environment=environment)[
        name
    ]
    if problem := _header_problem("Authorization", key):
        raise ConfigError(f"hooks.{name}: {problem}")
    return address, key


def _resolved_address(name: str, given: str, environment: Mapping[str, str] | None) -> str:
    address = resolve_references({name: given}, section="hooks", environment=environment)[name].strip()
    problem = web_address_problem(address)
    if len(address) > ADDRESS_CHARACTERS_MAX:
        problem = f"longer than {ADDRESS_CHARACTERS_MAX} characters"
    if problem:
        raise ConfigError(f"hooks.{name}: {problem}")
    return address


def host_of(address: str) -> str:
    """What may be shown of an address: where it is, without path and query, which may hold a secret."""
    if not address or is_reference(address) or address.startswith("file://"):
        return address
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def redacted_hooks(given: HooksSection) -> dict[str, object]:
    """What is shown of those settings that may hold a secret."""
    headers = {
        name: value if holds_reference(value) else HIDDEN for name, value in given.webhook_headers.items()
    }
    return {
        "webhook": host_of(given.webhook),
        "webhook_headers": headers,
        "openlineage": host_of(given.openlineage),
    }
