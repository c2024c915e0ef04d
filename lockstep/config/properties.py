"""The free properties of the configuration: which ones Lockstep owns, and how references to secrets resolve.

`source.kafka` holds librdkafka's properties (its CONFIGURATION.md), `table.hudi` holds `hoodie.*`, of which
`table.hudi.properties` knows what the write client obeys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lockstep.errors import ConfigError
from table.errors import Refused
from table.hudi import properties as hudi

SECRET_FILE_BYTES_MAX = 65_536

_REFERENCE = re.compile(r"\$\{([^:{}]*):([^{}]*)\}")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_OFFSETS_ARE_THE_TABLES = "the table alone says where to go on"
KAFKA_OWNED: Mapping[str, str] = {
    "bootstrap.servers": "write source.bootstrap_servers instead",
    "metadata.broker.list": "write source.bootstrap_servers instead",
    "group.id": "the group is named by pipeline.id",
    "group.instance.id": "every worker's slot has its own, derived from pipeline.id",
    "group.protocol": "the group's protocol is part of how partitions are handed over",
    "group.remote.assignor": "the group's protocol is part of how partitions are handed over",
    "partition.assignment.strategy": "partitions are handed over by cooperative-sticky",
    "isolation.level": "only committed records are read",
    "auto.offset.reset": "write source.starting_offsets and source.on_data_loss instead",
    "enable.auto.commit": _OFFSETS_ARE_THE_TABLES,
    "auto.commit.enable": _OFFSETS_ARE_THE_TABLES,
    "enable.auto.offset.store": _OFFSETS_ARE_THE_TABLES,
    "allow.auto.create.topics": "a source topic that does not exist is an error",
    "enable.partition.eof": "the end of a partition must be seen, or tails of aborted records would not move",
    "transactional.id": "Lockstep's transactions are the table's, not Kafka's",
    "acks": "control messages and dead letters must be durable",
    "request.required.acks": "control messages and dead letters must be durable",
    "enable.idempotence": "control messages and dead letters must be in order",
}
"""Properties that Lockstep sets itself, because exactness depends on them, and why."""


def refused_kafka_properties(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(property, why) for every one that may not be in `source.kafka`, or whose reference is malformed."""
    for name in properties:
        if name in KAFKA_OWNED:
            yield name, f"set by Lockstep itself: {KAFKA_OWNED[name]}"
    yield from _without_tokens(properties)
    yield from refused_references(properties)


def _without_tokens(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(property, why) where OAuth is asked for and no token would be fetched: clients would wait for one."""
    name = next((one for one in ("sasl.mechanism", "sasl.mechanisms") if one in properties), "")
    if properties.get(name, "").upper() != "OAUTHBEARER":
        return
    fetches = properties.get("sasl.oauthbearer.method", "").lower() == "oidc"
    if not fetches and properties.get("enable.sasl.oauthbearer.unsecure.jwt", "").lower() != "true":
        yield (
            name,
            (
                'needs "sasl.oauthbearer.method" = "oidc", with sasl.oauthbearer.client.id, .client.secret '
                "and .token.endpoint.url: no token is fetched otherwise"
            ),
        )


def refused_references(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(property, why) for every one whose reference to a secret is malformed."""
    for name, value in properties.items():
        for kind, target in _REFERENCE.findall(value):
            if kind not in ("env", "file"):
                yield name, 'holds a reference of an unknown kind: write "${env:NAME}" or "${file:/path}"'
            elif kind == "env" and not _ENVIRONMENT_NAME.fullmatch(target):
                yield name, 'does not name an environment variable: write "${env:NAME}"'
            elif kind == "file" and not Path(target).is_absolute():
                yield name, 'does not name a file by its absolute path: write "${file:/run/secrets/name}"'


def refused_hudi_properties(properties: Mapping[str, str], mode: str) -> Iterator[tuple[str, str]]:
    """(property, why) for every one that may not be in `table.hudi`; the table's own rules decide."""
    clustering = {name: value for name, value in properties.items() if name.startswith("hoodie.clustering.")}
    for name, value in properties.items():
        try:
            # One at a time, to hear of all; some are obeyed only beside those that turn clustering on.
            hudi.check({name: value, **clustering}, mode)
        except Refused as error:
            yield name, str(error).removeprefix(f"table.hudi: {name} ")


def holds_reference(value: str) -> bool:
    """Whether a reference is in it, whatever is around it."""
    return _REFERENCE.search(value) is not None


def is_reference(value: str) -> bool:
    """Whether the value is one whole reference and nothing else."""
    return _REFERENCE.fullmatch(value) is not None


def resolve_references(
    properties: Mapping[str, str],
    *,
    section: str = "source.kafka",
    environment: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Every `${env:NAME}` and `${file:PATH}` replaced. Raises `ConfigError` naming them, never a value."""
    known = os.environ if environment is None else environment
    problems: list[str] = []
    resolved: dict[str, str] = {}
    for name, value in properties.items():
        try:
            resolved[name] = _REFERENCE.sub(lambda match: _fetch(match[1], match[2], known), value)
        except ConfigError as error:
            problems.append(f"{section}.{name}: {error}")
    if problems:
        raise ConfigError("\n".join(problems))
    return resolved


def _fetch(kind: str, target: str, environment: Mapping[str, str]) -> str:
    if kind == "env":
        if target not in environment:
            raise ConfigError(f"the environment variable {target} is not set in this process: set it")
        return environment[target]
    try:
        with Path(target).open("rb") as file:
            content = file.read(SECRET_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{target} cannot be read: {error.strerror}; make it readable here") from error
    except ValueError as error:
        raise ConfigError(f"{target!r} cannot be a file's name: {error}") from error
    if len(content) > SECRET_FILE_BYTES_MAX:
        raise ConfigError(
            f"{target} is larger than {SECRET_FILE_BYTES_MAX} bytes: it does not look like a secret"
        )
    try:
        return content.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{target} is not UTF-8 text: write the secret as text") from None
