"""The configuration: valid, or refused in sentences that name the setting."""

from __future__ import annotations

import contextlib
import json
import logging
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from lockstep.config.load import from_json, load
from lockstep.config.model import SECTIONS, Config
from lockstep.config.problems import InvalidConfiguration
from lockstep.config.units import format_duration, format_size, parse_duration_ms, parse_size_bytes
from lockstep.errors import ConfigError
from participant.records.json.decoder import JsonDecoder
from table.hudi.avro import to_avro
from table.schema import SchemaError, parse_ddl
from tests.fuzz import documents
from tests.fuzz.target import Target, damaged, require

EXAMPLE = (Path(__file__).resolve().parents[2] / "examples" / "pipeline.toml").read_text(encoding="utf-8")
SECRET = "hunter2Quokka"
PASSWORD = "source.kafka.sasl.password"
SETTINGS = [
    f"{s}.{field.alias or name}"
    for s, model in SECTIONS.items()
    for name, field in model.model_fields.items()
]
ODD_SETTINGS = (
    "no.such",
    "source",
    "memory.",
    ".",
    "",
    "source.kafka.group.id",
    "source.kafka.sasl.password",
)
ODD_SETTINGS += (
    "table.hudi.hoodie.x",
    "hoodie.kafka.control.topic",
    "transaction.intervall",
    "a" * 300,
    "é.\u2603",
    "table.hudi.",
)
SOUND = {
    "pipeline.id": '"p"',
    "source.bootstrap_servers": '"h:1"',
    "source.topics": '["t"]',
    "record.schema": '"a STRING"',
    "table.path": '"file:///tmp/t"',
    "table.name": '"t"',
}
TOML_VALUES = (
    '""',
    '" "',
    '"5s"',
    '"-5s"',
    '"1e9h"',
    '"99999999999999999999999999d"',
    '"12MB"',
    '"1.5 KiB"',
    r'"\u0000"',
    '"é☃"',
    '"${env:"',
    '"${file:/no\\u0000where}"',
    '"${file:relative}"',
    '"${env:1}"',
    '"a=b"',
    '"true"',
    '"file:///tmp/x"',
    '"file:///a/../b"',
    '"s3://b/x"',
    "0",
    "-1",
    "9223372036854775808",
    "0x" + "f" * 5_000,
    "1" * 5_000,
    "1e999",
    "1.5",
    "nan",
    "-inf",
    "true",
    "[]",
    '["a"]',
    '["a", 1]',
    '[["a"]]',
    '["a", "a"]',
    "{}",
    '{"security.protocol" = "SSL"}',
    "{a = {b = {c = 1}}}",
    "2026-01-01",
    "12:00:00",
    "[1979-05-27T07:32:00Z]",
    "[" * 400 + "]" * 400,
    "[" * 90 + "]" * 90,
    '"' + "x" * 70_000 + '"',
    "[" + ", ".join('"t"' for _ in range(3_000)) + "]",
    "'''\n'''",
)
DDL_WORDS = (
    "a",
    "b",
    "A",
    "id",
    "`a b`",
    "_kafka_x",
    "STRING",
    "INT",
    "DECIMAL",
    "DECIMAL(9,2)",
    "DECIMAL(x,y)",
    "DECIMAL(39,1)",
    "DECIMAL(1,2,3)",
    "DECIMAL(999999999999)",
    "ARRAY<",
    "STRUCT<",
    "MAP<STRING,",
    "MAP<INT,",
    ">",
    ">>",
    ",",
    ":",
    "(",
    ")",
    "NOT NULL",
    "COMMENT 'x'",
    "DEFAULT 1",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "INTERVAL",
    "é",
    "'",
    '"',
    "`",
    ";",
    "--",
    "/*",
    "\n",
    "PRIMARY KEY (a)",
    "GENERATED ALWAYS AS (1)",
    "SELECT",
    "1",
    "\x00",
)
PYTHONS_WORDS = (
    "Traceback",
    "pydantic",
    "Input should",
    "object has no",
    "invalid literal",
    "Exceeds the limit",
    "NoneType",
    "expected str",
)


def _ddl(random: Random) -> str:
    match random.randrange(4):
        case 0:
            return documents.ddl(random)
        case 1:
            return damaged(random, documents.ddl(random).encode()).decode("utf-8", "replace")
        case 2:
            depth = random.choice((3, 60, 300))
            return "a " + "ARRAY<" * depth + "INT" + ">" * random.choice((depth, depth - 1))
        case _:
            return " ".join(random.choice(DDL_WORDS) for _ in range(random.randint(1, 12)))


def _value(random: Random, setting: str) -> str:
    """A value as TOML spells it."""
    if setting == "record.schema" and random.random() < 0.8:
        return json.dumps(_ddl(random))
    if setting == PASSWORD and random.random() < 0.8:
        return f'"{SECRET}"'
    return random.choice(TOML_VALUES)


def make_layers(random: Random, size: int) -> list[dict[str, Any]]:
    """So many configurations: a file, an environment, `--conf` and `--set`."""
    return [_layers(random) for _ in range(size)]


def _layers(random: Random) -> dict[str, Any]:
    settings = dict(SOUND)
    layers: dict[str, Any] = {"file": None, "environment": {}, "conf": {}, "sets": []}
    for _ in range(random.randint(1, 3)):
        setting = random.choice((*SETTINGS, *ODD_SETTINGS))
        value = _value(random, setting)
        text = value.strip('"')
        section, _, key = setting.partition(".")
        match random.randrange(4):
            case 0:
                settings[setting] = value
            case 1:
                spelled = "__".join((section, *(part.replace(".", "_") for part in key.split("__"))))
                layers["environment"][f"LOCKSTEP_{spelled.upper()}"] = text.replace("\0", "")
            case 2:
                layers["conf"][f"spark.lockstep.{setting}"] = text
            case _:
                layers["sets"].append(random.choice((f"{setting}={text}", setting, f"{setting}={value}")))
    layers["file"] = _file(random, settings)
    return layers


def _file(random: Random, settings: dict[str, str]) -> bytes:
    lines: list[str] = []
    for section in sorted({name.partition(".")[0] for name in settings}):
        lines.append(f"[{_key(section)}]")
        members = (name for name in settings if name.partition(".")[0] == section)
        lines += [f"{_key(name.partition('.')[2])} = {settings[name]}" for name in members]
    raw = "\n".join(lines).encode()
    match random.randrange(8):
        case 0:
            return damaged(
                random, raw.replace(SECRET.encode(), b"x")
            )  # damage may move it to another setting
        case 1:
            return damaged(random, EXAMPLE.encode())
        case 2:
            return random.choice(
                (b"", b"\xff", b"\xef\xbb\xbf" + raw, raw + b"\n[a" + b".a" * 2_000 + b"]", raw + b"\0")
            )
        case _:
            return raw


def _key(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else json.dumps(name, ensure_ascii=False)


def check_layers(case: list[dict[str, Any]]) -> int:
    """Each is a configuration that says the same when it is handed on, or it is refused in sentences."""
    with tempfile.TemporaryDirectory(prefix="lockstep-fuzz-") as folder, _quiet():
        path = Path(folder) / "pipeline.toml"
        for layers in case:
            path.write_bytes(layers["file"])
            try:
                config = load(
                    path, environment=layers["environment"], conf=layers["conf"], sets=layers["sets"]
                )
            except ConfigError as error:
                _check_refusal(error, layers)
            else:
                _check_config(config, layers)
    return len(case)


@contextlib.contextmanager
def _quiet() -> Any:
    """Notes about synonyms, and of the DDL parser, are not what is looked at."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _check_refusal(error: ConfigError, given: object) -> None:
    text = str(error)
    require(bool(text.strip()), "refused without a word", given)
    require(SECRET not in text, "a secret is repeated", given)
    for word in PYTHONS_WORDS:
        require(word not in text, f"refused in a programmer's words: {text[:500]!r}", given)
    if isinstance(error, InvalidConfiguration):
        for problem in error.problems:
            named = problem.settings and problem.settings[0].partition(".")[0]
            require(bool(problem.sentence) and named is not None, f"no setting is named: {text}", given)
    else:
        require(
            "pipeline.toml" in text or "--set" in text, f"neither file nor option is named: {text}", given
        )


def _check_config(config: Config, given: object) -> None:
    require(from_json(config.to_json()) == config, "it reads otherwise when it is handed on", given)
    require(
        SECRET not in str(config.redacted()["source"]["kafka"].get("sasl.password")),
        "a secret is shown",
        given,
    )
    if not config.record.ddl:
        return  # a registry says which columns there are
    schema = parse_ddl(config.record.ddl)
    to_avro(schema, config.table.name)
    with contextlib.suppress(SchemaError):
        JsonDecoder(schema)


def make_jsons(random: Random, size: int) -> list[str]:
    """So many texts that should be a configuration handed from one process to another."""
    config = json.dumps(
        {"pipeline": {"id": "p"}, "memory": 5, "source": {"topics": ["t"], "kafka": {"a": None}}, "x": [1]}
    )
    odd = (
        "[]",
        "3",
        '"a"',
        "nul",
        "{}",
        '{"pipeline": []}',
        '{"memory": 5}',
        "[" * 10_000,
        "1" * 5_000,
        '{"a": NaN}',
    )
    return [
        random.choice((damaged(random, config.encode()).decode("utf-8", "replace"), random.choice(odd)))
        for _ in range(size)
    ]


def check_jsons(case: list[str]) -> int:
    for text in case:
        try:
            from_json(text)
        except ConfigError as error:
            require(bool(str(error)), "refused without a word", text)
        else:
            require(False, "half a configuration is taken", text)
    return len(case)


def make_units(random: Random, size: int) -> list[tuple[int, str]]:
    """(a number to format, a text to parse)."""
    alphabet = "0123456789.-+e smhdKMGTiBb\u0661\u00bd_"
    return [
        (
            random.choice((random.randrange(10**4), random.randrange(10**15), 2 ** random.randrange(50))),
            "".join(random.choice(alphabet) for _ in range(random.randint(0, 7))),
        )
        for _ in range(size)
    ]


def check_units(case: list[tuple[int, str]]) -> int:
    """Durations and sizes: what is formatted is read back; what is nonsense is refused in a sentence."""
    for number, text in case:
        for parse, show in ((parse_duration_ms, format_duration), (parse_size_bytes, format_size)):
            require(parse(show(number)) == number, f"{show(number)} is not read back", number)
            try:
                quantity = parse(text)
            except ValueError as error:
                require("write" in str(error) or "unit" in str(error), f"refused with {error}", text)
            else:
                require(
                    type(quantity) is int and parse(show(quantity)) == quantity >= 0, "an odd quantity", text
                )
    return len(case)


TARGETS = (
    Target(
        name="configuration",
        promise="a configuration is valid, or refused in sentences that name the setting",
        make=make_layers,
        check=check_layers,
        size=100,
        seeds=20,
    ),
    Target(
        name="configuration handed on",
        promise="what one process hands to another is a whole configuration or refused",
        make=make_jsons,
        check=check_jsons,
        size=200,
        seeds=20,
    ),
    Target(
        name="durations and sizes",
        promise="what is formatted is read back, nonsense is refused",
        make=make_units,
        check=check_units,
        size=500,
        seeds=40,
    ),
)
