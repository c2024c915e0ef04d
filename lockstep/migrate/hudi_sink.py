"""Hudi's Kafka Connect sink (RFC-32). Pure.

Source of the names: KafkaConnectConfigs in hudi-kafka-connect, and its demo.
"""

from __future__ import annotations

from lockstep.config.units import format_duration
from lockstep.migrate.confluent import first_topic, set_interval
from lockstep.migrate.connect import translate_connect
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

CLASSES = frozenset(
    {"org.apache.hudi.connect.HoodieSinkConnector", "org.apache.hudi.connect.HudiSinkConnector"}
)
INTERVAL_S, WRITE_TIMEOUT_S = 60, 300
"""Theirs, where none is said."""
CONTROL_TOPIC = "hudi-control-topic"
TYPE = ("hoodie.table.type", "hoodie.datasource.write.table.type")
_CONTROL = "a control topic of its own: theirs has other messages"


def _interval(sheet: Sheet, name: str) -> None:
    set_interval(sheet, name, int(sheet.get(name)) * 1_000)


def _write_timeout(sheet: Sheet, name: str) -> None:
    interval = int(sheet.get("hoodie.kafka.commit.interval.secs", str(INTERVAL_S)))
    timeout_ms = max(int(sheet.get(name)), interval, 1) * 1_000
    text = format_duration(min(timeout_ms, 86_400_000))
    if timeout_ms > 600_000:
        sheet.put("transaction.write_limit", text)
    sheet.same(name, "transaction.write_timeout", text)


def _on_errors(sheet: Sheet, name: str) -> None:
    if sheet.is_true(name):
        sheet.differs(
            name, "record.on_error", "dead_letter", "theirs commits without them; here they are set aside"
        )
    else:
        sheet.same(name, "record.on_error", "fail")


RULES: Rules = {
    "hoodie.kafka.commit.interval.secs": _interval,
    "hoodie.kafka.coordinator.write.timeout.secs": _write_timeout,
    "hoodie.kafka.control.topic": no_equal(_CONTROL),
    "hoodie.kafka.allow.commit.on.errors": _on_errors,
    "hoodie.kafka.compaction.async.enable": no_equal("an insert table has no log files to merge"),
    "hadoop.conf.dir": lambda sheet, name: (
        sheet.same(name, "storage.config_folder", sheet.get(name).rstrip("/"))
        if sheet.get("hoodie.base.path").startswith("hdfs://")
        else sheet.none(name, "means nothing to a table that is not on HDFS")
    ),
    "hadoop.home": no_equal("HDFS is read without Hadoop's own libraries"),
    "hoodie.datasource.write.operation": no_equal(
        "theirs looks for no row, whatever it is told: every record is a row"
    ),
    "dfs.*": no_equal("of Hadoop's client: say it in the folder that storage.config_folder names"),
    "fs.*": no_equal("[storage] says how a store is reached"),
    "hive.*": no_equal("Hudi's own tool tells the metastore, by its own settings"),
}


def translate(sheet: Sheet) -> None:
    """All of it."""
    translate_connect(sheet, string_is_json=True)
    translate_provider(sheet)
    sheet.put("table.kind", "insert")
    kind = next((name for name in TYPE if sheet.get(name)), "")
    merge_on_read = sheet.get(kind).upper() == "MERGE_ON_READ"
    why_not = "an insert table is COPY_ON_WRITE, theirs is MERGE_ON_READ" if merge_on_read else ""
    if is_timed(sheet):
        why_not = TIMED
    for name in TYPE:
        if name in sheet.given and name == kind and merge_on_read:
            sheet.differs(name, "table.kind", "insert", (
                "theirs writes every record as a row as well, into log files that no key finds"))  # fmt: skip
        elif name in sheet.given:
            sheet.same(name, "table.kind", "insert")
    name = sheet.get("hoodie.table.name", first_topic(sheet) or "events")
    set_table(sheet, name, "hoodie.base.path", why_not=why_not)
    if "hoodie.table.name" in sheet.given:
        sheet.same("hoodie.table.name", "table.name", sheet.settings["table.name"])
    set_key(sheet)
    set_table_partitions(sheet, goes_on=not why_not)
    set_ordering(sheet)
    translate_sync(sheet, sheet.is_true("hoodie.meta.sync.enable"))
    sheet.apply(RULES)
    if "hoodie.kafka.allow.commit.on.errors" not in sheet.given:
        why = "theirs commits without records that fail; here a run halts, or sets them aside (dead_letter)"
        sheet.differs("hoodie.kafka.allow.commit.on.errors", "record.on_error", None, why)
    if "hoodie.kafka.commit.interval.secs" not in sheet.given:
        set_interval(sheet, "hoodie.kafka.commit.interval.secs", INTERVAL_S * 1_000, "their default")
    if "hoodie.kafka.coordinator.write.timeout.secs" not in sheet.given:
        sheet.put("transaction.write_timeout", format_duration(WRITE_TIMEOUT_S * 1_000))
    translate_rest(sheet)
    sheet.close()
