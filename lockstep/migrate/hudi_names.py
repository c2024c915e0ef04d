"""What Hudi's own writers call the things that `[table]`, `[services]` and `[hooks]` say. Pure.

Which `hoodie.*` the write client obeys is not known here: `lockstep.config.properties` asks the table.
Source of the names: the ConfigProperty definitions of Hudi 1.2, and the older names that it takes for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lockstep.config.properties import refused_hudi_properties
from lockstep.config.units import format_size
from lockstep.migrate.confluent import table_name
from lockstep.migrate.partitions import HIVE_STYLE, Wanted, by_time, set_partitions
from lockstep.migrate.sheet import Rule, Rules, Sheet, no_equal

KEY = ("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields")
PARTITION = ("hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields")
ORDERING = (
    *("hoodie.table.ordering.fields", "hoodie.datasource.write.precombine.field"),
    *("hoodie.table.precombine.field", "--source-ordering-fields", "--source-ordering-field"),
)
GENERATOR = ("hoodie.datasource.write.keygenerator.class", "hoodie.datasource.write.keygenerator.type")
TIMEBASED = "hoodie.keygen.timebased."
TIMED = "its key generator is CUSTOM and makes folders of times, of which Hudi's own readers fail at some"
BUCKETS = "hoodie.bucket.index.num.buckets"
SIZE_MIN_BYTES, SIZE_MAX_BYTES = 10**6, 10**12
_TIMEBASED = re.compile(r"hoodie\.(keygen|deltastreamer\.keygen|streamer\.keygen)\.timebased\.")
_SYNC = (
    "hoodie.datasource.hive_sync.",
    "hoodie.datasource.meta.sync.",
    "hoodie.datasource.meta_sync.",
    "hoodie.meta.sync.",
)


_WITHOUT_HOST = re.compile(r"hdfs:///*(/[^/].*)")


def location(text: str, default_fs: str = "") -> str:
    """Return a path of theirs as `table.path` has it, with a scheme; empty if its file system is unknown.

    A path without a scheme, or with one and without a host, is where Hadoop's default file system is: on a
    cluster that is HDFS, and never this machine's disk.
    """
    text = text.strip().rstrip("/")
    if text.startswith("/"):
        return f"{default_fs}{text}" if default_fs else ""
    if match := _WITHOUT_HOST.fullmatch(text):
        return f"{default_fs}{match[1]}" if default_fs.startswith("hdfs://") else ""
    return re.sub(r"^s3n?://", "s3a://", text)


def unknown_location(text: str) -> str:
    """Return what to say of a path whose file system is not known."""
    path = text.strip().partition("://")[2] or text.strip()
    return (
        f"where {text.strip()} is: fs.defaultFS in Hadoop's core-site.xml says it, such as "
        f"hdfs://NAMENODE:8020{path}, or file://{path}; HADOOP_CONF_DIR, set for this command, finds it"
    )


def fields(text: str) -> list[str]:
    """Names separated by commas."""
    return [one.strip() for one in text.split(",") if one.strip()]


def first_of(sheet: Sheet, names: tuple[str, ...]) -> str:
    """The first of these that they give; empty where they give none."""
    return next((name for name in names if sheet.get(name)), "")


# --- a row's key, its table partition, its order ------------------------------------------------------


def set_key(sheet: Sheet) -> None:
    """`table.key`."""
    name = first_of(sheet, KEY)
    if name:
        sheet.same(name, "table.key", fields(sheet.get(name)))
    _others(sheet, KEY, name)


def set_table_partitions(sheet: Sheet, *, goes_on: bool) -> None:
    """By their key generator, of whose time-based kind the output's pattern is a path. A table that goes on
    has it still.
    """
    name, generator_name = first_of(sheet, PARTITION), first_of(sheet, GENERATOR)
    generator = (
        sheet.get(generator_name).rpartition(".")[2].upper().removesuffix("KEYGENERATOR")
        if generator_name
        else ""
    )
    related = [one for one in (*PARTITION, *GENERATOR) if one in sheet.given and one != name]
    timebased = [one for one in sheet.given if _TIMEBASED.match(one)]
    if not name or "NON" in generator:
        if name or generator_name:
            set_partitions(
                sheet, [name or generator_name, *related], Wanted(), "theirs is not partitioned either"
            )
        return
    if goes_on and _is_by_time(sheet):
        _set_timed(sheet, name, related, timebased)
        return
    wanted = Wanted()
    for part in fields(sheet.get(name)):
        of, _, how = part.partition(":")
        if how.upper() == "TIMESTAMP" or (generator.startswith("TIMESTAMP") and not how):
            try:
                timed = _by_time(sheet, of)
            except ValueError as error:
                sheet.none(name, f"cannot be taken over: {error}")
                return
            wanted = Wanted(parts=(*wanted.parts, *timed.parts))
        else:
            wanted = Wanted(parts=(*wanted.parts, of))
    set_partitions(sheet, [name, *related, *timebased], wanted)


def is_timed(sheet: Sheet) -> bool:
    """Whether CUSTOM makes table partitions of a time, which no table does that goes on."""
    return ":TIMESTAMP" in sheet.get(first_of(sheet, PARTITION)).upper()


def _is_by_time(sheet: Sheet) -> bool:
    """Whether TIMESTAMP does."""
    return sheet.get(first_of(sheet, GENERATOR)).rpartition(".")[2].upper().startswith("TIMESTAMP")


def _set_timed(sheet: Sheet, name: str, related: list[str], timebased: list[str]) -> None:
    """The fields as they are; not every table of theirs says itself what is made of them."""
    set_partitions(sheet, [name, *related], Wanted(parts=tuple(fields(sheet.get(name)))))
    for one in timebased:
        new = TIMEBASED + _TIMEBASED.sub("", one)
        sheet.same(one, f"table.hudi.{new}", sheet.get(one), "the table's folders stay as they are made")


def _by_time(sheet: Sheet, of: str) -> Wanted:
    found = {_TIMEBASED.sub("", one): sheet.get(one) for one in sheet.given if _TIMEBASED.match(one)}
    zone = found.get("output.timezone") or found.get("timezone") or "UTC"
    return by_time(_from_unit(of, found), found.get("output.dateformat") or "yyyy-MM-dd", zone)


def _from_unit(of: str, found: Mapping[str, str]) -> str:
    """What the field holds: of a number its unit, of a text its pattern."""
    match found.get("timestamp.type", "").upper():
        case "UNIX_TIMESTAMP":
            return f"epoch_s({of})"
        case "EPOCHMILLISECONDS":
            return f"epoch_ms({of})"
        case "EPOCHMICROSECONDS":
            return f"epoch_us({of})"
        case "DATE_STRING" | "MIXED" if found.get("input.dateformat"):
            return f'parse({of}, "{found["input.dateformat"].split(",")[0]}")'
        case _:
            return of


def set_ordering(sheet: Sheet) -> None:
    """Of upserts; of inserts their order does not matter."""
    name = first_of(sheet, ORDERING)
    if name and sheet.settings.get("table.kind") == "upsert":
        ordering = fields(sheet.get(name))
        if len(ordering) == 1:
            sheet.same(name, "table.ordering", ordering[0])
        else:
            sheet.must(
                "table.ordering", f"the one field that says which version is newer, of {', '.join(ordering)}"
            )
            sheet.none(name, "one field orders versions")
    elif name:
        sheet.none(name, "of inserts every record is a row: nothing is ordered")
    _others(sheet, ORDERING, name)


def _others(sheet: Sheet, names: tuple[str, ...], taken: str) -> None:
    for other in names:
        if other in sheet.given and other != taken:
            sheet.none(other, f"{taken} says it" if taken else "empty")


# --- where the table is, and whether it may go on -----------------------------------------------------


def set_table(sheet: Sheet, name: str, path_name: str, *, why_not: str) -> None:
    """`table.name`, and `table.path`: theirs where the table may go on, else one of its own beside it."""
    sheet.put("table.name", table_name(name))
    path = location(sheet.get(path_name), sheet.default_fs)
    if not path or "${" in path:
        given = sheet.get(path_name)
        what = unknown_location(given) if given and "${" not in given else "where the table is"
        sheet.must("table.path", what)
        if given:
            sheet.none(path_name, "no table.path can be made of it: it does not say in which file system")
        return
    if not why_not:
        sheet.same(
            path_name, "table.path", path, "the same table goes on: lockstep validate says whether it fits"
        )
        sheet.put("table.kafka_columns", False)
        sheet.note(
            "The table goes on, so table.kafka_columns is false: their rows have none, and lockstep verify "
            "counts no offset. A table of its own, with --set table.path=… and table.kafka_columns=true, is "
            "checked offset by offset."
        )
        return
    sheet.differs(path_name, "table.path", f"{path}-lockstep", f"a table of its own: {why_not}")
    sheet.note(
        f"Their table does not go on: {why_not}. What is in it stays there, and is not in the new one."
    )
    if sheet.settings.get("table.kind") == "upsert":
        sheet.note(
            "With upserts the new table lacks every row that no record changes any more: read the topics "
            "from their beginning where they have all of it, and not from where theirs stands, or copy its "
            "rows first, with Spark."
        )


# --- sizes, services, metastore -----------------------------------------------------------------------


def _file_size(sheet: Sheet, name: str) -> None:
    size = int(sheet.get(name))
    within = min(max(size, SIZE_MIN_BYTES), SIZE_MAX_BYTES)
    sheet.same(name, "table.target_file_size", format_size(within))


def _switch(setting: str, when_true: str, when_false: str) -> Rule:
    def rule(sheet: Sheet, name: str) -> None:
        sheet.same(name, setting, when_true if sheet.is_true(name) else when_false)

    return rule


def _clustering(when_true: str) -> Rule:
    def rule(sheet: Sheet, name: str) -> None:
        if sheet.settings.get("table.kind") == "upsert":
            sheet.none(name, "files of upserts are merged by services.compaction")
        elif sheet.is_true(name):
            sheet.same(name, "services.clustering", when_true)
        else:
            sheet.same(name, "services.clustering", sheet.settings.get("services.clustering", "off"))

    return rule


def _every(setting: str) -> Rule:
    def rule(sheet: Sheet, name: str) -> None:
        if "clustering" in setting and sheet.settings.get("table.kind") == "upsert":
            sheet.none(name, "files of upserts are merged by services.compaction")
        else:
            sheet.same(name, setting, int(sheet.get(name)))

    return rule


def _style(sheet: Sheet, name: str) -> None:
    sheet.same(name, f"table.hudi.{name}", str(sheet.is_true(name)).lower())


def _index(sheet: Sheet, name: str) -> None:
    value = sheet.get(name).upper()
    if sheet.settings.get("table.kind") != "upsert":
        sheet.none(name, "of inserts no row is looked for")
    elif value == "BUCKET":
        sheet.same(name, why="upserts find their file group by a bucket index")
    else:
        sheet.differs(
            name, "table.buckets", None, f"upserts find their file group by a bucket index; theirs is {value}"
        )


def _buckets(sheet: Sheet, name: str) -> None:
    if sheet.settings.get("table.kind") == "upsert":
        sheet.same(name, "table.buckets", int(sheet.get(name)))
    else:
        sheet.none(name, "of inserts no row is looked for")


_MERGING = "the later version of a row counts, or the one with the larger table.ordering"
_RESHUFFLE = "rows are not shuffled: each worker writes what it reads"
_COLUMNS = "record.schema says the columns, or a registry's schemas"
RULES: Rules = {
    "hoodie.parquet.max.file.size": _file_size,
    "hoodie.parquet.small.file.limit": no_equal("small files are put together by services.clustering"),
    "hoodie.upsert.shuffle.parallelism": no_equal(_RESHUFFLE),
    "hoodie.insert.shuffle.parallelism": no_equal(_RESHUFFLE),
    "hoodie.bulkinsert.shuffle.parallelism": no_equal(_RESHUFFLE),
    "hoodie.delete.shuffle.parallelism": no_equal(_RESHUFFLE),
    "hoodie.embed.timeline.server": no_equal("no timeline server is run"),
    "hoodie.compact.inline": _switch("services.compaction", "inline", "async"),
    "hoodie.compact.inline.max.delta.commits": _every("services.compaction_every"),
    "hoodie.compact.schedule.inline": no_equal("services.compaction says who plans, and who merges"),
    "hoodie.compaction.async.enable": _switch("services.compaction", "async", "off"),
    "hoodie.datasource.compaction.async.enable": _switch("services.compaction", "async", "off"),
    "hoodie.clustering.inline": _clustering("inline"),
    "hoodie.clustering.async.enabled": _clustering("async"),
    "hoodie.clustering.inline.max.commits": _every("services.clustering_every"),
    "hoodie.clustering.async.max.commits": _every("services.clustering_every"),
    "hoodie.clean.automatic": _switch("services.cleaning", "async", "off"),
    "hoodie.clean.async": _switch("services.cleaning", "async", "inline"),
    "hoodie.clean.async.enabled": _switch("services.cleaning", "async", "inline"),
    "hoodie.archive.automatic": no_equal("services.cleaning archives, too"),
    "hoodie.metadata.enable": lambda sheet, name: (
        sheet.same(name, f"table.hudi.{name}")
        if sheet.is_true(name)
        else sheet.none(name, "the metadata table is what readers find files by: it is kept")
    ),
    HIVE_STYLE: _style,
    "hoodie.datasource.write.partitionpath.urlencode": _style,
    "hoodie.index.type": _index,
    BUCKETS: _buckets,
    "hoodie.bucket.index.hash.field": no_equal("the key's fields are what is hashed"),
    "hoodie.index.bucket.engine": no_equal("the number of buckets is fixed: Hudi's simple engine"),
    "hoodie.storage.layout.*": no_equal("upserts have a bucket index, inserts none"),
    "hoodie.record.merge.mode": no_equal(_MERGING),
    "hoodie.write.record.merge.mode": no_equal(_MERGING),
    "hoodie.datasource.write.payload.class": no_equal(_MERGING),
    "hoodie.compaction.payload.class": no_equal(_MERGING),
    "hoodie.combine.before.insert": no_equal("every record of an insert table is a row"),
    "hoodie.combine.before.upsert": no_equal(_MERGING),
    "hoodie.datasource.write.insert.drop.duplicates": no_equal("every record of an insert table is a row"),
    "hoodie.datasource.write.reconcile.schema": no_equal("docs/schema.md says what becomes of columns"),
    "hoodie.datasource.write.schema.*": no_equal("docs/schema.md says what becomes of columns"),
    "hoodie.avro.schema": no_equal(_COLUMNS),
    "hoodie.write.schema": no_equal(_COLUMNS),
    "hoodie.datasource.write.keygenerator.*": no_equal(
        "the key is table.key's fields, as SIMPLE and COMPLEX spell it"
    ),
    "hoodie.keygen.*": no_equal("of a key generator that is not asked"),
    "hoodie.deltastreamer.keygen.*": no_equal("of a key generator that is not asked"),
    "hoodie.streamer.keygen.*": no_equal("of a key generator that is not asked"),
    "hoodie.database.name": no_equal("hooks.hive_database names a metastore's"),
    "hoodie.base.path": no_equal(
        "an option of the command line says it, or a reference that is not resolved"
    ),
    "hoodie.table.name": no_equal("an option of the command line says it"),
}


def translate_sync(sheet: Sheet, enabled: bool) -> None:
    """A Hive metastore that is kept up to date; of other catalogs none is."""
    uris = first_of(sheet, ("hoodie.datasource.hive_sync.metastore.uris", "hive.metastore.uris"))
    own: Mapping[str, str] = {
        "hoodie.datasource.hive_sync.database": "hooks.hive_database",
        "hoodie.datasource.hive_sync.table": "hooks.hive_table",
    }
    if enabled and not uris:
        sheet.must("hooks.hive", "the metastore's thrift:// address")
    for name in list(sheet.given):
        if name in sheet.said or not (name.startswith(_SYNC) or name == "hive.metastore.uris"):
            continue
        if not enabled:
            sheet.none(name, "no metastore is told: theirs is not enabled")
        elif name == uris:
            sheet.same(name, "hooks.hive")
        elif name in own and re.fullmatch(r"[A-Za-z0-9_]{1,128}", sheet.get(name)):
            sheet.same(name, own[name])
        else:
            sheet.none(name, "Hudi's own tool tells the metastore, by the table's own properties")


def translate_rest(sheet: Sheet) -> None:
    """Whatever else is Hudi's: what the write client obeys is handed on; of the rest it is said why not."""
    sheet.apply(RULES)
    given = {
        name: sheet.get(name) for name in sheet.given if name.startswith("hoodie.") and name not in sheet.said
    }
    mode = str(sheet.settings.get("table.kind", "insert"))
    refused = dict(refused_hudi_properties(given, mode))
    for name in given:
        if name in refused:
            sheet.none(name, refused[name])
        else:
            sheet.same(name, f"table.hudi.{name}")
