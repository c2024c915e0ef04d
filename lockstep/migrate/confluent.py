"""What Confluent's sinks into storage have in common: partitioners, when files end, formats, schemas. Pure.

Source of the names: StorageSinkConnectorConfig, StorageCommonConfig, PartitionerConfig and HiveConfig of
kafka-connect-storage-common.
"""

from __future__ import annotations

import re

from lockstep.config.units import format_duration
from lockstep.migrate.partitions import (
    RECORD_TIME,
    WALL_CLOCK,
    Wanted,
    by_time,
    set_partitions,
)
from lockstep.migrate.sheet import Rule, Rules, Sheet, no_equal

INTERVAL_MIN_MS, INTERVAL_MAX_MS = 100, 86_400_000
TIMEOUT_MS, LIMIT_MS = 60_000, 600_000
"""`transaction.write_timeout` and `write_limit`, where nobody says them."""
RECORDS_MIN = 10_000
"""A transaction of all workers that ends at fewer records than this would be all commit and no work."""

TOPICS_DIR, LOGS_DIR = "topics", "logs"
DELIM = "/"
_PARTITIONERS = "io.confluent.connect.storage.partitioner."
_DAILY = "'year'=YYYY{0}'month'=MM{0}'day'=dd"
_TIME = (
    "partition.duration.ms",
    "path.format",
    "locale",
    "timezone",
    "timestamp.extractor",
    "timestamp.field",
)
_DAY_MS, _HOUR_MS, _MINUTE_MS = 86_400_000, 3_600_000, 60_000
_UNITS_MS = (("s", 1_000), ("m", _MINUTE_MS), ("H", _HOUR_MS))
"""The letters of a pattern -> how long what they spell lasts, the finest first."""

_FILES = "a table's files are Parquet, whatever values are"
_FILE_NAMES = "Hudi names the files; which offsets are in which commit, the commit says"
_COMPATIBILITY = (
    "of a registry's schemas record.on_schema_change says it: columns are added and widened, and records "
    "never projected; see docs/schema.md"
)
_BY_RECORD = (
    "by the wall clock, theirs by the times of records: a quiet topic is committed, too; "
    "transaction.max_bytes ends a transaction earlier"
)
_NO_INTERVAL = "a transaction ends each 10s, whatever it holds; theirs waits for flush.size records"
RULES: Rules = {
    "format.class": no_equal(_FILES),
    "storage.class": no_equal("table.path's scheme says which store it is"),
    "avro.codec": no_equal(_FILES),
    "parquet.codec": no_equal("Hudi's own codec; hoodie.parquet.* counts beside clustering alone"),
    "schema.cache.size": no_equal("schemas are kept: registry.cache_folder"),
    "enhanced.avro.schema.support": no_equal(_FILES),
    "connect.meta.data": no_equal(_FILES),
    "allow.optional.map.keys": no_equal(_FILES),
    "filename.offset.zero.pad.width": no_equal(_FILE_NAMES),
    "file.delim": no_equal(_FILE_NAMES),
    "directory.delim": no_equal("folders are divided by /"),
    "retry.backoff.ms": no_equal("whatever is away is waited out, with a back-off of its own"),
    "shutdown.timeout.ms": no_equal("lockstep stop commits what is open, and waits for that"),
    "schema.compatibility": no_equal(_COMPATIBILITY),
    "schema.generator.class": no_equal("columns are those of record.schema, or of the registry's schemas"),
    "table.name.format": no_equal("table.name is the table's name"),
    "confluent.license": no_equal("there is no licence key"),
    "confluent.topic": no_equal("there is no licence topic"),
    "confluent.topic.*": no_equal("there is no licence topic"),
    "reporter.*": no_equal("what became of records is in dead-letter topics, hooks and metrics"),
    "max.retries": no_equal("whatever is away is waited out, with a back-off of its own"),
}


def translate_storage(sheet: Sheet) -> None:
    """All of it; the store itself, and where the table is, are the sink's."""
    _partitioner(sheet)
    _rotation(sheet)
    sheet.apply({**RULES, "flush.size": _flush_size})


# --- when a transaction ends --------------------------------------------------------------------------


def set_interval(sheet: Sheet, name: str, interval_ms: int, why: str = "", *, differs: bool = False) -> None:
    """`transaction.interval`, and what must not be shorter."""
    within = min(max(interval_ms, INTERVAL_MIN_MS), INTERVAL_MAX_MS)
    text = format_duration(within)
    if within > TIMEOUT_MS:
        sheet.put("transaction.write_timeout", text)
    if within > LIMIT_MS:
        sheet.put("transaction.write_limit", text)
    if within != interval_ms:
        low, high = format_duration(INTERVAL_MIN_MS), format_duration(INTERVAL_MAX_MS)
        why = "; ".join(filter(None, [f"it is from {low} to {high}", why]))
    if within == interval_ms and not differs:
        sheet.same(name, "transaction.interval", text, why)
    else:
        sheet.differs(name, "transaction.interval", text, why)


def _rotation(sheet: Sheet) -> None:
    """One goes by the wall clock and is aligned to midnight, the other by the times of records."""
    schedule, interval = "rotate.schedule.interval.ms", "rotate.interval.ms"
    by_clock, by_record = _positive(sheet, schedule), _positive(sheet, interval)
    if by_clock:
        sheet.note(
            "Their rotate.schedule.interval.ms goes by the wall clock, and theirs is then not exactly once: "
            "a task that reads again after a failure ends its files elsewhere. Rows around the change-over "
            "may be twice."
        )
        _schedule(sheet, schedule, by_clock)
    elif schedule in sheet.given:
        sheet.none(schedule, "off")
    if by_record:
        set_interval(sheet, interval, by_record, differs=True, why=_BY_RECORD)
    elif interval in sheet.given:
        sheet.none(interval, "off")
    if not by_clock and not by_record:
        sheet.differs(interval, "transaction.interval", None, _NO_INTERVAL)


def _schedule(sheet: Sheet, name: str, period_ms: int) -> None:
    """`transaction.schedule` and `transaction.zone`; an interval where the period divides no day."""
    if period_ms < 1_000 or _DAY_MS % period_ms:
        set_interval(sheet, name, period_ms, differs=True, why="not aligned: it divides no day")
        if "timezone" in sheet.given and "timezone" not in sheet.said:
            sheet.none("timezone", f"nothing is aligned: {name} divides no day")
        return
    why = "transaction.max_bytes ends a transaction earlier"
    sheet.same(name, "transaction.schedule", f"every {format_duration(period_ms)}", why)
    if "timezone" in sheet.given:
        zone = sheet.get("timezone", "UTC")
        sheet.put("transaction.zone", zone)
        if "timezone" not in sheet.said:
            sheet.same("timezone", "transaction.zone", zone)


def _positive(sheet: Sheet, name: str) -> int:
    """Milliseconds; 0 where it is off, or no number."""
    text = sheet.get(name)
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else 0


def _flush_size(sheet: Sheet, name: str) -> None:
    records = int(sheet.get(name))
    how = "theirs counts in each source partition and ends a file; here a transaction of all workers ends"
    if records >= RECORDS_MIN:
        sheet.differs(name, "transaction.max_records", records, how)
        return
    sheet.none(
        name, f"{how}, and {records:,} records would be too few for that; files end by table.target_file_size"
    )


# --- partitioners -------------------------------------------------------------------------------------


def _partitioner(sheet: Sheet) -> None:
    name = "partitioner.class"
    given = sheet.get(name, f"{_PARTITIONERS}DefaultPartitioner")
    kind = given.rpartition(".")[2]
    delim = sheet.get("directory.delim", DELIM)
    if kind == "DefaultPartitioner":
        set_partitions(
            sheet, [name], Wanted(), "theirs is by source partition: _kafka_partition says it of each row"
        )
    elif kind == "FieldPartitioner":
        fields = tuple(one.strip() for one in sheet.get("partition.field.name").split(",") if one.strip())
        set_partitions(sheet, ["partition.field.name", name], Wanted(parts=fields, hive_style=True))
    elif kind in ("TimeBasedPartitioner", "DailyPartitioner", "HourlyPartitioner"):
        _by_time(sheet, kind, delim)
    else:
        sheet.must("table.partition_by", f"the field that says what {given} makes, a class of somebody's own")
        sheet.none(name, "a class that is not known here")
    for other in ("partition.field.name", *_TIME):
        scheduled = other == "timezone" and _positive(sheet, "rotate.schedule.interval.ms")
        if other in sheet.given and other not in sheet.said and not scheduled:
            sheet.none(other, f"means nothing to {kind}")


def _by_time(sheet: Sheet, kind: str, delim: str) -> None:
    pattern = sheet.get("path.format")
    duration = _positive(sheet, "partition.duration.ms")
    if kind == "DailyPartitioner":
        pattern, duration = _DAILY.format(delim), _DAY_MS
    elif kind == "HourlyPartitioner":
        pattern, duration = _DAILY.format(delim) + f"{delim}'hour'=HH", _HOUR_MS
    names = ["partitioner.class", *(one for one in _TIME if one in sheet.given)]
    zone = sheet.get("timezone", "UTC")
    try:
        of, why = _clock(sheet)
        if re.search(r"M{3}|E", re.sub(r"'[^']*'", "", pattern)):
            raise ValueError("names of months and days are not spelled")
        wanted = _in_minutes(of, pattern, duration, zone) or by_time(of, pattern, zone, delim)
    except ValueError as error:
        sheet.none(names[0], f"cannot be taken over: {error}")
        return
    if any(part.startswith("minutes(") for part in wanted.parts):
        why = "; ".join(filter(None, ["folders are of one level, 2026-11-26-09-45", why]))
    set_partitions(sheet, names, wanted, why)


def _in_minutes(of: str, pattern: str, duration_ms: int, zone: str) -> Wanted | None:
    """Of a pattern that goes finer than `partition.duration.ms`, by which times are rounded down: of minutes
    `minutes(15, ts)`. None where rounding changes nothing. Raises `ValueError` where it cannot be said.
    """
    bare = re.sub(r"'[^']*'", "", pattern)
    finest = next((unit for letter, unit in _UNITS_MS if letter in bare), _DAY_MS)
    if duration_ms <= finest:
        return None
    if finest == _MINUTE_MS and _HOUR_MS % duration_ms == 0 and duration_ms % _MINUTE_MS == 0:
        return Wanted(parts=(f'minutes({duration_ms // _MINUTE_MS}, {of}, "{zone}")',))
    raise ValueError("partition.duration.ms is longer than the finest unit of path.format")


def _clock(sheet: Sheet) -> tuple[str, str]:
    """What their time is of, and what is not quite the same here."""
    extractor = sheet.get("timestamp.extractor", "Wallclock").rpartition(".")[2]
    extractor = extractor.rpartition("$")[2].removesuffix("TimestampExtractor")
    if extractor == "RecordField":
        field = sheet.get("timestamp.field", "timestamp")
        number, text = f"epoch_ms({field})", f"parse({field}, …)"
        return field, f"{field} is taken for a TIMESTAMP: of a number it is {number}, of a text {text}"
    if extractor == "Record":
        return RECORD_TIME, ""
    if extractor != "Wallclock":
        raise ValueError("timestamp.extractor is a class of somebody's own")
    sheet.note(
        "Their clock is the wall clock: a task that reads again after a failure may put records into other "
        "folders, and their guarantee of exactly once does not hold with it. Rows around the change-over may "
        "be twice."
    )
    return WALL_CLOCK, "the time of the transaction, the same for all of its rows; theirs is each task's own"


# --- names, Hive --------------------------------------------------------------------------------------


def table_name(text: str) -> str:
    """A name that a table may have."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:128]
    return name if re.match(r"[A-Za-z_]", name) else f"t_{name}"[:128]


def first_topic(sheet: Sheet) -> str:
    """Empty where none is known."""
    topics = sheet.settings.get("source.topics")
    return str(topics[0]) if isinstance(topics, list) and topics else ""


def hive_rules() -> Rules:
    """Of a metastore that is kept up to date."""
    return {
        "hive.integration": _integration,
        "hive.metastore.uris": _if_integrated("hooks.hive"),
        "hive.database": _if_integrated("hooks.hive_database"),
        "hive.table.name": _hive_table,
        "hive.conf.dir": no_equal("hooks.hive names the metastore; Hudi's own tool keeps it up to date"),
        "hive.home": no_equal("hooks.hive names the metastore; Hudi's own tool keeps it up to date"),
    }


def _integration(sheet: Sheet, name: str) -> None:
    if not sheet.is_true(name):
        sheet.same(name, why="no metastore is told")
        return
    if not sheet.get("hive.metastore.uris"):
        sheet.must("hooks.hive", "the metastore's thrift:// address")
    sheet.differs(name, "hooks.hive", None, "a table of Hudi's, by Hudi's own tool; theirs stays as it is")


def _if_integrated(setting: str) -> Rule:
    def rule(sheet: Sheet, name: str) -> None:
        if sheet.is_true("hive.integration"):
            sheet.same(name, setting)
        else:
            sheet.none(name, "means nothing without hive.integration")

    return rule


def _hive_table(sheet: Sheet, name: str) -> None:
    value = sheet.get(name).replace("${topic}", first_topic(sheet))
    if sheet.is_true("hive.integration") and re.fullmatch(r"[A-Za-z0-9_]{1,128}", value):
        sheet.same(name, "hooks.hive_table", value)
    else:
        sheet.none(name, "hooks.hive_table is a name of letters, digits and _")
