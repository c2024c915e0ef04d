"""Properties in a file of another sink: Java's, JSON of Kafka Connect's REST interface, or Strimzi's YAML."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import javaproperties
import yaml

from lockstep.errors import ConfigError

FILE_BYTES_MAX = 1_048_576
PROPERTIES_MAX = 5_000
SPARK_SWITCHES = frozenset({"--verbose", "-v", "--supervise"})
"""spark-submit's options that have no value."""


def read_given(path: Path) -> dict[str, str]:
    """The properties in a file: Java's, or JSON, flat or as `{"name": …, "config": {…}}`.

    Raises `ConfigError` where it cannot be read, or is neither.
    """
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; name their file with --from") from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than {FILE_BYTES_MAX:,} bytes: it is no connector's file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: save it as UTF-8") from error
    try:
        given = _read(text, path.suffix)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        said = str(error).partition("\n")[0] if not isinstance(error, RecursionError) else "nested too deeply"
        raise ConfigError(
            f"{path} holds neither properties, nor a connector in JSON, nor one of Strimzi's in YAML: {said}"
        ) from None
    if not given:
        raise ConfigError(f"{path} holds no property: name the file of a connector, or of HoodieStreamer")
    if len(given) > PROPERTIES_MAX:
        raise ConfigError(f"{path} holds {len(given):,} properties, at most {PROPERTIES_MAX:,} are read")
    return given


def _read(text: str, suffix: str) -> dict[str, str]:
    if text.lstrip().startswith(("{", "[")):
        return _json(text)
    if suffix in (".yaml", ".yml") or re.search(r"^apiVersion:", text, re.MULTILINE):
        return _strimzi(text)
    return javaproperties.loads(text)


def _strimzi(text: str) -> dict[str, str]:
    """Return the properties of Strimzi's resources: a KafkaConnector, or a KafkaConnect as the worker's.

    Source: Strimzi's API reference, KafkaConnectorSpec and KafkaConnectSpec.
    """
    documents = yaml.load_all(text, Loader=yaml.BaseLoader)  # each scalar as it is written, and no objects
    resources = [one for one in documents if isinstance(one, Mapping)]
    known = [one for one in resources if one.get("kind") in ("KafkaConnector", "KafkaConnect")]
    if len(known) != 1:
        raise ValueError(f"it holds {len(known)} resources of kind KafkaConnector or KafkaConnect: keep one")
    (resource,) = known
    spec = resource.get("spec")
    if not isinstance(spec, Mapping) or not isinstance(spec.get("config", {}), Mapping):
        raise ValueError("its spec, or spec.config, is no mapping")
    given = _flat(spec.get("config", {}))
    if resource["kind"] == "KafkaConnect":
        own = {"bootstrap.servers": spec.get("bootstrapServers")}
    else:
        metadata = resource.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        own = {"name": name, "connector.class": spec.get("class"), "tasks.max": spec.get("tasksMax")}
    return {**{key: str(value) for key, value in own.items() if value is not None}, **given}


def _json(text: str) -> dict[str, str]:
    """As `POST /connectors` takes it, as `PUT /connectors/…/config` does, and as `GET` gives it."""
    document = json.loads(text)
    if not isinstance(document, Mapping):
        raise ValueError("it is no object of properties")
    config = document.get("config")
    if not isinstance(config, Mapping):
        return _flat(document)
    given = _flat(config)
    if isinstance(document.get("name"), str):
        given.setdefault("name", document["name"])
    return given


def _flat(document: Mapping[str, Any]) -> dict[str, str]:
    given = {}
    for name, value in document.items():
        if isinstance(value, Mapping | list):
            raise ValueError(f"{name} holds no text and no number")
        given[name] = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return given


def read_options(words: Sequence[str]) -> dict[str, str]:
    """HoodieStreamer's command line, `--op INSERT`, as properties; `--hoodie-conf` as what it says.

    Of a whole `spark-submit …` what is Spark's own is left out: all up to the jar.
    Raises `ConfigError`.
    """
    given: dict[str, str] = {}
    for name, value in _options(_behind_spark(words)):
        if name != "--hoodie-conf":
            given[name] = value
            continue
        key, separator, inner = value.partition("=")
        if not separator:
            raise ConfigError(f"--hoodie-conf {key} has no '=': write --hoodie-conf name=value")
        given[key.strip()] = inner.strip()
    return given


def _behind_spark(words: Sequence[str]) -> Sequence[str]:
    """HoodieStreamer's options begin behind the jar that spark-submit is given."""
    if len(words) == 1 and " " in words[0]:
        words = shlex.split(words[0])
    if not words or not words[0].endswith("spark-submit"):
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 1 if words[at] in SPARK_SWITCHES or "=" in words[at] else 2
    return words[at + 1 :]


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, value); one without a value is a switch that is on."""
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-"):
            raise ConfigError(
                f"{word} is no option of HoodieStreamer: write those behind --, such as -- --op INSERT"
            )
        name, separator, value = word.partition("=")
        if separator:
            yield name, value
        elif at + 1 < len(words) and not words[at + 1].startswith("-"):
            at += 1
            yield word, words[at]
        else:
            yield word, "true"
        at += 1
