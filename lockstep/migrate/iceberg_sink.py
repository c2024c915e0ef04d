"""Iceberg's Kafka Connect sink, Apache's and the one before it. Pure.

Source of the names: docs/kafka-connect.md of Apache Iceberg, and IcebergSinkConfig.
"""

from __future__ import annotations

import re

from lockstep.config.units import format_duration
from lockstep.migrate.confluent import INTERVAL_MAX_MS, LIMIT_MS, first_topic, set_interval, table_name
from lockstep.migrate.connect import translate_connect
from lockstep.migrate.hudi_names import fields, location, unknown_location
from lockstep.migrate.partitions import Wanted, set_partitions
from lockstep.migrate.sheet import Rules, Sheet, made, no_equal

TABULAR = "io.tabular.iceberg.connect.IcebergSinkConnector"
CLASSES = frozenset({"org.apache.iceberg.connect.IcebergSinkConnector", TABULAR})
INTERVAL_MS, TIMEOUT_MS = 300_000, 30_000
"""Theirs, where none is said."""
CONTROL_TOPIC, CATALOG = "control-iceberg", "iceberg.catalog."
STORES = ("s3://", "s3a://", "gs://", "abfss://", "hdfs://", "file://", "/")

_OWN_CATALOG = "a table of Hudi's is at its path; a Hive metastore is told where hooks.hive names one"
_NO_BRANCH = "a table of Hudi's has no branches"
_ROUTES = "rows go into one table: a pipeline for each, or a filter where one reads"
_CONTROL = "a control topic and clients of its own: theirs has other messages"
_CREATED = "a table is made where it is missing; table.hudi says with which of Hudi's properties"
_IO = "[storage] says how a store is reached"


def _interval(sheet: Sheet, name: str) -> None:
    set_interval(sheet, name, int(sheet.get(name)))


def _timeout(sheet: Sheet, name: str) -> None:
    interval_ms = int(sheet.get("iceberg.control.commit.interval-ms", str(INTERVAL_MS)))
    timeout_ms = min(max(int(sheet.get(name)), interval_ms, 1_000), INTERVAL_MAX_MS)
    if timeout_ms > LIMIT_MS:
        sheet.put("transaction.write_limit", format_duration(timeout_ms))
    sheet.differs(name, "transaction.write_timeout", format_duration(timeout_ms), (
        "theirs then commits what is there; here all of it is given up, and read again"))  # fmt: skip


def _evolve(sheet: Sheet, name: str) -> None:
    if sheet.settings.get("record.format") in ("avro", "protobuf"):
        sheet.same(name, "record.on_schema_change", "evolve" if sheet.is_true(name) else "ignore")
    else:
        sheet.none(name, "columns follow schemas where a registry's name them: record.on_schema_change")


def _key(sheet: Sheet, name: str) -> None:
    sheet.same(name, "table.key", fields(sheet.get(name)))


def _upsert_mode(sheet: Sheet, name: str) -> None:
    if sheet.is_true(name):
        sheet.same(name, "table.kind", "upsert")
    else:
        sheet.same(name, why="every record is a row")


def _cdc(sheet: Sheet, name: str) -> None:
    sheet.put("table.kind", "upsert")
    if sheet.settings.get("record.envelope") == "debezium":
        why = "a change event says itself what it does: record.envelope reads it, without a field for that"
        sheet.differs(name, "", None, why)
        return
    sheet.must(
        "table.delete_field",
        f"the BOOLEAN field that says a row is deleted; theirs says it in {sheet.get(name)}",
    )
    sheet.differs(
        name, "table.kind", "upsert", "change events of Debezium's are read as they are: record.envelope"
    )


def _transform(part: str) -> str:
    """`hours(ts)` as `hour(ts)`, `bucket(id, 16)` as `bucket(16, id)`."""
    match = re.fullmatch(r"\s*(\w+)\(\s*([\w.]+)\s*(?:,\s*(\d+)\s*)?\)\s*", part)
    if match is None:
        return part.strip()
    how = (
        match[1].lower().removesuffix("s")
        if match[1].lower().removesuffix("s") in _TIMES
        else match[1].lower()
    )
    return f"{how}({match[3]}, {match[2]})" if match[3] else f"{how}({match[2]})"


_TIMES = frozenset({"year", "month", "day", "hour"})


def _split(text: str) -> list[str]:
    """At commas that stand in no brackets."""
    return [one.strip() for one in re.findall(r"[^,(]+(?:\([^)]*\))?", text) if one.strip()]


CATALOG_RULES: Rules = {
    f"{CATALOG}warehouse": lambda sheet, name: sheet.differs(
        name, "", None, "table.path is in it, in a folder of its own"
    ),
    f"{CATALOG}client.region": lambda sheet, name: _of_s3(sheet, name, "storage.region"),
    f"{CATALOG}s3.region": lambda sheet, name: _of_s3(sheet, name, "storage.region"),
    f"{CATALOG}s3.endpoint": lambda sheet, name: _of_s3(sheet, name, "storage.endpoint"),
    f"{CATALOG}s3.path-style-access": lambda sheet, name: _of_s3(sheet, name, "storage.path_style"),
    f"{CATALOG}s3.access-key-id": lambda sheet, name: _keys(
        sheet, name, "storage.access_key", "LAKE_ACCESS_KEY"
    ),
    f"{CATALOG}s3.secret-access-key": lambda sheet, name: _keys(
        sheet, name, "storage.secret_key", "LAKE_SECRET_KEY"
    ),
    f"{CATALOG}s3.session-token": lambda sheet, name: _keys(
        sheet, name, "storage.session_token", "LAKE_SESSION_TOKEN"
    ),
    f"{CATALOG}s3.*": no_equal(_IO),
    f"{CATALOG}*": no_equal(_OWN_CATALOG),
    "iceberg.catalog": no_equal(_OWN_CATALOG),
    "iceberg.hadoop-conf-dir": lambda sheet, name: (
        sheet.same(name, "storage.config_folder", sheet.get(name).rstrip("/"))
        if str(sheet.settings.get("table.path", "")).startswith("hdfs://")
        else sheet.none(name, "means nothing to a table that is not on HDFS")
    ),
    "iceberg.hadoop.*": no_equal(_IO),
}
RULES: Rules = {
    "iceberg.tables.dynamic-enabled": no_equal(_ROUTES),
    "iceberg.tables.dynamic.enabled": no_equal(_ROUTES),
    "iceberg.tables.route-field": no_equal(_ROUTES),
    "iceberg.tables.default-commit-branch": no_equal(_NO_BRANCH),
    "iceberg.tables.auto-create-enabled": no_equal(_CREATED),
    "iceberg.tables.auto-create-props.*": no_equal(_CREATED),
    "iceberg.tables.write-props.*": no_equal("of Iceberg's writer: table.target_file_size is ours"),
    "iceberg.tables.evolve-schema-enabled": _evolve,
    "iceberg.tables.schema-force-optional": no_equal(
        "a column takes nulls unless record.schema says NOT NULL"
    ),
    "iceberg.tables.schema-case-insensitive": no_equal(
        "a field is the column of the same name, told apart by case"
    ),
    "iceberg.tables.replace-null-with-default": no_equal("a field that is null is null"),
    "iceberg.tables.upsert-mode-enabled": _upsert_mode,
    "iceberg.tables.cdc-field": _cdc,
    "iceberg.tables.cdc.field": _cdc,
    "iceberg.control.topic": no_equal(_CONTROL),
    "iceberg.control.group-id": no_equal(_CONTROL),
    "iceberg.control.group-id-prefix": no_equal(_CONTROL),
    "iceberg.control.commit.interval-ms": _interval,
    "iceberg.control.commit.timeout-ms": _timeout,
    "iceberg.control.commit.threads": no_equal("one instant commits all files"),
    "iceberg.control.commit.max-consecutive-failures": made("transaction.max_consecutive_failures", int),
    "iceberg.coordinator.transactional.prefix": no_equal(_CONTROL),
    "iceberg.coordinator-executor-keep-alive-timeout-ms": no_equal("one instant commits all files"),
    "iceberg.connect.group-id": no_equal(
        "the group is named by pipeline.id; --adopt-offsets takes over what theirs committed"
    ),
    "iceberg.kafka.*": no_equal(_CONTROL),
}


def translate(sheet: Sheet) -> None:
    """All of it."""
    translate_connect(sheet)
    name = _table(sheet)
    _place(sheet, name)
    _of_the_table(sheet)
    sheet.apply(RULES)
    sheet.apply(CATALOG_RULES)
    if "iceberg.control.commit.interval-ms" not in sheet.given:
        set_interval(sheet, "iceberg.control.commit.interval-ms", INTERVAL_MS, "their default")
    if sheet.settings.get("table.kind") == "upsert":
        sheet.must("table.key", "the fields of the record key")
    sheet.note("What is in their table stays there, and is not in the new one, which is Hudi's.")
    sheet.close()


def _table(sheet: Sheet) -> str:
    """The name of the one table."""
    tables = fields(sheet.get("iceberg.tables"))
    if len(tables) > 1:
        sheet.note(f"{len(tables)} tables are written: here a pipeline has one. {_ROUTES}.")
    name = table_name((tables[0] if tables else first_topic(sheet) or "events").rpartition(".")[2])
    if "iceberg.tables" in sheet.given:
        if len(tables) == 1:
            sheet.same("iceberg.tables", "table.name", name)
        else:
            sheet.differs("iceberg.tables", "table.name", name, _ROUTES)
    sheet.put("table.name", name)
    return name


def _place(sheet: Sheet, name: str) -> None:
    warehouse = sheet.get(f"{CATALOG}warehouse").rstrip("/")
    place = location(warehouse, sheet.default_fs)
    if place.startswith(STORES) and "${" not in place:
        sheet.put("table.path", f"{place}/lockstep/{name}")
    elif warehouse.startswith(("/", "hdfs:///")):
        sheet.must("table.path", unknown_location(f"{warehouse}/lockstep/{name}"))
    else:
        sheet.must("table.path", "where the table is to be, such as s3a://bucket/lockstep/events")


def _of_the_table(sheet: Sheet) -> None:
    """What is said of the table by its name, or of all by default."""
    tables = fields(sheet.get("iceberg.tables"))
    first = f"iceberg.table.{tables[0]}." if tables else "iceberg.table.?."
    for what, default in (
        ("id-columns", "iceberg.tables.default-id-columns"),
        ("partition-by", "iceberg.tables.default-partition-by"),
    ):
        own = f"{first}{what}"
        name = own if sheet.get(own) else default
        if not sheet.get(name):
            continue
        if what == "id-columns":
            _key(sheet, name)
        else:
            parts = tuple(map(_transform, _split(sheet.get(name))))
            set_partitions(sheet, [name], Wanted(parts=parts))
        if name == own and default in sheet.given:
            sheet.none(default, f"{own} says it")
    for name in list(sheet.names("iceberg.table.")):
        if name not in sheet.said:
            branch = name.endswith(".commit-branch")
            sheet.none(name, _NO_BRANCH if branch else _ROUTES)


def _is_s3(sheet: Sheet) -> bool:
    return str(sheet.settings.get("table.path", "")).startswith("s3a://")


def _of_s3(sheet: Sheet, name: str, setting: str) -> None:
    if not _is_s3(sheet):
        sheet.none(name, "means nothing to a table that is not in S3")
    else:
        sheet.same(name, setting, sheet.is_true(name) if setting.endswith("path_style") else None)


def _keys(sheet: Sheet, name: str, setting: str, variable: str) -> None:
    if not _is_s3(sheet):
        sheet.none(name, "means nothing to a table that is not in S3")
        return
    sheet.put("storage.credentials", "keys")
    sheet.secret(name, setting, variable)
