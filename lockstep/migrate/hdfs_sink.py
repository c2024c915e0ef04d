"""Confluent's sink into HDFS, of either version. Pure.

Source of the names: the configuration reference of the HDFS 3 sink, and HdfsSinkConnectorConfig of
kafka-connect-hdfs.
"""

from __future__ import annotations

import re

from lockstep.migrate.confluent import (
    TOPICS_DIR,
    first_topic,
    hive_rules,
    table_name,
    translate_storage,
)
from lockstep.migrate.connect import translate_connect
from lockstep.migrate.sheet import Rule, Rules, Sheet, no_equal

CLASSES = frozenset(
    {"io.confluent.connect.hdfs3.Hdfs3SinkConnector", "io.confluent.connect.hdfs.HdfsSinkConnector"}
)
_KERBEROS = "of a cluster with Kerberos nothing is read or written yet: README, limits known today"


def _kerberos(sheet: Sheet, name: str) -> None:
    if not sheet.is_true(name):
        sheet.same(name, why="no Kerberos")
        return
    sheet.note(f"Their cluster wants Kerberos: {_KERBEROS}. This pipeline cannot write there.")
    sheet.none(name, _KERBEROS)


def _url(name: str) -> Rule:
    def rule(sheet: Sheet, _: str) -> None:
        sheet.differs(name, "", None, "table.path is below it, in a folder of its own")

    return rule


RULES: Rules = {
    "store.url": _url("store.url"),
    "hdfs.url": _url("hdfs.url"),
    "topics.dir": no_equal("files of theirs stay where they are; a table has a folder of its own"),
    "logs.dir": no_equal("there is no log of what is to be written: the table's timeline is all"),
    "topic.capture.groups.regex": no_equal("rows of all topics go into one table"),
    "hadoop.home": no_equal("HDFS is read without Hadoop's own libraries"),
    "hdfs.authentication.kerberos": _kerberos,
    "hdfs.namenode.principal": no_equal(_KERBEROS),
    "connect.hdfs.principal": no_equal(_KERBEROS),
    "connect.hdfs.keytab": no_equal(_KERBEROS),
    "kerberos.ticket.renew.period.ms": no_equal(_KERBEROS),
    "kerberos.file.cache.ttl.ms": no_equal(_KERBEROS),
    "hadoop.conf.dir": lambda sheet, name: _folder(sheet, name),
    **hive_rules(),
}


def _folder(sheet: Sheet, name: str) -> None:
    if not sheet.get(name):
        sheet.same(name, why="HADOOP_CONF_DIR says it")
    elif _url_of(sheet).startswith("hdfs://"):
        sheet.same(
            name, "storage.config_folder", sheet.get(name).rstrip("/"), "the same on driver and workers"
        )
    else:
        sheet.none(name, "means nothing to a table that is not on HDFS")


def _url_of(sheet: Sheet) -> str:
    url = sheet.get("store.url") or sheet.get("hdfs.url")
    return f"hdfs://{url}" if re.fullmatch(r"[A-Za-z0-9.-]+(:\d+)?", url) else url


def translate(sheet: Sheet) -> None:
    """All of it."""
    translate_connect(sheet)
    name = table_name(first_topic(sheet) or sheet.get("name", "events"))
    sheet.put("table.name", name)
    url = _url_of(sheet).rstrip("/")
    if url.startswith("hdfs://") and "${" not in url:
        sheet.put("table.path", f"{url}/lockstep/{name}")
    else:
        sheet.must("table.path", "where the table is to be")
    translate_storage(sheet)
    sheet.apply(RULES)
    sheet.note(
        f"What they have written, below {sheet.get('topics.dir', TOPICS_DIR)}/, is not in the table: read "
        "both, or read the topics from their beginning."
    )
    sheet.close()
