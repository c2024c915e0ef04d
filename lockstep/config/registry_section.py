"""The section of the configuration that says how a schema registry is reached, and what goes with what."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from lockstep.config import values
from lockstep.config.problems import Problem
from lockstep.config.properties import resolve_references
from lockstep.config.record_section import RecordSection
from lockstep.config.schema_values import TOPIC_IN_SUBJECT, Subjects
from lockstep.config.sections import Section
from lockstep.errors import ConfigError
from participant.records.kinds import FORMATS

if TYPE_CHECKING:
    from participant.records.registry.settings import RegistrySettings

SCHEMA_FILE_BYTES_MAX = 1_048_576
SECRETS = ("password", "token", "key_password")
CONFLUENT = "confluent"
PROTOBUF = "protobuf"


class RegistrySection(Section):
    """The schema registry, for `record.framing = "confluent"`: [formats.md](formats.md)."""

    url: values.RegistryUrls = Field(
        default="",
        description=(
            "Its `http://` or `https://` address, several of one registry separated by commas. Empty: none."
        ),
        examples=["https://registry.example.org"],
    )
    user: str = Field(default="", description="Whom it knows us as, with `password`. Empty: nobody.")
    password: values.SecretReference = Field(
        default="",
        repr=False,
        description='The user\'s, as a reference to a secret, `"${env:NAME}"` or `"${file:/path}"`.',
        examples=["${env:REGISTRY_PASSWORD}"],
    )
    token: values.SecretReference = Field(
        default="",
        repr=False,
        description="Instead of a user: a bearer's token, as a reference to a secret.",
        examples=["${file:/run/secrets/registry-token}"],
    )
    cluster: str = Field(
        default="", description="With `token`: which logical cluster is meant, as Confluent Cloud wants it."
    )
    ca_file: values.HostFile = Field(
        default="",
        description=(
            "Whose signature its certificate must have: a file of PEM at this path on every worker's host. "
            "Empty: of those that Python's `certifi` knows."
        ),
        examples=["/etc/ssl/registry-ca.pem"],
    )
    certificate_file: values.HostFile = Field(
        default="",
        description="A certificate of our own (mTLS), a file of PEM at this path on every worker's host.",
        examples=["/etc/ssl/lockstep.pem"],
    )
    key_file: values.HostFile = Field(
        default="",
        description="Its private key, likewise. Empty: it is in `certificate_file`.",
        examples=["/etc/ssl/lockstep-key.pem"],
    )
    key_password: values.SecretReference = Field(
        default="",
        repr=False,
        description="What opens the private key, as a reference to a secret.",
        examples=["${env:REGISTRY_KEY_PASSWORD}"],
    )
    value_subjects: Subjects = Field(
        default=(f"{TOPIC_IN_SUBJECT}-value",),
        description=(
            "Under which subjects the newest schemas of values are, for `lockstep validate`, `lockstep "
            "infer` and a run that begins without columns; `{topic}` stands for each source topic. As "
            "Confluent's serializers name them unless told otherwise (TopicNameStrategy); "
            '`["shop.v1.Order"]` for RecordNameStrategy, `["{topic}-shop.v1.Order"]` for '
            "TopicRecordNameStrategy, one for each type of record. Records name their schemas by id, "
            "whatever the subjects."
        ),
        examples=[["shop.v1.Order", "shop.v1.Refund"]],
    )
    key_subjects: Subjects = Field(
        default=(f"{TOPIC_IN_SUBJECT}-key",),
        description="Likewise, of keys.",
        examples=[["shop.v1.OrderKey"]],
    )
    timeout_ms: values.HookTimeoutMs = Field(
        default="10s",
        validate_default=True,
        alias="timeout",
        description="How long it may take to answer; it is asked twice. From 1s to 5m.",
    )
    cache_folder: values.HostFile = Field(
        default="",
        description=(
            "Where schemas are kept on a worker's host, so that a registry that is away stops only records "
            "by schemas never seen: an absolute path. Empty: `schemas` in `$LOCKSTEP_CACHE`, or in "
            "`~/.cache/lockstep`."
        ),
        examples=["/var/lib/lockstep/schemas"],
    )


def subjects_of(named: Iterable[str], topics: Iterable[str]) -> tuple[str, ...]:
    """With the names of the source topics in them, each once."""
    topics = tuple(topics)
    return tuple(dict.fromkeys(one.replace(TOPIC_IN_SUBJECT, topic) for topic in topics for one in named))


def asks_a_registry(record: RecordSection) -> bool:
    """Whether records, or their keys, name schemas of one."""
    named = FORMATS[record.format].framings | FORMATS[record.key_format].framings
    return bool(named) and record.framing == CONFLUENT


def check_registry(record: RecordSection, registry: RegistrySection) -> Iterator[Problem]:
    """What in `[registry]`, and of a record's schema, does not go together."""
    yield from _check_framing(record)
    yield from _check_files(record)
    if asks_a_registry(record) and not registry.url:
        sentence = (
            'missing; record.framing = "confluent" needs it: write url = "https://registry.example.org" '
            "below [registry], or say another framing"
        )
        yield Problem(settings=("registry.url", "record.framing"), sentence=sentence)
    if not asks_a_registry(record) and registry != RegistrySection():
        sentence = (
            'means nothing without avro, protobuf or json_schema of record.framing = "confluent": take it out'
        )
        yield Problem(settings=("registry", "record.framing"), sentence=sentence)
        return
    for name, other in (
        ("user", "password"),
        ("password", "user"),
        ("cluster", "token"),
        ("key_file", "certificate_file"),
        ("key_password", "certificate_file"),
    ):
        if getattr(registry, name) and not getattr(registry, other):
            sentence = f"missing; registry.{name} needs it"
            yield Problem(settings=(f"registry.{other}", f"registry.{name}"), sentence=sentence)
    if registry.user and registry.token:
        sentence = "given beside registry.user: a registry knows us by one of them"
        yield Problem(settings=("registry.token", "registry.user"), sentence=sentence)


def _check_framing(record: RecordSection) -> Iterator[Problem]:
    for of, given in (("format", record.format), ("key_format", record.key_format)):
        offered = FORMATS[given].framings
        if offered and record.framing not in offered:
            sentence = f"{record.framing} is none of {given}'s: it has {', '.join(sorted(offered))}"
            yield Problem(settings=("record.framing", f"record.{of}"), sentence=sentence)


def _check_files(record: RecordSection) -> Iterator[Problem]:
    for name, given, of, value in (
        ("schema_file", record.format, "format", record.schema_file),
        ("key_schema_file", record.key_format, "key_format", record.key_schema_file),
        ("message", record.format, "format", record.message),
        ("key_message", record.key_format, "key_format", record.key_message),
    ):
        what = "the name of the message" if "message" in name else "a file with the schema"
        framed = record.framing != CONFLUENT and record.framing in FORMATS[given].framings
        wanted = framed and (given == PROTOBUF or "message" not in name)
        if wanted and not value:
            sentence = f'missing; record.framing = "{record.framing}" needs {what} of {given}'
            yield Problem(settings=(f"record.{name}", "record.framing"), sentence=sentence)
        if value and not wanted:
            how = f'record.{of} = "{given}" with record.framing = "{record.framing}"'
            sentence = f"means nothing to {how}: take it out"
            yield Problem(settings=(f"record.{name}", f"record.{of}", "record.framing"), sentence=sentence)


def registry_settings(
    record: RecordSection, given: RegistrySection, *, environment: Mapping[str, str] | None = None
) -> RegistrySettings | None:
    """None where none is asked. Raises `ConfigError` naming the variable or file that cannot be had."""
    if not asks_a_registry(record):
        return None
    from participant.records.registry.settings import RegistrySettings

    asked = {name: getattr(given, name) for name in SECRETS if getattr(given, name)}
    found = resolve_references(asked, section="registry", environment=environment)
    secrets = {name: value.strip("\r\n") for name, value in found.items()}
    return RegistrySettings(
        url=given.url,
        user=given.user,
        cluster=given.cluster,
        ca_file=given.ca_file,
        certificate_file=given.certificate_file,
        key_file=given.key_file,
        timeout_ms=given.timeout_ms,
        cache_folder=given.cache_folder,
        password=secrets.get("password", ""),
        token=secrets.get("token", ""),
        key_password=secrets.get("key_password", ""),
    )


def schema_text(setting: str, path: str, of: str) -> str:
    """What the file holds, of Protobuf in base64; empty where none is given. Raises `ConfigError`."""
    if not path:
        return ""
    try:
        with Path(path).open("rb") as file:
            content = file.read(SCHEMA_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{setting} {path} cannot be read: {error.strerror}") from error
    if len(content) > SCHEMA_FILE_BYTES_MAX:
        raise ConfigError(f"{setting} {path} is larger than {SCHEMA_FILE_BYTES_MAX:,} bytes: it is no schema")
    if of == PROTOBUF:
        return base64.b64encode(content).decode("ascii")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{setting} {path} is not UTF-8 text") from error
