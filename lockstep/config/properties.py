"""The free properties of the configuration: which ones Lockstep owns, which are secrets, how secrets resolve.

`source.kafka` holds librdkafka's properties (its CONFIGURATION.md), `table.hudi` holds `hoodie.*`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lockstep.errors import ConfigError

SECRET_FILE_BYTES_MAX = 65_536
HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|credential|(^|[._-])key[._-]pem$|(^|[._-])(api|access|account)[._-]?key"
    r"|jaas|oauthbearer\.(config|extensions)|(^|[._-])token$",
    re.IGNORECASE,
)
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
    "enable.partition.eof": "the end of a partition must be seen, or tails of aborted records would not move",
    "transactional.id": "Lockstep's transactions are the table's, not Kafka's",
    "acks": "control messages and dead letters must be durable",
    "request.required.acks": "control messages and dead letters must be durable",
    "enable.idempotence": "control messages and dead letters must be in order",
}
"""Properties that Lockstep sets itself, because exactness depends on them, and why."""

_SYNC = "the write client ignores catalog synchronisation"
_NOT_ITS_OWN = "it configures another program than the write client, which would ignore it"
_COLUMNS = "write table.key, table.partition_by or record.schema instead"
HUDI_OWNED: Mapping[str, str] = {
    "hoodie.table.name": "write table.name instead",
    "hoodie.base.path": "write table.path instead",
    "hoodie.table.type": "table.kind decides it",
    "hoodie.avro.schema": "write record.schema instead",
    "hoodie.write.schema": "write record.schema instead",
    "hoodie.table.recordkey.fields": _COLUMNS,
    "hoodie.table.partition.fields": _COLUMNS,
    "hoodie.parquet.max.file.size": "write table.target_file_size instead",
    "hoodie.metadata.streaming.write.enabled": "those writes assume files of Hudi's own Spark jobs",
    "hoodie.rollback.using.markers": "an aborted transaction's files are found by its markers",
    "hoodie.write.markers.type": "workers write markers of their own, of type DIRECT",
    "hoodie.cleaner.policy.failed.writes": "an EAGER writer would roll back other writers' open instants",
    "hoodie.clean.failed.writes.policy": "an EAGER writer would roll back other writers' open instants",
    "hoodie.populate.meta.fields": "record keys and instants must be in the table to be verified",
}
HUDI_IGNORED: Mapping[str, str] = {
    "hoodie.kafka.": "it is RFC-32's name for a setting of [transaction] or [control]",
    "hoodie.datasource.hive_sync.": _SYNC,
    "hoodie.datasource.meta.sync.": _SYNC,
    "hoodie.datasource.meta_sync.": _SYNC,
    "hoodie.meta.sync.": _SYNC,
    "hoodie.gcp.bigquery.sync.": _SYNC,
    "hoodie.datasource.read.": "it belongs to readers",
    "hoodie.datasource.query.": "it belongs to readers",
    "hoodie.streamer.": _NOT_ITS_OWN,
    "hoodie.deltastreamer.": _NOT_ITS_OWN,
    "hoodie.bulkinsert.": "workers write the files, not Hudi's Spark jobs",
    "hoodie.datasource.": "it belongs to Spark's data source; the write client would ignore it",
}
"""Prefixes, the longest match first."""
HUDI_OBEYED = frozenset(
    {"hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.partitionpath.urlencode"}
)
"""Exceptions to `HUDI_IGNORED`: obeyed when the table is created."""


def refused_kafka_properties(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(property, why) for every one that may not be in `source.kafka`, or whose reference is malformed."""
    for name, value in properties.items():
        if name in KAFKA_OWNED:
            yield name, f"set by Lockstep itself: {KAFKA_OWNED[name]}"
        for kind, target in _REFERENCE.findall(value):
            if kind not in ("env", "file"):
                yield name, 'holds a reference of an unknown kind: write "${env:NAME}" or "${file:/path}"'
            elif kind == "env" and not _ENVIRONMENT_NAME.fullmatch(target):
                yield name, 'does not name an environment variable: write "${env:NAME}"'
            elif kind == "file" and not Path(target).is_absolute():
                yield name, 'does not name a file by its absolute path: write "${file:/run/secrets/name}"'


def refused_hudi_properties(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(property, why) for every one that may not be in `table.hudi`."""
    for name in properties:
        if not name.startswith("hoodie."):
            yield name, "not a property of Hudi: they begin with hoodie."
        elif name in HUDI_OWNED:
            yield name, f"set by Lockstep itself: {HUDI_OWNED[name]}"
        elif name not in HUDI_OBEYED:
            prefix = max((p for p in HUDI_IGNORED if name.startswith(p)), key=len, default=None)
            if prefix is not None:
                yield name, f"refused: {HUDI_IGNORED[prefix]}"


def is_secret_name(name: str) -> bool:
    """Whether a property of this name holds something that must not be shown."""
    return _SECRET_NAME.search(name) is not None


def is_reference(value: str) -> bool:
    """Whether the value is one whole reference and nothing else."""
    return _REFERENCE.fullmatch(value) is not None


def redact(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties for showing: references stay as they are, literal secrets do not."""
    return {
        name: HIDDEN if is_secret_name(name) and not is_reference(value) else value
        for name, value in properties.items()
    }


def resolve_references(
    properties: Mapping[str, str], *, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Every `${env:NAME}` and `${file:PATH}` replaced. Raises `ConfigError` naming them, never a value."""
    known = os.environ if environment is None else environment
    problems: list[str] = []
    resolved: dict[str, str] = {}
    for name, value in properties.items():
        try:
            resolved[name] = _REFERENCE.sub(lambda match: _fetch(match[1], match[2], known), value)
        except ConfigError as error:
            problems.append(f"source.kafka.{name}: {error}")
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
    if len(content) > SECRET_FILE_BYTES_MAX:
        raise ConfigError(
            f"{target} is larger than {SECRET_FILE_BYTES_MAX} bytes: it does not look like a secret"
        )
    try:
        return content.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{target} is not UTF-8 text: write the secret as text") from None
