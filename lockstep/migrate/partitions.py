"""How a table is partitioned, as others say it, in what `table.partition_by` can say. Pure.

All that is known of the latter stands in `spelled`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lockstep.config.partition_values import FIELDS_MAX
from lockstep.migrate.sheet import Sheet
from table.partitioners.expressions import TermError, parsed

HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
RECORD_TIME, WALL_CLOCK = "_kafka_timestamp", "now()"
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMED = re.compile(r"'?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:'=|=')(?P<pattern>[^'=]+)'?")
_UNITS = (("s", "second"), ("m", "minute"), ("H", "hour"), ("d", "day"), ("M", "month"), ("y", "year"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What says a row's table partition, the outermost first: fields, or expressions over them."""

    parts: tuple[str, ...] = ()
    hive_style: bool = False
    """Whether a folder is named `field=value`."""


def spelled(wanted: Wanted) -> list[str] | None:
    """The value of `table.partition_by`; None where it cannot say it."""
    try:
        parsed(wanted.parts)
    except TermError:
        return None
    return list(wanted.parts) if len(wanted.parts) <= FIELDS_MAX else None


def set_partitions(sheet: Sheet, names: Sequence[str], wanted: Wanted, why: str = "") -> None:
    """Say it of the first of their names, and of the others that they are part of it. `why`: what is not
    quite the same; empty where all is.
    """
    first, *others = names
    value = spelled(wanted)
    if value is None:
        told = ", ".join(wanted.parts)
        sheet.note(
            f"The table is not partitioned: theirs is by {told}, which table.partition_by cannot say. That "
            "is not changed once the table is there: docs/partitioning.md says what there is."
        )
        sheet.differs(first, "table.partition_by", None, f"theirs is {told}, which cannot be said")
    elif not value:
        sheet.differs(first, "table.partition_by", None, why or "the table is not partitioned")
    else:
        if wanted.hive_style:
            sheet.put(f"table.hudi.{HIVE_STYLE}", "true")
        if why:
            sheet.differs(first, "table.partition_by", value, why)
        else:
            sheet.same(first, "table.partition_by", value)
    for name in others:
        if name in sheet.given:
            sheet.none(name, f"part of {first}")


def java_pattern(joda: str) -> str:
    """A pattern of Joda-Time's as java.time has it: what differs between them is how years are spelled.

    Raises `ValueError` for what java.time cannot say.
    """
    out: list[str] = []
    for at, piece in enumerate(re.split(r"('(?:[^']|'')*')", joda)):
        if at % 2:
            out.append(piece)
            continue
        if strange := re.search(r"[CZz]", piece):
            raise ValueError(f"{strange[0]} of path.format is a century or a zone, which no path needs")
        out.append(piece.translate(str.maketrans("Yx", "yY")))
    return "".join(out)


def by_time(of: str, joda: str, zone: str, delim: str = "/") -> Wanted:
    """A path made of a time: a part for each folder, `format(ts, "yyyy", "Europe/Berlin") as year`, by hive
    style where each folder says its name, `'year'=YYYY`. Raises `ValueError` as `java_pattern`, and for none.
    """
    folders = [one for one in joda.split(delim) if one] if delim else [joda]
    if not folders:
        raise ValueError("there is no pattern")
    named = [_NAMED.fullmatch(one) for one in folders]
    hive_style = all(match is not None for match in named)
    parts = []
    for folder, match in zip(folders, named, strict=True):
        pattern = java_pattern(match["pattern"] if match is not None and hive_style else folder)
        name = match["name"] if match is not None and hive_style else _of_pattern(of, pattern)
        parts.append(f'format({of}, "{pattern}", "{zone}") as {name}')
    return Wanted(parts=tuple(parts), hive_style=hive_style)


def _of_pattern(of: str, pattern: str) -> str:
    """A column's name, by the finest unit that a pattern has."""
    bare = re.sub(r"'[^']*'", "", pattern)
    unit = next((name for letter, name in _UNITS if letter in bare), "time")
    return unit if not _FIELD.fullmatch(of) or of.startswith("_") else f"{of}_{unit}"
