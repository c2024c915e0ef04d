"""Which configurations are known, how each is told, and what translates it. Pure.

To add one: a module with `translate`, and its line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lockstep.errors import ConfigError
from lockstep.migrate import hdfs_sink, hudi_sink, iceberg_sink, s3_sink, streamer
from lockstep.migrate.sheet import Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A product whose configuration is read."""

    what: str
    """For people."""
    classes: frozenset[str]
    """Of a connector; empty where it is none."""
    translate: Callable[[Sheet], None]
    twice: str
    """How often theirs may have written a record, and what of that can be checked; a sentence."""


KINDS: Mapping[str, Kind] = {
    "hdfs": Kind(
        what="Confluent's HDFS sink",
        classes=hdfs_sink.CLASSES,
        translate=hdfs_sink.translate,
        twice=(
            "Theirs names each file by its offsets, and goes on behind the last one: with a partitioner that "
            "always gives the same folder each record is in its files once. Two files of one source "
            "partition whose offsets overlap say that it was not so."
        ),
    ),
    "s3": Kind(
        what="Confluent's S3 sink",
        classes=s3_sink.CLASSES,
        translate=s3_sink.translate,
        twice=(
            "Theirs may have written objects beyond the offsets that its group committed, and would write "
            "them again: records from the offset on may be in its objects and in this table. An object whose "
            "name begins at or behind the offset says so; delete it."
        ),
    ),
    "hudi-connect": Kind(
        what="Hudi's Kafka Connect sink",
        classes=hudi_sink.CLASSES,
        translate=hudi_sink.translate,
        twice=(
            "Theirs keeps its offsets in the commit, with the files: no record before them is missing. One "
            "that timed out may have been written all the same, and read again: count rows by key."
        ),
    ),
    "streamer": Kind(
        what="HoodieStreamer",
        classes=frozenset(),
        translate=streamer.translate,
        twice=(
            "Theirs keeps its checkpoint in the commit, with the files: each record up to it is in the table "
            "once, unless somebody has set another checkpoint since."
        ),
    ),
    "iceberg": Kind(
        what="Iceberg's Kafka Connect sink",
        classes=iceberg_sink.CLASSES,
        translate=iceberg_sink.translate,
        twice=(
            "Theirs commits a task's offsets with the message that names its files, and the table later: "
            "what was named and not committed is lost, unless theirs commits once more before it is stopped "
            "for good. That its coordinator's group has read the control topic to its end says that nothing "
            "is left."
        ),
    ),
}


def recognised(given: Mapping[str, str], wanted: str = "") -> str:
    """A name in `KINDS`. Raises `ConfigError` where it is none, saying what was looked for."""
    if wanted:
        return wanted
    connector = given.get("connector.class", "").strip()
    for name, kind in KINDS.items():
        if connector in kind.classes:
            return name
    if connector:
        known = ", ".join(sorted(one for kind in KINDS.values() for one in kind.classes))
        raise ConfigError(f"connector.class is {connector}: that sink is not known here; known are {known}")
    if streamer.looks_like(given):
        return "streamer"
    raise ConfigError(
        "it says neither a connector.class nor a topic of HoodieStreamer's "
        "(hoodie.streamer.source.kafka.topic): name a connector's file, or say with --kind what it is of: "
        f"{', '.join(KINDS)}"
    )
