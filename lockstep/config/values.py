"""The kinds of values in the configuration: each checks itself and refuses with a sentence.

A sentence never repeats a value of `source.kafka`, since that may be a secret.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from control_topic.bounds import TOPIC_CHARS_MAX
from lockstep.config.problems import nearest, shown
from lockstep.config.properties import is_reference, refused_references
from lockstep.config.units import format_duration, format_size, parse_duration_ms, parse_size_bytes
from participant.records.kinds import ENVELOPES, FORMATS, FRAMINGS
from table.errors import Refused
from table.kinds import OFFERED
from table.store.location import FILE, SPELLINGS, TABLES, Location

TOPIC_LENGTH_MAX = TOPIC_CHARS_MAX
"""Kafka's own limit (org.apache.kafka.common.internals.Topic)."""
REJECTS_MAX = 10**15

PIPELINE_ID_LENGTH_MAX = 200
"""Leaves room for what is derived from it: the control topic's name, `group.instance.id`, file names."""

HIVE_NAME = re.compile(r"[A-Za-z0-9_]{1,128}")
"""Of a database or a table."""

PROPERTIES_MAX = 500
PROPERTY_LENGTH_MAX = 65_536


def _duration(*, at_least: str, at_most: str) -> Callable[[object], int]:
    return _bounded(parse_duration_ms, at_least=at_least, at_most=at_most)


def _size(*, at_least: str, at_most: str) -> Callable[[object], int]:
    return _bounded(parse_size_bytes, at_least=at_least, at_most=at_most)


def _bounded(parse: Callable[[object], int], *, at_least: str, at_most: str) -> Callable[[object], int]:
    low, high = parse(at_least), parse(at_most)

    def validate(value: object) -> int:
        quantity = parse(value)
        if not low <= quantity <= high:
            raise ValueError(f"{value} is out of bounds: at least {at_least}, at most {at_most}")
        return quantity

    return validate


def _registered(names: Collection[str]) -> Callable[[str], str]:
    """One of the names in a registry."""

    def validate(value: str) -> str:
        if value not in names:
            raise ValueError(f"{shown(value)} is not one of {', '.join(names)}{nearest(value, names)}")
        return value

    return validate


def _size_or_none(value: object) -> int:
    """0 means no limit and needs no unit."""
    if value in (0, "0") and not isinstance(value, bool):
        return 0
    return 0 if parse_size_bytes(value) == 0 else _LIMIT(value)


def _rejects_max(value: object) -> str:
    """`5%`, `1000`, or empty: no limit."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < REJECTS_MAX:
        return str(value)
    text = value.strip() if isinstance(value, str) else "?"
    share = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)\s*%", text)
    if share is not None and float(share[1]) <= 100:
        return f"{share[1]}%"
    if text and not (re.fullmatch(r"\d{1,15}", text) and int(text) < REJECTS_MAX):
        raise ValueError(
            f'{shown(value)} is neither a share of the records nor a number of them: write "5%", 1000, or "" '
            "for no limit"
        )
    return text


def _items(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def check_names(value: tuple[str, ...]) -> tuple[str, ...]:
    repeated = sorted(name for name, times in Counter(value).items() if times > 1)
    if repeated:
        raise ValueError(f"{', '.join(repeated)} is listed more than once")
    if "" in value:
        raise ValueError("an empty name is listed")
    return value


def check_topic(name: str) -> str:
    """A legal name of a Kafka topic. Raises `ValueError` with a sentence."""
    if not 1 <= len(name) <= TOPIC_LENGTH_MAX:
        raise ValueError(f"a topic's name has 1 to {TOPIC_LENGTH_MAX} characters, this one has {len(name)}")
    if name in (".", "..") or not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise ValueError(f"{name!r} is not a topic's name: letters, digits, '.', '_' and '-' are legal")
    return name


def _topics(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError('no topic is listed: write at least one, topics = ["events"]')
    return tuple(check_topic(name) for name in check_names(value))


def _topic_or_empty(value: str) -> str:
    return check_topic(value) if value else value


def _metrics_file(value: str) -> str:
    """What node_exporter's textfile collector takes."""
    if value and not (value.startswith("/") and value.endswith(".prom") and "\0" not in value):
        raise ValueError(
            f"{shown(value)} is not an absolute path that ends with .prom, which node_exporter's textfile "
            'collector asks for: write one such as "/var/lib/node_exporter/lockstep.prom"'
        )
    if value and "lockstep" not in value.rpartition("/")[2]:
        raise ValueError(
            f'{shown(value)} has no "lockstep" in its name, which the alert LockstepFileOld goes by: write '
            'one such as "/var/lib/node_exporter/lockstep-events.prom"'
        )
    return value


def _pipeline_id(value: str) -> str:
    if not re.fullmatch(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{PIPELINE_ID_LENGTH_MAX - 1}}}", value):
        raise ValueError(
            f"{value!r} is not an id: 1 to {PIPELINE_ID_LENGTH_MAX} letters, digits, '.', '_' and '-', "
            "beginning with a letter or a digit"
        )
    return value


def _table_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,127}", value):
        raise ValueError(
            f"{value!r} is not a table's name: 1 to 128 letters, digits, '_' and '-', "
            "beginning with a letter or '_'"
        )
    return value


def _table_path(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    if not separator:
        raise ValueError(f'{value!r} has no scheme: write the whole URI, "file:///data/lake/events"')
    if SPELLINGS.get(scheme.lower()) in TABLES - {FILE}:
        try:
            return str(Location.parse(value))
        except Refused as error:
            why = str(error).removeprefix(f"table.path {value}: ").removeprefix("table.path: ")
            raise ValueError(why) from None
    if scheme not in TABLES:
        not_yet = " yet" if scheme.lower() in SPELLINGS else ""
        raise ValueError(
            f"{scheme}:// is not supported{not_yet}: the table must be on a file system that every worker "
            'sees under the same path, written "file:///data/lake/events", on HDFS, '
            '"hdfs://cluster/lake/events", or in an object store, "s3a://bucket/events", '
            '"gs://bucket/events" or "abfss://container@account.dfs.core.windows.net/events"'
        )
    path = rest.rstrip("/")
    if not path.startswith("/"):
        raise ValueError(
            f"{value!r} is not an absolute path: write file:// and then a path that begins with /"
        )
    if any(part in ("", ".", "..") for part in path.split("/")[1:]):
        raise ValueError(f"{value!r} holds an empty, '.' or '..' segment: write the path without them")
    if re.search(r"[\x00-\x1f\x7f*?{}\[\]%#]", path):
        raise ValueError(
            f"{value!r} holds a character that Hadoop or Spark would interpret: one of * ? {{ }} [ ] % #"
        )
    return f"{scheme}://{path}"


def _config_folder(value: str) -> str:
    if value and (not value.startswith("/") or ".." in value.split("/")):
        raise ValueError(f"{value!r} is not an absolute path: write the whole path of the folder")
    return value.rstrip("/")


def _endpoint(value: str) -> str:
    """What it holds is not repeated: somebody may have written a secret into it."""
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None):
        raise ValueError('not an address of a server, such as "https://s3.example.org": no path, no user')
    if value and (parts.path.strip("/") or parts.query or parts.fragment):
        raise ValueError(
            'not an address of a server alone, such as "https://s3.example.org": no path, no user'
        )
    return value.rstrip("/")


def _bind(value: str) -> str:
    if value == "localhost":
        return value
    try:
        return str(ip_address(value))
    except ValueError:
        raise ValueError(
            f'{shown(value)} is no address to listen on: write "127.0.0.1", "localhost", "0.0.0.0" or "::"'
        ) from None


def web_address_problem(value: str) -> str:
    """Why it is no address to POST to, or an empty string. Not repeated: its path may be a secret."""
    try:
        parts = urlsplit(value)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        known = False
    if not known or not value.isascii() or not value.isprintable() or " " in value:
        return 'not an address, such as "https://jobs.example.org/commits"'
    if parts.username is not None or parts.fragment:
        return "an address without user, password and fragment is wanted: who we are is said in a header"
    return ""


def _hook_address(value: str) -> str:
    if value and not is_reference(value) and (problem := web_address_problem(value)):
        raise ValueError(problem)
    for _, why in refused_references({"": value}):
        raise ValueError(why)
    return value


def _registry_urls(value: str) -> str:
    urls = [one.strip().rstrip("/") for one in value.split(",")] if value else []
    for url in urls:
        if web_address_problem(url) or urlsplit(url).query:
            raise ValueError(
                'not the address of a schema registry, such as "https://registry.example.org": without user, '
                "password and query; who we are is said by registry.user or registry.token"
            )
    return ",".join(check_names(tuple(urls)))


def _host_file(value: str) -> str:
    if value and (not value.startswith("/") or ".." in value.split("/") or not value.isprintable()):
        raise ValueError(f"{shown(value)} is not an absolute path: write the whole path")
    return value


def _lineage_address(value: str) -> str:
    if value.startswith("file://"):
        path = value.removeprefix("file://")
        if (
            not path.startswith("/")
            or path.endswith("/")
            or ".." in path.split("/")
            or not path.isprintable()
        ):
            raise ValueError('not a file by its absolute path, such as "file:///var/log/lineage.json"')
        return value
    return _hook_address(value)


def _metastore_uris(value: str) -> str:
    uris = [uri.strip() for uri in value.split(",")] if value else []
    for uri in uris:
        match = re.fullmatch(r"thrift://(?:\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):(\d{1,5})", uri)
        if match is None or not 1 <= int(match[1]) <= 65_535:
            raise ValueError(f'{shown(uri)} is not the address of a metastore: write "thrift://host:9083"')
    return ",".join(uris)


def _hive_name(value: str) -> str:
    if not HIVE_NAME.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a name in Hive: 1 to 128 letters, digits and '_'")
    return value


def _hive_name_or_empty(value: str) -> str:
    return _hive_name(value) if value else value


def _secret_reference(value: str) -> str:
    """What it holds is not repeated."""
    if value and not is_reference(value):
        raise ValueError('not a reference to a secret: write "${env:NAME}" or "${file:/path}"')
    for _, why in refused_references({"": value}):
        raise ValueError(why)
    return value


def _table_kind(value: str) -> str:
    if value not in ("insert", "upsert"):
        raise ValueError(
            f'{value!r} is not supported: kind = "insert" writes every record as a new row, '
            'kind = "upsert" changes the row with its key'
        )
    return value


def _bootstrap_servers(value: str) -> str:
    servers = [server.strip() for server in value.split(",")]
    for server in servers:
        match = re.fullmatch(r"(?:[A-Za-z_]+://)?(?:\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):(\d{1,5})", server)
        if match is None or not 1 <= int(match[1]) <= 65_535:
            raise ValueError(f'{server!r} is not host:port: write "host1:9092,host2:9092"')
    return ",".join(servers)


def _ddl(value: str) -> str:
    if value and not value.strip():
        raise ValueError('empty; write the columns in Spark DDL, "event_id STRING, amount DOUBLE"')
    return value


def _properties(value: object) -> object:
    """Scalars become text as librdkafka and Hudi spell it; nothing nested."""
    if not isinstance(value, Mapping):
        raise ValueError('not a table of properties: write { "name" = "value" }')
    if len(value) > PROPERTIES_MAX:
        raise ValueError(f"{len(value)} properties, at most {PROPERTIES_MAX} are allowed")
    return {str(name): _property(str(name), given) for name, given in value.items()}


def _property(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:
        raise ValueError(f"{name} is a number of more than 64 bits")
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, a number, true or false")
    if len(value) > PROPERTY_LENGTH_MAX:
        raise ValueError(f"{name} is longer than {PROPERTY_LENGTH_MAX} characters")
    return value


_LIMIT = _size(at_least="1kB", at_most="1TB")

IntervalMs = Annotated[
    int, BeforeValidator(_duration(at_least="100ms", at_most="24h")), PlainSerializer(format_duration)
]
TimeoutMs = Annotated[
    int, BeforeValidator(_duration(at_least="1s", at_most="24h")), PlainSerializer(format_duration)
]
SpanMs = Annotated[
    int, BeforeValidator(_duration(at_least="0s", at_most="8760h")), PlainSerializer(format_duration)
]
FilePeriodMs = Annotated[
    int, BeforeValidator(_duration(at_least="1s", at_most="1h")), PlainSerializer(format_duration)
]
MetricsFile = Annotated[str, AfterValidator(_metrics_file)]
HookTimeoutMs = Annotated[
    int, BeforeValidator(_duration(at_least="1s", at_most="5m")), PlainSerializer(format_duration)
]
SizeBytes = Annotated[
    int, BeforeValidator(_size(at_least="1MB", at_most="1TB")), PlainSerializer(format_size)
]
RejectsMax = Annotated[str, BeforeValidator(_rejects_max)]
LimitBytes = Annotated[int, BeforeValidator(_size_or_none), PlainSerializer(format_size)]
PipelineId = Annotated[str, AfterValidator(_pipeline_id)]
BootstrapServers = Annotated[str, AfterValidator(_bootstrap_servers)]
Topic = Annotated[str, AfterValidator(check_topic)]
TopicOrEmpty = Annotated[str, AfterValidator(_topic_or_empty)]
Topics = Annotated[tuple[str, ...], BeforeValidator(_items), AfterValidator(_topics)]
Names = Annotated[tuple[str, ...], BeforeValidator(_items), AfterValidator(check_names)]
Ddl = Annotated[str, AfterValidator(_ddl)]
TablePath = Annotated[str, AfterValidator(_table_path)]
ConfigFolder = Annotated[str, AfterValidator(_config_folder)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
Bind = Annotated[str, AfterValidator(_bind)]
SecretReference = Annotated[str, AfterValidator(_secret_reference)]
HookAddress = Annotated[str, AfterValidator(_hook_address)]
LineageAddress = Annotated[str, AfterValidator(_lineage_address)]
MetastoreUris = Annotated[str, AfterValidator(_metastore_uris)]
HiveName = Annotated[str, AfterValidator(_hive_name)]
HiveNameOrEmpty = Annotated[str, AfterValidator(_hive_name_or_empty)]
PartBytes = Annotated[
    int, BeforeValidator(_size(at_least="5MiB", at_most="1GiB")), PlainSerializer(format_size)
]
TableName = Annotated[str, AfterValidator(_table_name)]
TableKind = Annotated[str, AfterValidator(_table_kind)]
Format = Annotated[str, AfterValidator(_registered(FORMATS))]
Framing = Annotated[str, AfterValidator(_registered(tuple(FRAMINGS)))]
HostFile = Annotated[str, AfterValidator(_host_file)]
RegistryUrls = Annotated[str, AfterValidator(_registry_urls)]
Envelope = Annotated[str, AfterValidator(_registered(ENVELOPES))]
TableFormat = Annotated[str, AfterValidator(_registered(OFFERED))]
Properties = Annotated[dict[str, str], BeforeValidator(_properties)]
