"""The configuration: valid, or refused in sentences that name the setting."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from lockstep.config.load import from_mapping, load
from lockstep.config.model import Config
from lockstep.config.problems import InvalidConfiguration
from lockstep.config.units import format_duration, format_size, parse_duration_ms, parse_size_bytes
from lockstep.errors import ConfigError
from tests.fuzz.target import Target, damaged, require

DOCUMENTS = 20
EXAMPLE = (Path(__file__).resolve().parents[2] / "examples" / "pipeline.toml").read_bytes()
SETTINGS = [
    f"{section}.{field.alias or name}"
    for section, model in Config.model_fields.items()
    for name, field in model.annotation.model_fields.items()  # type: ignore[union-attr]
]
VALUES: tuple[Any, ...] = (
    "",
    " ",
    "5s",
    "-5s",
    "1e9h",
    "99999999999999999999999999d",
    "12MB",
    "1.5 KiB",
    "\x00",
    "é☃",
    "${env:",
    "${file:/nowhere}",
    "a=b",
    "true",
    "events",
    "file:///tmp/x",
    "s3://bucket/x",
    "a STRING",
    "a STRING, a STRING",
    "a STRUCT<b: ARRAY<MAP<STRING, DECIMAL(99,2)>>>",
    "(" * 300,
    0,
    -1,
    2**63,
    10**400,
    1.5,
    float("nan"),
    True,
    [],
    ["a"],
    ["a", 1],
    [["a"]],
    {},
    {"security.protocol": "SSL"},
    {"a": {"b": {"c": 1}}},
)
SOUND = {
    "pipeline": {"id": "p"},
    "source": {"bootstrap_servers": "h:1", "topics": ["t"]},
    "record": {"schema": "a STRING"},
    "table": {"path": "file:///tmp/t", "name": "t"},
}


def _refused_well(error: ConfigError, given: object) -> None:
    text = str(error)
    require(bool(text.strip()), "refused without a word", given)
    require("Traceback" not in text and "pydantic" not in text, f"refused with {text!r}", given)
    if isinstance(error, InvalidConfiguration):
        for problem in error.problems:
            require(bool(problem.settings and problem.sentence), f"no setting is named: {text}", given)


def _check(config: Config, given: object) -> None:
    """A configuration that is taken can be handed on and says the same there."""
    require(Config.from_json(config.to_json()) == config, "it reads otherwise when it is handed on", given)
    config.redacted()


def _try(read: Any, given: object) -> None:
    try:
        _check(read(), given)
    except ConfigError as error:
        _refused_well(error, given)


def settings(random: Random) -> int:
    """Sound settings, some of them replaced; as a mapping, as text from --set and from the environment."""
    for _ in range(DOCUMENTS):
        mapping: dict[str, dict[str, Any]] = {section: dict(values) for section, values in SOUND.items()}
        texts: dict[str, str] = {}
        for _ in range(random.randint(1, 4)):
            setting = random.choice([*SETTINGS, "no.such", "table.hudi.hoodie.x", "source.kafka.group.id"])
            section, _, key = setting.partition(".")
            value = random.choice(VALUES)
            mapping.setdefault(section, {})[key] = value
            texts[setting] = value if isinstance(value, str) else json.dumps(value)
        _try(lambda given=mapping: from_mapping(given), mapping)
        flat = {
            f"{s}.{k}": v if isinstance(v, str) else json.dumps(v) for s in SOUND for k, v in SOUND[s].items()
        }
        sets = [f"{name}={value}" for name, value in {**flat, **texts}.items()]
        _try(lambda given=sets: load(None, environment={}, sets=given), sets)
        variables = {f"LOCKSTEP_{n.upper().replace('.', '__', 1)}": v for n, v in {**flat, **texts}.items()}
        _try(lambda given=variables: load(None, environment=given), variables)
    return 3 * DOCUMENTS


def files(random: Random, folder: Path = Path("/tmp")) -> int:
    """The example file, damaged."""
    path = folder / f"lockstep-fuzz-{random.getrandbits(64):016x}.toml"
    try:
        for _ in range(DOCUMENTS):
            raw = damaged(random, EXAMPLE)
            path.write_bytes(raw)
            _try(lambda: load(path, environment={}), raw)
    finally:
        path.unlink(missing_ok=True)
    return DOCUMENTS


def units(random: Random) -> int:
    """Durations and sizes: what is formatted is read back; what is nonsense is refused."""
    for _ in range(DOCUMENTS):
        number = random.choice((random.randrange(10**4), random.randrange(10**12), 2 ** random.randrange(50)))
        for parse, show in ((parse_duration_ms, format_duration), (parse_size_bytes, format_size)):
            require(parse(show(number)) == number, f"{show(number)} is not read back", number)
            text = "".join(random.choice("0123456789.-+e smhdKMGTiBb\u0661\u00bd_") for _ in range(6))
            try:
                require(parse(text) >= 0, "a negative quantity", text)
            except ValueError as error:
                require(bool(str(error)), "refused without a word", text)
    return 4 * DOCUMENTS


TARGETS = (
    Target("settings", "a configuration is valid or refused in sentences that name the setting", settings),
    Target("configuration files", "a damaged file is read or refused in a sentence", files),
    Target("durations and sizes", "what is formatted is read back, nonsense is refused", units),
)
