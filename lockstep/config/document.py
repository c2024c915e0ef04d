"""Writes docs/configuration.md from the definitions: `python -m lockstep.config.document [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from lockstep.config.model import SECTIONS
from lockstep.config.properties import KAFKA_OWNED
from lockstep.config.sections import Section
from lockstep.config.sources import SYNONYMS
from lockstep.config.units import DURATION_UNITS_MS, SIZE_UNITS_BYTES
from table.hudi import properties as hudi

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"

_INTRODUCTION = """\
# Configuration

<!-- Generated from lockstep/config by `python -m lockstep.config.document`. Change it there. -->

A pipeline is one TOML file, given with `-c`. Four layers are put one over the other, the strongest last:

| layer | spelled | may hold a literal secret |
|---|---|---|
| the file | `[transaction]` and below it `interval = "5s"` | yes |
| the environment | `LOCKSTEP_TRANSACTION__INTERVAL=5s`, two underscores between section and name | yes |
| Spark's configuration | `--conf spark.lockstep.transaction.interval=5s` | no |
| the command line | `--set transaction.interval=5s` | no |

Of a list (`source.topics`, `table.key`) the strongest layer's counts as a whole; outside the file it is
written `a,b` or `["a", "b"]`. The properties in `source.kafka` and `table.hudi` are overlaid one by one:
`--set source.kafka.security.protocol=SSL`, `LOCKSTEP_SOURCE__KAFKA__SECURITY_PROTOCOL=SSL`,
`LOCKSTEP_TABLE__HUDI='{"hoodie.cleaner.commits.retained": "20"}'`.

An unknown name is an error that names the nearest known one, and all problems are reported at once, each
with where the value was given. Such an error ends a command with exit code 2, before anything is
started.
"""

_UNITS = """\
## Units

A duration is a number and one of {durations}; a size a number and one of {sizes}. `MB` is 1,000,000
bytes, `MiB` 1,048,576. A number without a unit is refused.
"""

_SECRETS = """\
## Secrets

A value in `source.kafka` may be or hold `${env:NAME}` or `${file:/absolute/path}`. Such a reference is
resolved in the process that makes the Kafka client (driver, worker, or the command itself), so the
variable must be set, or the file be there, in each of them; those of `hooks` are resolved in the driver. It
is never written to a log, a command line or the table. A trailing line end in a file is left out. A literal
secret is refused in `--conf` and `--set`, where other users of a machine could read it: by its name (a
password, key, token or signature), by its form (a password in an address, a private key), and as a hook's
address or header.

```toml
[source]
bootstrap_servers = "broker-1:9093,broker-2:9093"
topics = ["events"]

[source.kafka]
"security.protocol" = "SASL_SSL"
"sasl.mechanism" = "SCRAM-SHA-512"
"sasl.username" = "lockstep"
"sasl.password" = "${file:/run/secrets/kafka-password}"
```
"""

_RELATIONS = """\
## Relations

* `transaction.write_timeout` is not shorter than `transaction.interval`: when a transaction is ended, a
  worker may still have to write everything that one interval brought. With `transaction.schedule` it may be.
* `transaction.max_bytes` may be more than `memory.per_worker`: records leave memory for files as they
  arrive.
* `queued.max.messages.kbytes` in `source.kafka` is not more than `memory.per_worker`.
* `control.topic` is not a source topic; a dead-letter topic is neither a source topic nor the control
  topic; `hooks.topic` is none of them.
* The fields in `table.key` and `table.partition_by` are in `record.schema`.
* `ui.bind` at an address that others reach needs `ui.token`, and so do `ui.control` and `ui.show_values`.
* `pipeline.workers` and one more must fit into Spark's slots; that is checked when the job starts.
"""


def generate() -> str:
    """The whole document."""
    durations, sizes = (", ".join(f"`{u}`" for u in units) for units in (DURATION_UNITS_MS, SIZE_UNITS_BYTES))
    parts = [_INTRODUCTION, _example()]
    parts += [_section(name, model) for name, model in SECTIONS.items()]
    parts += [_UNITS.format(durations=durations, sizes=sizes), _SECRETS, _RELATIONS, _synonyms(), _owned()]
    return "\n".join(parts)


def _example() -> str:
    said = (
        "Everything that has no default, and the columns, which only schemas of a registry can say instead."
    )
    lines = ["## The smallest file", "", said, "", "```toml"]
    for name, model in SECTIONS.items():
        required = [
            f"{field.alias or key} = {_toml((field.examples or [''])[0])}"
            for key, field in model.model_fields.items()
            if _default(name, key, field) is None or (name, key) == ("record", "ddl")
        ]
        lines += [f"[{name}]", *required, ""] if required else []
    return "\n".join([*lines[:-1], "```", ""])


def _section(name: str, model: type[Section]) -> str:
    lines = [
        f"## [{name}]",
        "",
        (model.__doc__ or "").strip(),
        "",
        "| name | default | meaning |",
        "|---|---|---|",
    ]
    for key, field in model.model_fields.items():
        default = _default(name, key, field)
        shown = "required" if default is None else f"`{default}`"
        lines.append(f"| `{field.alias or key}` | {shown} | {field.description} |")
    return "\n".join([*lines, ""])


def _default(section: str, key: str, field: FieldInfo) -> str | None:
    """The default as the file would have it; None where there is none."""
    if (section, key) == ("control", "topic"):
        return '""'  # derived from the pipeline's id
    if field.is_required():
        return None
    return _toml(field.get_default(call_default_factory=True, validated_data={}))


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{ }"
    return str(value) if isinstance(value, int) else f'"{value}"'


def _synonyms() -> str:
    lines = ["## Names of RFC-32", "", "Accepted in every layer, with a note in the log.", ""]
    lines += ["| RFC-32 | here |", "|---|---|"]
    lines += [f"| `{name}` | `{synonym.setting}` |" for name, synonym in SYNONYMS.items()]
    return "\n".join([*lines, ""])


def _owned() -> str:
    def rows(properties: Iterable[tuple[str, str]]) -> list[str]:
        return ["| property | why |", "|---|---|", *(f"| `{name}` | {why} |" for name, why in properties), ""]

    obeyed = ", ".join(f"`{prefix}{'*' if prefix.endswith('.') else ''}`" for prefix in hudi.OBEYED)
    clustering = ", ".join(f"`{prefix}*`" for prefix in hudi.OBEYED_WHILE_CLUSTERING)
    created = " and ".join(f"`{name}`" for name in hudi.CREATION)
    owned = [(name, f"write {setting} instead") for name, setting in hudi.OWN.items()]
    for mode, own in hudi.OWN_OF_MODE.items():
        owned += [(name, f"of {mode}s: write {setting} instead") for name, setting in own.items()]
    for mode, prefixes in hudi.REFUSED_OF_MODE.items():
        owned += [(f"{prefix}*", f"of {mode}s: it {why}") for prefix, why in prefixes.items()]
    owned += [(f"{prefix}*", why) for prefix, why in hudi.LOSSY_INDEXES.items()]
    lines = [
        "## Properties that are refused",
        "",
        "In `source.kafka`, because Lockstep sets them itself:",
        "",
        *rows(KAFKA_OWNED.items()),
        "In `table.hudi`, because they have a name of their own here, or do harm:",
        "",
        *rows(owned),
        "In `table.hudi`, with any other value, because the protocol would not hold:",
        "",
        "| property | value |",
        "|---|---|",
        *(f"| `{name}` | `{value}` |" for name, value in hudi.REQUIRED.items()),
        "",
        f"Everything else in `table.hudi` must be something that Hudi's write client obeys: {obeyed}.",
        f"{created} say how a table is created. {clustering} count only beside `hoodie.clustering.*`.",
        "The rest would be ignored silently, and is refused:",
        "",
        *rows((f"{prefix}*", why) for prefix, why in hudi.IGNORED.items()),
        "What Lockstep gives the write client where `table.hudi` says nothing:",
        "",
        "| property | value |",
        "|---|---|",
        *(f"| `{name}` | `{value}` |" for name, value in hudi.DEFAULTS.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENT).write_text(generate(), encoding="utf-8")
