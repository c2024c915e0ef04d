"""Hudi's key generators: which there are, and how those of a table that exists make folders. Pure.

Names and meanings are those of `KeyGeneratorType`, `TimestampKeyGeneratorConfig` and `HoodieDateTimeParser`
in Hudi 1.2.0. A table keeps the properties of its time-based key generator with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from table.hudi.files.keys import UnsafePartition, partition_path
from table.hudi.files.timed import MILLISECONDS, UNITS, Timed
from table.hudi.properties import TIMEBASED, URL_ENCODE
from table.partitioners import times
from table.partitioners.patterns import PatternError, pattern
from table.port import TableSpec

KEY_GENERATORS: Mapping[str, str] = {
    "SIMPLE": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "COMPLEX": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "NON_PARTITION": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "CUSTOM": "org.apache.hudi.keygen.CustomKeyGenerator",
    "TIMESTAMP": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
}
"""CUSTOM, whose fields are `field:SIMPLE`, spells keys as SIMPLE or COMPLEX would, TIMESTAMP as SIMPLE. A
table that we make has none of these two."""
KINDS = ("SIMPLE", "TIMESTAMP")
"""Of CUSTOM's fields."""
PARSER = "hoodie.keygen.datetime.parser.class"
THEIR_PARSER = "org.apache.hudi.keygen.parser.HoodieDateTimeParser"
TYPES: Mapping[str, str] = {
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
    "UNIX_TIMESTAMP": "SECONDS",
    "SCALAR": "",
    "DATE_STRING": "",
    "MIXED": "",
}
"""What `timestamp.type` says -> the unit of numbers, where it says that."""
OF_TEXTS = ("DATE_STRING", "MIXED")
NO_QUERY = "it makes folders of times, and where they are of numbers Spark with Hudi 1.2 fails at every query"
"""CUSTOM with `field:TIMESTAMP`."""
_OFFSET = re.compile(r"GMT(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?00)?")
HOURS_EAST, HOURS_WEST = 14, 12
"""What zones of whole hours there are."""
SAMPLE = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)


class UnknownGenerator(ValueError):
    """What of it is not known here: a phrase."""


def key_generator(spec: TableSpec) -> str:
    """The key generator type that Spark's datasource chooses for the same fields."""
    if not spec.partition_fields:
        return "NON_PARTITION"
    return "COMPLEX" if len(spec.key_fields) > 1 or len(spec.partition_fields) > 1 else "SIMPLE"


def fields_of_kinds(written: Sequence[str], generator: str) -> Mapping[str, str]:
    """The table's partition fields, each with its kind in `KINDS`. Raises `UnknownGenerator`.

    `written`: as the table has them, CUSTOM's with the kind of each.
    """
    if generator not in KEY_GENERATORS:
        raise UnknownGenerator(f"known are {', '.join(KEY_GENERATORS)}")
    found: dict[str, str] = {}
    for one in written:
        name, _, kind = one.partition(":")
        found[name] = kind.upper() or ("TIMESTAMP" if generator == "TIMESTAMP" else "SIMPLE")
        if found[name] not in KINDS or (generator == "CUSTOM" and not kind):
            raise UnknownGenerator(f"{one} is neither {name}:SIMPLE nor {name}:TIMESTAMP")
        if generator == "CUSTOM" and found[name] == "TIMESTAMP":
            raise UnknownGenerator(NO_QUERY)
    return found


def timed_of(
    properties: Mapping[str, str], kinds: Mapping[str, str], given: Mapping[str, str] | None = None
) -> Timed | None:
    """How a table makes folders of times, by its properties; None where it makes none. Raises
    `UnknownGenerator`. `given`: what the configuration says of it beside them.
    """
    told = {name: value for name, value in (given or {}).items() if name.startswith(TIMEBASED)}
    for name, value in told.items():
        if properties.get(name, value) != value:
            raise UnknownGenerator(f"{name} is {properties[name]}, and {value} in table.hudi")
    names = tuple(name for name, kind in kinds.items() if kind == "TIMESTAMP")
    if not names:
        if told:
            raise UnknownGenerator(f"it makes folders of no time: take {next(iter(told))} out of table.hudi")
        return None
    said = {
        name.removeprefix(TIMEBASED): value
        for name, value in {**told, **properties}.items()
        if name.startswith(TIMEBASED)
    }
    if properties.get(PARSER, THEIR_PARSER) != THEIR_PARSER:
        raise UnknownGenerator(f"{PARSER} is a class of somebody's own")
    kind, shape = said.get("timestamp.type", ""), said.get("output.dateformat", "")
    if not kind or not shape:
        missing = "timestamp.type" if not kind else "output.dateformat"
        raise UnknownGenerator(
            f"its properties do not say {TIMEBASED}{missing}, which writers are told apart: say it and the "
            f"others of {TIMEBASED}* in table.hudi"
        )
    if kind not in TYPES:
        raise UnknownGenerator(f"{TIMEBASED}timestamp.type is {kind}, which is none of {', '.join(TYPES)}")
    is_text = kind in OF_TEXTS
    unit = TYPES[kind] or ("" if is_text else said.get("timestamp.scalar.time.unit", "SECONDS").upper())
    if not is_text and unit not in UNITS:
        raise UnknownGenerator(f"{TIMEBASED}timestamp.scalar.time.unit is {unit}")
    read = _input(said) if is_text else ""
    spelled = _joda("output.dateformat", shape)
    _check_folders(shape, spelled, is_encoded=properties.get(URL_ENCODE, "false").lower() == "true")
    zone, zone_of_texts = _zones(said, is_text=is_text)
    return Timed(
        fields=names,
        unit=unit,
        read=read,
        spelled=spelled,
        zone=zone,
        of_null=_of_null(unit, read, spelled, zone, zone_of_texts),
    )


def not_with_times(key_fields: Sequence[str], spec: TableSpec) -> str:
    """Why a table with folders of times is not written as `spec` says; empty where it is."""
    if len(key_fields) > 1:
        return (
            "its key generator is TIMESTAMP, and known is how it spells one key field: write to another path"
        )
    if spec.retention_ms and not spec.retention_field:
        return (
            "table.retention goes by folders, which its key generator makes of times, and rows without one "
            "are in those of 1970: say table.retention_by, or take table.retention out"
        )
    return ""


def kept_of_generator(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that a key generator needs."""
    return {name: value for name, value in properties.items() if name.startswith(TIMEBASED) or name == PARSER}


def _input(said: Mapping[str, str]) -> str:
    shape = said.get("input.dateformat", "")
    if not shape or said.get("input.dateformat.list.delimiter.regex", ",") in shape:
        raise UnknownGenerator(f"{TIMEBASED}input.dateformat is not one pattern")
    made = _joda("input.dateformat", shape)
    if not pattern(made).is_read:
        raise UnknownGenerator(f"{TIMEBASED}input.dateformat, {shape}, does not say a day")
    return made


def _joda(name: str, shape: str) -> str:
    """A pattern of Joda-Time's as ours: what differs is the letter of years."""
    pieces = re.split(r"('(?:[^']|'')*')", shape)
    made = "".join(piece if at % 2 else piece.replace("Y", "y") for at, piece in enumerate(pieces))
    try:
        pattern(made)
    except PatternError as error:
        raise UnknownGenerator(f"{TIMEBASED}{name} is {shape}; wanted is {error}") from None
    return made


def _check_folders(shape: str, spelled: str, *, is_encoded: bool) -> None:
    """Where each time has folders that a file system takes as they are."""
    sample = pattern(spelled).spelled({part: getattr(SAMPLE, part) for part in times.STEPS})
    for folder in [sample] if is_encoded else sample.split("/"):
        try:
            if not folder:
                raise UnsafePartition("a folder without a name")
            partition_path(folder, "", hive_style=False, url_encode=is_encoded)
        except UnsafePartition:
            raise UnknownGenerator(
                f"{TIMEBASED}output.dateformat is {shape}, which makes {sample}: no folder is called that"
            ) from None


def _zones(said: Mapping[str, str], *, is_text: bool) -> tuple[str, str]:
    """By whose clock folders are (`Timed.zone`), and by whose texts are read."""
    read, written = (
        said.get("timezone", said.get(f"{one}.timezone", "")).strip() for one in ("input", "output")
    )
    if not is_text:
        if not written:
            raise UnknownGenerator(
                f"neither {TIMEBASED}output.timezone nor {TIMEBASED}timezone is there, so that folders are "
                "by the clock of whichever machine writes"
            )
        return _zone(written), ""
    read, written = (_zone(one) if one else "" for one in (read, written))
    if written in ("", read):
        return "", read  # the digits stay what they are
    if read != "UTC":
        raise UnknownGenerator(
            f"texts are read by the clock of {read or 'whichever machine writes'} and folders are by that of "
            f"{written}; known is UTC for the first, or one zone for both"
        )
    return written, read


def _zone(text: str) -> str:
    """As the tables of zones call what `java.util.TimeZone` understands by it."""
    offset = _OFFSET.fullmatch(text)
    if text in ("UTC", "GMT"):
        return "UTC"
    if offset is not None:
        hours, is_east = int(offset["hours"]), offset["sign"] == "+"
        if hours <= (HOURS_EAST if is_east else HOURS_WEST):
            return f"Etc/GMT{'-' if is_east else '+'}{hours}" if hours else "UTC"
    elif "/" in text:
        try:
            ZoneInfo(text)
            return text
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise UnknownGenerator(
        f"its time zone is {text}; known are UTC, GMT, GMT+8:00 and the like, and zones such as Europe/Berlin"
    )


def _of_null(unit: str, read: str, spelled: str, zone: str, zone_of_texts: str) -> str:
    """Hudi takes it for the number 1, or for 1970's first millisecond, which it spells as a text first."""
    micros = np.array([1_000 * MILLISECONDS.get(unit, 0)], dtype=np.int64)
    if read:
        _, texts = times.spelled(micros + 1_000, pattern(read), zone=zone_of_texts)
        micros = times.micros_of(pa.array(texts, pa.string()), pattern=pattern(read)).to_numpy()
    _, (folder,) = times.spelled(micros, pattern(spelled), zone=zone)
    assert folder is not None
    return folder
