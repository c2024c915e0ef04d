"""Confluent's sink into S3. Pure.

Source of the names: the connector's configuration reference, and S3SinkConnectorConfig of
kafka-connect-storage-cloud.
"""

from __future__ import annotations

from lockstep.config.units import format_size
from lockstep.migrate.confluent import (
    TOPICS_DIR,
    first_topic,
    hive_rules,
    table_name,
    translate_storage,
)
from lockstep.migrate.connect import translate_connect
from lockstep.migrate.sheet import Rules, Sheet, as_it_is, no_equal

CLASSES = frozenset({"io.confluent.connect.s3.S3SinkConnector"})
PART_MIN_BYTES, PART_MAX_BYTES = 5 * 2**20, 2**30
REGION = "us-west-2"
"""Theirs, where none is said."""
_CHAINS = frozenset({"DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider"})
_ROLE = "s3.credentials.provider.sts.role."
_PROXY = "a proxy is the process's: HTTPS_PROXY"
_OBJECTS = "Hudi's files have their own names and content"
_TAGS = "objects have no tags; a bucket's rules by prefix do as well"


def _part_size(sheet: Sheet, name: str) -> None:
    size = int(sheet.get(name))
    within = min(max(size, PART_MIN_BYTES), PART_MAX_BYTES)
    if within == size:
        sheet.same(name, "storage.part_size", format_size(size))
    else:
        sheet.differs(name, "storage.part_size", format_size(within), "from 5MiB to 1GiB")


def _provider(sheet: Sheet, name: str) -> None:
    kind = sheet.get(name).rpartition(".")[2]
    if kind in _CHAINS:
        sheet.same(name, "storage.credentials", "chain")
    elif kind == "AwsAssumeRoleCredentialsProvider":
        sheet.must("storage.role", "the ARN of the role that is assumed")
        sheet.same(name, "storage.credentials", "role")
    else:
        sheet.must(
            "storage.credentials", f"where credentials come from: {kind} is no provider that is known here"
        )
        sheet.none(name, "no Java class is loaded: storage.credentials says it")


def _role(sheet: Sheet, name: str) -> None:
    match name.removeprefix(_ROLE):
        case "arn":
            sheet.same(name, "storage.role")
        case "external.id":
            sheet.secret(name, "storage.external_id", "LAKE_EXTERNAL_ID")
        case _:
            sheet.none(name, "a session's name is made")


def _keys(sheet: Sheet, name: str) -> None:
    sheet.put("storage.credentials", "keys")
    if name == "aws.access.key.id":
        sheet.secret(name, "storage.access_key", "LAKE_ACCESS_KEY")
    else:
        sheet.secret(name, "storage.secret_key", "LAKE_SECRET_KEY")


def _encryption(sheet: Sheet, name: str) -> None:
    value = sheet.get(name)
    if value in ("AES256", "aws:kms", "aws:kms:dsse"):
        if value == "aws:kms:dsse":
            sheet.none(name, "Hadoop's connector does not know it: let the bucket encrypt so by default")
        elif value == "AES256" and sheet.get("s3.sse.customer.key"):
            sheet.none(name, "with a key of the customer's own, which is not taken: let the bucket encrypt")
        else:
            sheet.same(name, "storage.encryption")
    elif not value:
        sheet.same(name, why="as the bucket says")
    else:
        raise ValueError(f"{value} is none of AES256, aws:kms, aws:kms:dsse")


def _kms_key(sheet: Sheet, name: str) -> None:
    if sheet.get("s3.ssea.name").startswith("aws:kms"):
        sheet.same(name, "storage.kms_key")
    else:
        sheet.none(name, "means nothing without s3.ssea.name = aws:kms")


def _path_style(sheet: Sheet, name: str) -> None:
    if sheet.get("store.url"):
        sheet.same(name, "storage.path_style", sheet.is_true(name))
    else:
        sheet.none(name, "AWS itself takes either")


def _null_values(sheet: Sheet, name: str) -> None:
    match sheet.get(name).lower():
        case "fail":
            sheet.same(
                name, why="a record without a value is a reject: record.on_error says what becomes of it"
            )
        case "ignore":
            sheet.differs(name, "record.on_error", "dead_letter", (
                "theirs skips a record without a value; here it is a reject, and set aside"))  # fmt: skip
        case _:
            sheet.none(
                name, "a record without a value is no row of an insert table; with upserts it is a delete"
            )


def _stored(what: str, column: str) -> str:
    return f"{what} are kept where a column takes them: record.columns, {column}"


RULES: Rules = {
    "s3.bucket.name": lambda sheet, name: sheet.differs(
        name, "", None, "table.path is in it, in a folder of its own"
    ),
    "store.url": as_it_is("storage.endpoint"),
    "topics.dir": no_equal("objects of theirs stay where they are; a table has a folder of its own"),
    "s3.region": as_it_is("storage.region"),
    "s3.part.size": _part_size,
    "s3.path.style.access.enabled": _path_style,
    "s3.credentials.provider.class": _provider,
    f"{_ROLE}*": _role,
    "s3.credentials.provider.sts.region": no_equal("a role is assumed at the bucket's region"),
    "s3.credentials.provider.*": no_equal("of a Java class, none of which is loaded"),
    "aws.access.key.id": _keys,
    "aws.secret.access.key": _keys,
    "s3.ssea.name": _encryption,
    "s3.sse.kms.key.id": _kms_key,
    "s3.sse.customer.key": no_equal("keys of the customer's own are not taken: let the bucket encrypt"),
    "s3.sse.key": no_equal("keys of the customer's own are not taken: let the bucket encrypt"),
    "s3.acl.canned": no_equal("objects have no ACL of their own: let the bucket's policy say it"),
    "s3.wan.mode": no_equal("no accelerated endpoint is asked; storage.endpoint may name one"),
    "s3.compression.type": no_equal("Parquet is compressed by itself"),
    "s3.compression.level": no_equal("Parquet is compressed by itself"),
    "s3.part.retries": no_equal("what fails is tried again for as long as an outage may last"),
    "s3.retry.backoff.ms": no_equal("what fails is tried again, with a back-off of its own"),
    "s3.http.send.expect.continue": no_equal("of the Java client's own working"),
    "s3.send.digest": no_equal("sizes are looked at before a commit names an object"),
    "s3.object.tagging": no_equal(_TAGS),
    "s3.object.tagging.key.value.pairs": no_equal(_TAGS),
    "s3.object.behavior.on.tagging.error": no_equal(_TAGS),
    "s3.proxy.url": no_equal(_PROXY),
    "s3.proxy.user": no_equal(_PROXY),
    "s3.proxy.password": no_equal(_PROXY),
    "s3.elastic.buffer.enable": no_equal("memory.per_worker bounds what a worker holds"),
    "s3.elastic.buffer.init.capacity": no_equal("memory.per_worker bounds what a worker holds"),
    "s3.schema.partition.affix.type": no_equal("files of several schemas are in one table"),
    "partitioner.max.open.files": no_equal("memory.per_worker bounds what a worker holds"),
    "rotate.file.on.partition.change": no_equal("a file is of one table partition"),
    "max.write.duration.ms": no_equal("transaction.write_timeout says for how long a worker may be silent"),
    "enable.conditional.writes": no_equal("a commit names its objects: one that is in none is never read"),
    "max.files.scan.limit": no_equal("a commit names its objects: one that is in none is never read"),
    "format.bytearray.extension": no_equal(_OBJECTS),
    "format.bytearray.separator": no_equal(_OBJECTS),
    "json.decimal.format": no_equal("a DECIMAL column is a decimal in Parquet"),
    "behavior.on.null.values": _null_values,
    "report.null.values.to.dlq": no_equal("record.on_error says it of all rejects"),
    "tombstone.encoded.partition": no_equal("a record without a value is no row of an insert table"),
    "store.kafka.keys": no_equal(_stored("keys", 'k = "key"')),
    "keys.format.class": no_equal(_stored("keys", 'k = "key"')),
    "store.kafka.headers": no_equal(_stored("headers", 'h = "headers"')),
    "headers.format.class": no_equal(_stored("headers", 'h = "headers"')),
    **hive_rules(),
}


def translate(sheet: Sheet) -> None:
    """All of it."""
    translate_connect(sheet)
    name = table_name(first_topic(sheet) or sheet.get("name", "events"))
    sheet.put("table.name", name)
    bucket = sheet.get("s3.bucket.name")
    if bucket and "${" not in bucket and "<" not in bucket:
        sheet.put("table.path", f"s3a://{bucket}/lockstep/{name}")
    else:
        sheet.must("table.path", "where the table is to be, such as s3a://bucket/lockstep/events")
    translate_storage(sheet)
    sheet.apply(RULES)
    if sheet.get("store.url") and "s3.path.style.access.enabled" not in sheet.given:
        sheet.put("storage.path_style", True)  # their default
    if "s3.region" not in sheet.given:
        sheet.differs(
            "s3.region", "storage.region", REGION, "their default; empty, ours is what AWS's files say"
        )
    sheet.note(
        f"What they have written, below {sheet.get('topics.dir', TOPICS_DIR)}/, is not in the table: read "
        "both, or read the topics from their beginning."
    )
    sheet.close()
