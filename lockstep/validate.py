"""`lockstep validate`: would a run work? Every check says what it looked at and what to do; starts nothing.

Kafka is asked from here. Spark, the table and an executor's writes are asked by a short Spark job
(`validate_in_job`), which hands its checks back in a file.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from control_topic.creation import Created
from control_topic.errors import ControlTopicError
from control_topic.spelling import some
from control_topic.topic import ControlTopic
from lockstep.brokers.dead_letter_topics import ROOM_BYTES, DeadLetterTopics, compacted, too_small
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.driver.capacity import check_slots
from lockstep.driver.stands import is_ours, named
from lockstep.driver.storage_use import check_shared, check_use, left, seen, tried, used
from lockstep.errors import EXIT_FAILED, EXIT_WELL, ConfigError, Failed, LockstepError
from lockstep.hooks.sinks import catalog_spec
from lockstep.hooks.trial import try_hooks
from lockstep.launch.jars import JarsError, find_java
from participant.records.port import RecordSpec
from participant.source.native import missing
from participant.worker.stages import reads_by
from table.errors import TableError
from table.instants import MissingTable
from table.kinds import table_kind
from table.port import UPSERT, TableSpec
from table.schema import SchemaError
from table.service.source_facts import SourceTopicsError

log = logging.getLogger("lockstep.validate")

BROKER = "broker"
"""The check that a broker which answers passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    verdict: str
    """`ok`, `warning` (works, but know this) or `failed`."""
    detail: str


def ok(name: str, detail: str) -> Check:
    return Check(name=name, verdict="ok", detail=detail)


def check_kafka(config: Config, kafka: Mapping[str, str]) -> Iterator[Check]:
    """Java, the broker, the source topics, the control topic and the dead-letter topics."""
    yield _guarded("java", lambda: f"{find_java()}")
    try:
        checked_kafka(config)
    except ConfigError as error:
        yield Check(name="source.kafka", verdict="failed", detail=str(error))
        return
    source = SourceTopics(kafka, config.source.topics)
    try:
        facts = source.facts()
    except SourceTopicsError as error:
        yield Check(name="source topics", verdict="failed", detail=str(error))
        return
    yield ok(BROKER, f"{config.source.bootstrap_servers} answers; cluster {facts.cluster}")
    for topic in config.source.topics:
        partitions = [p for p in facts.partitions if p.topic == topic]
        yield ok(f"source topic {topic}", f"{len(partitions)} partitions, topic id {facts.topics[topic]}")
    if config.pipeline.workers > len(facts.partitions):
        yield Check(
            name="workers",
            verdict="warning",
            detail=f"pipeline.workers = {config.pipeline.workers}, but there are {len(facts.partitions)} "
            "source partitions: the other workers would have nothing to do",
        )
    yield from _group(config, source)
    yield _control_topic(config, kafka)
    if config.dead_letter_topics:
        yield from _dead_letters(config, kafka)


def _group(config: Config, source: SourceTopics) -> Iterator[Check]:
    """Somebody must coordinate the consumer group, or no worker is ever given anything."""
    name = f"consumer group {config.group_id}"
    try:
        group = source.group(config.group_id)
    except SourceTopicsError as error:
        yield Check(name=name, verdict="failed", detail=str(error))
        return
    guests = [member for member in group.members if not is_ours(member, config.group_id)]
    if guests:
        who = some(sorted({named(member) for member in guests}))
        detail = f"has members that are no workers of this pipeline: {who}. End them: the group is its own"
        yield Check(name=name, verdict="warning", detail=detail)
    else:
        yield ok(name, f"has a coordinator; {len(group.members)} members now")


def _control_topic(config: Config, kafka: Mapping[str, str]) -> Check:
    name = f"control topic {config.control.topic}"
    try:
        topic = ControlTopic(kafka, config.control.topic)
        facts = topic.describe()
        created = topic.create(validate_only=True) if not facts.exists else None
    except ControlTopicError as error:
        return Check(name=name, verdict="failed", detail=str(error))
    if created is not None:
        return _would_make(name, "with one partition", created)
    if facts.partitions != 1:
        return Check(
            name=name,
            verdict="failed",
            detail=f"has {facts.partitions} partitions and must have one, since its order decides: delete it "
            "(the run makes it again, nothing is lost) or name another as control.topic",
        )
    return ok(name, "one partition")


def _dead_letters(config: Config, kafka: Mapping[str, str]) -> Iterator[Check]:
    partitions = config.record.dead_letter_partitions
    topics = DeadLetterTopics(kafka, config.dead_letter_topics, config.source.topics, partitions=partitions)
    try:
        standing, wanted = topics.look(), topics.wanted_bytes()
    except Failed as error:
        yield Check(name="dead-letter topics", verdict="failed", detail=str(error))
        return
    for topic in config.dead_letter_topics:
        name = f"dead-letter topic {topic}"
        found = standing.message_bytes.get(topic, wanted)
        if topic in standing.missing and not partitions:
            detail = "is missing: create it, or set record.dead_letter_partitions; no run starts without it"
            yield Check(name=name, verdict="failed", detail=detail)
        elif topic in standing.missing:
            try:
                created = topics.try_to_make(topic)
            except Failed as error:
                yield Check(name=name, verdict="failed", detail=str(error))
            else:
                yield _would_make(name, f"record.dead_letter_partitions = {partitions}", created)
        elif found < wanted - ROOM_BYTES:
            yield Check(name=name, verdict="warning", detail=too_small(topic, found, wanted))
        elif topic in standing.compacted:
            yield Check(name=name, verdict="warning", detail=compacted(topic))
        else:
            yield ok(name, "is there")


def _would_make(name: str, how: str, created: Created) -> Check:
    """Return the check of a topic that the run creates, as the broker has answered."""
    detail = f"not there yet; the run makes it ({how})"
    if not created.left_out:
        return ok(name, detail)
    without = f", without {', '.join(created.left_out)}, which the broker refuses: {created.reason}"
    return Check(name=name, verdict="warning", detail=detail + without)


def _guarded(name: str, probe: Callable[[], str]) -> Check:
    try:
        return ok(name, probe())
    except (JarsError, LockstepError, TableError) as error:
        return Check(name=name, verdict="failed", detail=str(error))


# --- in the Spark job -------------------------------------------------------------------------------


def validate_in_job(spark: SparkSession, config: Config, report: Path) -> int:
    """The checks that need Spark, written to `report` as JSON."""
    checks = list(_check_spark(spark, config))
    report.write_text(json.dumps([asdict(check) for check in checks]), encoding="utf-8")
    return EXIT_FAILED if any(check.verdict == "failed" for check in checks) else EXIT_WELL


def _check_spark(spark: SparkSession, config: Config) -> Iterator[Check]:
    yield _guarded("spark slots", lambda: check_slots(spark, config.pipeline.workers))
    yield _guarded("executor writes", lambda: _executor_writes(spark, config))
    yield _reader(spark, config)
    yield _decoder(spark, config)
    yield check_table(spark, config)
    if config.hooks.hive:
        yield _guarded("hook hive", lambda: _catalog(spark, config))
    others = table_kind(config.table.format).other_writers(config.table_spec())
    if others.settings:
        yield ok("table writers", ", ".join(f"{name} = {value}" for name, value in others.settings.items()))
    if others.advice:
        yield Check(name="other writers", verdict="warning", detail=others.advice)


def check_table(spark: SparkSession, config: Config) -> Check:
    """The table, or its place, by the driver's JVM."""
    return _guarded("table", lambda: _table(spark, config))


def _table(spark: SparkSession, config: Config) -> str:
    """Refusals of a table that exists, and its file system's clock; one that does not is not made here, but
    whether it could be is asked.
    """
    storage = config.store_settings()
    if storage is not None:
        check_use(config.table.path, storage)  # Hudi would ask for much longer, and say less
    try:
        table_kind(config.table.format).reader(config.table.path, storage)
        is_there = True
    except MissingTable:
        is_there = False
    table = table_kind(config.table.format).committer(spark, config.table_spec(), config.pipeline.id)
    try:
        if not is_there:
            table.reach()  # the driver's JVM, whose connector may find other credentials than Python
            return f"{config.table.path} is not there yet; the run makes it"
        layout = table.open()
        newest = table.newest()
        clocks = table.compare_clocks()
    finally:
        table.close()
    keys = ", ".join(layout.key_fields) or "topic-partition-offset"
    where = f", partitioned by {', '.join(layout.partition_fields)}" if layout.partition_fields else ""
    last = (
        f"; last commit of this pipeline: instant {newest.instant}"
        if newest
        else "; no commit of this pipeline"
    )
    how = ""
    if layout.mode == UPSERT:
        versions = f"the larger {layout.ordering_field}" if layout.ordering_field else "the later record"
        how = f", {config.table.buckets} buckets, of two versions {versions} counts"
    return f"{config.table.path} fits: key {keys}{where}{how}{last}; {clocks}"


def _catalog(spark: SparkSession, config: Config) -> str:
    return table_kind(config.table.format).catalog(spark, catalog_spec(config)).look()


def _reader(spark: SparkSession, config: Config) -> Check:
    """Which reader of the source an executor would use."""
    settings = {name: value for name, value in config.source.kafka.items() if name.startswith("sasl.mech")}
    wanted = config.source.reader
    why_not = spark.sparkContext.parallelize([settings], 1).map(missing).collect()[0]
    if wanted == "plain" or (wanted == "auto" and why_not):
        reason = f": {why_not}" if why_not else ""
        return ok("source reader", f"plain, a Python object per record{reason}")
    if why_not:
        detail = f'source.reader = "native", but {why_not}; install with a C compiler, or write "auto"'
        return Check(name="source reader", verdict="failed", detail=detail)
    return ok("source reader", "native, without a Python object per record")


def _decoder(spark: SparkSession, config: Config) -> Check:
    """With what an executor would read records, if it can."""
    asked = (config.table_spec(), config.record_spec())
    verdict, said = spark.sparkContext.parallelize([asked], 1).map(lambda one: _reads(*one)).collect()[0]
    return Check(name="record decoder", verdict=verdict, detail=said)


def _reads(spec: TableSpec, record: RecordSpec) -> tuple[str, str]:
    """The verdict, and with what, or why not. Runs on an executor."""
    try:
        return "ok", reads_by(spec, record)
    except SchemaError as error:
        return "failed", f"record.schema cannot be read from record.format {record.format}: {error}"


def check_storage(config: Config) -> Check:
    """From this process, which is the driver's machine where the run is started like this."""
    return _guarded("storage", lambda: check_use(config.table.path, config.store_settings()))


def check_hooks(config: Config, kafka: Mapping[str, str]) -> Iterator[Check]:
    """Whoever is to be told of commits: would they hear? No run fails for want of them."""
    for hook in try_hooks(config, kafka):
        yield Check(name=f"hook {hook.name}", verdict=hook.verdict, detail=hook.detail)


def _executor_writes(spark: SparkSession, config: Config) -> str:
    """An executor does the same where the table's partitions are; of a folder, as many as there are workers
    must see what is written here.
    """
    asked = (config.table.path, config.store_settings())
    (done,) = spark.sparkContext.parallelize([asked], 1).map(lambda one: tried(*one)).collect()
    said = used(done, *asked)
    if asked[1] is None:
        with suppress(OSError), left(config.table.path) as where:  # who cannot write here has heard so
            slots = config.pipeline.workers
            looks = spark.sparkContext.parallelize([where] * slots, slots).map(seen).collect()
            check_shared(looks, config.table.path)
    return said
