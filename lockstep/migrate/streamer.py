"""HoodieStreamer, once DeltaStreamer: its properties file and the options of its command line. Pure.

Source of the names: HoodieStreamer.Config, HoodieStreamerConfig and KafkaSourceConfig of hudi-utilities.
Whatever stands in the properties file and begins with no prefix of Hudi's is its Kafka consumer's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lockstep.migrate.clients import keep_relations, translate_client
from lockstep.migrate.confluent import first_topic, set_interval
from lockstep.migrate.converters import SUBPROPERTIES, set_registry, set_registry_ssl
from lockstep.migrate.hudi_names import (
    TIMED,
    is_timed,
    set_key,
    set_ordering,
    set_table,
    set_table_partitions,
    translate_rest,
    translate_sync,
)
from lockstep.migrate.schemas import translate_provider
from lockstep.migrate.sheet import Rules, Sheet, no_equal

OPERATION = ("--op", "hoodie.datasource.write.operation")
TYPE = ("--table-type", "hoodie.table.type", "hoodie.datasource.write.table.type")
TOPIC = tuple(f"hoodie.{one}.source.kafka.topic" for one in ("streamer", "deltastreamer"))
MAX_EVENTS = tuple(f"hoodie.{one}.kafka.source.maxEvents" for one in ("streamer", "deltastreamer"))
INSERTS = frozenset({"INSERT", "BULK_INSERT"})
FORMATS: Mapping[str, str] = {
    "JsonKafkaSource": "json",
    "AvroKafkaSource": "avro",
    "ProtoKafkaSource": "protobuf",
    "PostgresDebeziumSource": "avro",
    "MysqlDebeziumSource": "avro",
}
"""A source, by its class's own name -> a name in `participant.records.kinds.FORMATS`."""

_NO_SPARK = "of Spark's own scheduling: workers are long-running tasks, and services take free slots"
_NO_BOOTSTRAP = "a table that is there is not rewritten"
_NO_CHECKPOINT = "lockstep offsets --set, or --adopt-offsets, says where to go on"
_NO_RETRIES = "whatever is away is waited out"
_NO_CLASS = "no Java class is loaded"
_TRANSFORMER = (
    "no transformer runs here: record.columns says which fields columns are, "
    "and SQL does the rest where one reads"
)
OPTIONS: Rules = {
    "--props": no_equal("the file itself is --from"),
    "--base-file-format": lambda sheet, name: (
        sheet.same(name, why="base files are Parquet")
        if sheet.get(name).upper() == "PARQUET"
        else sheet.none(name, "base files are Parquet")
    ),
    "--payload-class": no_equal(
        "the later version of a row counts, or the one with the larger table.ordering"
    ),
    "--merge-mode": no_equal("the later version of a row counts, or the one with the larger table.ordering"),
    "--record-merge-mode": no_equal(
        "the later version of a row counts, or the one with the larger table.ordering"
    ),
    "--merge-strategy-id": no_equal(_NO_CLASS),
    "--record-merge-strategy-id": no_equal(_NO_CLASS),
    "--merge-impl-classes": no_equal(_NO_CLASS),
    "--record-merge-custom-implementation-classes": no_equal(_NO_CLASS),
    "--transformer-class": no_equal(_TRANSFORMER),
    "--filter-dupes": no_equal("every record of an insert table is a row; with upserts a key has one"),
    "--enable-hive-sync": lambda sheet, name: _sync(sheet, name),
    "--enable-sync": lambda sheet, name: _sync(sheet, name),
    "--force-empty-sync": no_equal("hooks.hive tells of each commit, not more often than hooks.hive_period"),
    "--sync-tool-classes": no_equal("of catalogs a Hive metastore is told: hooks.hive"),
    "--max-pending-compactions": no_equal("services.compaction_every says when one is planned"),
    "--max-pending-clustering": no_equal("services.clustering_every says when one is planned"),
    "--disable-compaction": lambda sheet, name: (
        sheet.same(name, "services.compaction", "off") if sheet.is_true(name) else sheet.same(name)
    ),
    "--continuous": lambda sheet, name: sheet.same(name, why="lockstep run goes on until it is told to stop"),
    "--min-sync-interval-seconds": lambda sheet, name: (
        set_interval(sheet, name, int(sheet.get(name)) * 1_000)
        if int(sheet.get(name))
        else sheet.differs(name, "transaction.interval", None, "a transaction ends each 10s at the latest")
    ),
    "--spark-master": no_equal("lockstep run --master says it"),
    "--spark-app-name": no_equal("pipeline.id says which run it is"),
    "--enable-hive-support": no_equal("Spark's own catalog is not asked"),
    "--commit-on-errors": lambda sheet, name: (
        sheet.differs(
            name, "record.on_error", "dead_letter", "theirs commits without them; here they are set aside"
        )
        if sheet.is_true(name)
        else sheet.same(name, "record.on_error", "fail")
    ),
    "--delta-sync-scheduling-*": no_equal(_NO_SPARK),
    "--compact-scheduling-*": no_equal(_NO_SPARK),
    "--cluster-scheduling-*": no_equal(_NO_SPARK),
    "--checkpoint": no_equal(_NO_CHECKPOINT),
    "--initial-checkpoint-provider": no_equal(_NO_CHECKPOINT),
    "--ignore-checkpoint": no_equal(_NO_CHECKPOINT),
    "--allow-commit-on-no-checkpoint-change": no_equal(
        "what has no records is no commit, unless offsets move"
    ),
    "--run-bootstrap": no_equal(_NO_BOOTSTRAP),
    "--bootstrap-overwrite": no_equal(_NO_BOOTSTRAP),
    "--bootstrap-index-class": no_equal(_NO_BOOTSTRAP),
    "--retry-on-source-failures": no_equal(_NO_RETRIES),
    "--retry-interval-seconds": no_equal(_NO_RETRIES),
    "--max-retry-count": no_equal(_NO_RETRIES),
    "--retry-last-pending-inline-clustering": no_equal(
        "what is pending of a service is done by who does the service"
    ),
    "-rc": no_equal("what is pending of a service is done by who does the service"),
    "--retry-last-pending-inline-compaction": no_equal(
        "what is pending of a service is done by who does the service"
    ),
    "--post-write-termination-strategy-class": no_equal("lockstep run --until latest ends by itself"),
    "--ingestion-metrics-class": no_equal("metrics are in docs/metrics.md"),
    "--config-hot-update-strategy-class": no_equal("lockstep set changes a run that goes on"),
    "--source-limit": lambda sheet, name: _limit(sheet, name),
    "--help": no_equal("no setting"),
    "-h": no_equal("no setting"),
    "include": no_equal("of that file nothing was read: give its properties, too"),
}

_OFFSETS = 'rows carry _kafka_offset and its like; record.columns names others: name = "offset"'
_SANITIZE = 'record.columns names a column whose field cannot be one: a = "value.`odd.name`"'
_ONE_TABLE = "of HoodieMultiTableStreamer: here a pipeline has a table, and each its own file"
OWN: Mapping[str, str] = {
    "checkpoint.provider.path": _NO_CHECKPOINT,
    "checkpoint.force.skip": _NO_CHECKPOINT,
    "source.kafka.append.offsets": _OFFSETS,
    "source.kafka.checkpoint.type": _NO_CHECKPOINT,
    "source.kafka.value.deserializer.class": "record.format and record.framing say how values are read",
    "source.kafka.value.deserializer.schema": "record.format and record.framing say how values are read",
    "source.kafka.proto.value.deserializer.class": "record.format and record.framing say how values are read",
    "source.kafka.fetch_partition.time.out": "every question to the broker has a deadline of its own",
    "source.kafka.enable.commit.offset": (
        "offsets are committed to the group after each commit, for who looks there"
    ),
    "source.kafka.minPartitions": "pipeline.workers says how many read",
    "source.kafka.offset.skip.buffer.minutes": (
        "what retention has removed halts the run: source.on_data_loss"
    ),
    "source.kafka.spark.sql.consumer.enable": "of Spark's own readers none reads",
    "source.kafka.ignore.prefix.config.list": "of what is handed to a consumer of Java's",
    "source.sanitize.invalid.schema.field.names": _SANITIZE,
    "source.sanitize.invalid.char.mask": _SANITIZE,
    "source.json.skip.invalid.records": "record.on_error says what becomes of a record that does not fit",
    "source.proto.*": "record.message and record.schema_file say which message values are",
    "ingestion.*": _ONE_TABLE,
    "transformer.*": _TRANSFORMER,
    "sample.writes.*": "a file ends by its size as it is written: nothing is estimated",
    "row.throw.explicit.exceptions": "what does not fit is a reject with a reason",
    "schema.make.columns.nullable": "a column takes nulls unless record.schema says NOT NULL",
    "multiwriter.*": "another writer of the table is taken up with: docs/upserts.md",
    "inlineclustering.*": "services.clustering says it",
    "source.input.*": "of sources that are not Kafka",
    "source.dfs.*": "of sources that are not Kafka",
    "keygen.*": "of a key generator that is not asked",
}
"""Of `hoodie.streamer.…` and `hoodie.deltastreamer.…`, without that; why nothing here says it."""


def looks_like(given: Mapping[str, str]) -> bool:
    """Whether these are HoodieStreamer's."""
    return any(name in given for name in (*TOPIC, "--target-base-path")) or any(
        name.startswith(("hoodie.streamer.", "hoodie.deltastreamer.")) for name in given
    )


def translate(sheet: Sheet) -> None:
    """All of it."""
    _topic(sheet)
    _source(sheet)
    _reading(sheet)
    translate_provider(sheet)
    _table(sheet)
    sheet.put("pipeline.id", _identity(sheet))
    sheet.apply(OPTIONS)
    translate_sync(sheet, _syncs(sheet))
    _own(sheet)
    _registry(sheet)
    _client(sheet)
    translate_rest(sheet)
    if "auto.offset.reset" not in sheet.given:
        sheet.differs(
            "auto.offset.reset",
            "source.starting_offsets",
            "latest",
            "their default; where the table has no offset",
        )
    if "--continuous" not in sheet.given:
        sheet.note(
            "Theirs is not continuous: lockstep run --until latest ends when "
            "it has what the topics held, too."
        )
    sheet.must("source.bootstrap_servers", "the brokers")
    sheet.must("source.topics", "the topics to read")
    sheet.close()


def _identity(sheet: Sheet) -> str:
    name = sheet.get("--target-table") or first_topic(sheet) or "events"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip("._-")[:200] or "events"


def _topic(sheet: Sheet) -> None:
    for name in TOPIC:
        if name in sheet.given:
            sheet.same(name, "source.topics", [sheet.get(name)])


def _source(sheet: Sheet) -> None:
    name = "--source-class"
    given = sheet.get(name).rpartition(".")[2]
    if not given:
        sheet.must("record.format", "what values are, which --source-class says (give its options behind --)")
        return
    kind = FORMATS.get(given)
    if kind is None:
        sheet.must("record.format", f"what values are: {given} is no source of Kafka's that is known here")
        sheet.none(name, "records come from Kafka")
        return
    sheet.same(name, "record.format", kind)
    if "Debezium" in given:
        sheet.put("record.envelope", "debezium")
    if kind == "protobuf":
        sheet.must("record.message", "which message values are; without a registry record.framing = none")


def _table(sheet: Sheet) -> None:
    """Kind, key, table partitions, and whether the table goes on."""
    op = next((name for name in OPERATION if sheet.get(name)), "")
    operation = sheet.get(op, "UPSERT").upper()
    type_name = next((name for name in TYPE if sheet.get(name)), "")
    merge_on_read = sheet.get(type_name, "COPY_ON_WRITE").upper() == "MERGE_ON_READ"
    kind = "insert" if operation in INSERTS else "upsert"
    why_not = _why_not(sheet, kind, merge_on_read)
    if operation in INSERTS or operation == "UPSERT":
        sheet.same(op or "--op", "table.kind", kind, "" if op else "their default")
    else:
        sheet.put("table.kind", kind)
        sheet.none(op, "records become rows, or change them: nothing is overwritten as a whole")
    for name in (*OPERATION, *TYPE):
        if name in sheet.given and name not in sheet.said:
            told = "MERGE_ON_READ" if kind == "upsert" else "COPY_ON_WRITE"
            sheet.differs(
                name, "table.kind", kind, f"an {kind} table is {told}"
            ) if name in TYPE else sheet.none(name, f"{op} says it")
    name = "--target-table" if "--target-table" in sheet.given else "hoodie.table.name"
    path = "--target-base-path" if "--target-base-path" in sheet.given else "hoodie.base.path"
    set_table(sheet, sheet.get(name) or first_topic(sheet) or "events", path, why_not=why_not)
    if name in sheet.given:
        sheet.same(name, "table.name", sheet.settings["table.name"])
    set_key(sheet)
    set_table_partitions(sheet, goes_on=not why_not)
    set_ordering(sheet)
    if kind == "upsert":
        sheet.must("table.key", "the fields of the record key")


def _why_not(sheet: Sheet, kind: str, merge_on_read: bool) -> str:
    """Why the table that is there cannot go on; empty where it may."""
    if is_timed(sheet):
        return TIMED
    if kind == "insert":
        return "an insert table is COPY_ON_WRITE, theirs is MERGE_ON_READ" if merge_on_read else ""
    if not merge_on_read:
        return "upserts are in a MERGE_ON_READ table with a bucket index, theirs is COPY_ON_WRITE"
    simple = sheet.get("hoodie.index.bucket.engine", "SIMPLE").upper() == "SIMPLE"
    if sheet.get("hoodie.index.type").upper() != "BUCKET" or not simple:
        return (
            "upserts find their file group by a bucket index with a fixed number of buckets, theirs does not"
        )
    return ""


def _sync(sheet: Sheet, name: str) -> None:
    if sheet.is_true(name):
        sheet.same(name, why="a Hive metastore is told where hooks.hive names one")
    else:
        sheet.same(name, why="no metastore is told")


def _syncs(sheet: Sheet) -> bool:
    return any(
        sheet.is_true(name)
        for name in ("--enable-sync", "--enable-hive-sync", "hoodie.datasource.hive_sync.enable")
    )


def _limit(sheet: Sheet, name: str) -> None:
    records = int(sheet.get(name))
    if records >= 2**62:
        sheet.same(name, "transaction.max_records", 0, "no limit")
    else:
        sheet.same(name, "transaction.max_records", records)


def _own(sheet: Sheet) -> None:
    """What begins with one of their two prefixes."""
    for name in list(sheet.given):
        match = re.fullmatch(r"hoodie\.(?:delta)?streamer\.(.+)", name)
        if match is None or name in sheet.said:
            continue
        bare = match[1]
        pattern = next((one for one in OWN if one.endswith("*") and bare.startswith(one[:-1])), bare)
        if name in MAX_EVENTS:
            sheet.follow(_limit, name)
        elif bare == "source.kafka.enable.failOnDataLoss":
            sheet.same(name, "source.on_data_loss", "fail" if sheet.is_true(name) else "earliest")
        elif pattern in OWN:
            sheet.none(name, OWN[pattern])


def _reading(sheet: Sheet) -> None:
    """Without a word of theirs what retention has removed is gone over; ours halts unless told."""
    if not any(name.endswith("enable.failOnDataLoss") for name in sheet.given):
        sheet.differs("hoodie.streamer.source.kafka.enable.failOnDataLoss", "source.on_data_loss", None,
                      "theirs goes on at the oldest record, as earliest would; here a run halts")  # fmt: skip


def _registry(sheet: Sheet) -> None:
    asked = sheet.settings.get("record.format") in ("avro", "protobuf", "json_schema")
    for name in list(sheet.given):
        bare = name.removeprefix("schema.registry.")
        if name in sheet.said or not (
            bare != name or name.startswith("basic.auth.") or name in SUBPROPERTIES
        ):
            continue
        if name in SUBPROPERTIES:
            sheet.none(name, SUBPROPERTIES[name])
        elif not asked:
            sheet.none(name, "no registry is asked: values name no schema")
        elif bare == "url" and "registry.url" not in sheet.settings:
            sheet.follow(set_registry, name)
        elif bare == "basic.auth.user.info":
            user, _, password = sheet.get(name).partition(":")
            sheet.put("registry.password", sheet.reference(name, password, "REGISTRY_PASSWORD"))
            sheet.differs(
                name, "registry.user", user or None, "the password is a reference: ${env:REGISTRY_PASSWORD}"
            )
        elif bare.startswith("ssl."):
            set_registry_ssl(sheet, name, bare)
        else:
            sheet.none(name, "registry.url, registry.user and registry.password say it")


def _translate_client(sheet: Sheet, name: str) -> None:
    translate_client(sheet, name, name)


def _client(sheet: Sheet) -> None:
    for name in list(sheet.given):
        if name not in sheet.said and not name.startswith(("-", "hoodie.")):
            sheet.follow(_translate_client, name)
    keep_relations(sheet)
