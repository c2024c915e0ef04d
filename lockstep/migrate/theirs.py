"""Where theirs stands: asked of the broker's groups, of files in a store, of a table's commits. A shell."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from control_topic.messages import Offsets, SourcePartition
from control_topic.spelling import some
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.errors import ConfigError, Failed
from lockstep.migrate.adoption import Theirs, hdfs_file, s3_object, sink_offsets, streamer_offsets
from lockstep.migrate.confluent import TOPICS_DIR
from lockstep.migrate.default_file_system import default_file_system
from lockstep.migrate.hudi_names import location, unknown_location
from lockstep.migrate.iceberg_sink import CONTROL_TOPIC, TABULAR
from table.errors import TableError
from table.instants import MissingTable
from table.kinds import HUDI, table_kind
from table.port import TableReader
from table.service.source_facts import SourceTopicsError
from table.store.hdfs.settings import HdfsSettings
from table.store.location import HDFS, Location, store_at
from table.store.port import Store
from table.store.settings import StoreSettings

CHECKPOINTS = ("deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2")
"""HoodieStreamer's, of versions before 1.0 and from it on; of Kafka both hold the same."""
RESETS = ("deltastreamer.checkpoint.reset_key", "streamer.checkpoint.reset.key.v2")
"""The value of `--checkpoint` that the commit's run was started with: the same value is followed once."""
HDFS_3 = "io.confluent.connect.hdfs3.Hdfs3SinkConnector"
PARQUET, PARQUET_BYTES_MIN = ".parquet", 8
"""Confluent's HDFS sink deletes a smaller Parquet file as it looks for its offsets, and does not count it."""
SINK_KEY = "kafka.commit.offsets"
FILES_MAX = 5_000_000
TEMPORARY = frozenset({"+tmp"})
SHOWN_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Their configuration, ours, and the broker."""

    given: Mapping[str, str]
    config: Config
    source: SourceTopics


def ask(kind: str, asking: Asking) -> Theirs:
    """Raises `Failed`, `ConfigError`, and what the broker, a store or a table raise."""
    match kind:
        case "hdfs":
            return _hdfs(asking)
        case "s3":
            return _s3(asking)
        case "iceberg":
            return _iceberg(asking)
        case "hudi-connect":
            return _sink(asking)
        case _:
            return _streamer(asking)


def _reached(asking: Asking, place: str) -> StoreSettings | None:
    """How a place of theirs is reached: as our table is, where both are in the same kind of store."""
    scheme = Location.parse(place, setting="their place, at").scheme
    if scheme == Location.parse(asking.config.table.path).scheme:
        return asking.config.store_settings()
    if scheme == HDFS:
        return HdfsSettings(config_folder=asking.given.get("hadoop.conf.dir", "").strip())
    return None


# --- groups -------------------------------------------------------------------------------------------


def group_of(given: Mapping[str, str]) -> str:
    """Connect's consumer group of a sink: named by its connector, unless the connector says otherwise."""
    own = (
        given.get("consumer.override.group.id", "").strip()
        or given.get("iceberg.connect.group-id", "").strip()
    )
    name = given.get("name", "").strip()
    if not own and not name:
        raise ConfigError(
            "theirs has no name, by which Connect names its group: say name in the connector's file"
        )
    return own or f"connect-{name}"


def _group(asking: Asking) -> Theirs:
    group = group_of(asking.given)
    members = asking.source.group_members(group)
    alive = f"{len(members)} consumers are in {group}" if members else ""
    return Theirs(said_by=f"consumer group {group}", offsets=asking.source.group_offsets(group), alive=alive)


def control_group_of(given: Mapping[str, str]) -> str:
    """Return the group in which Tabular's sink keeps its offsets, with its control topic's transactions.

    Source: `IcebergSinkConfig.controlGroupId` of io.tabular.iceberg.connect.
    """
    return given.get("iceberg.control.group-id", "").strip() or f"cg-control-{given.get('name', '').strip()}"


def _iceberg(asking: Asking) -> Theirs:
    """Return the offsets that a task commits together with the message that names its files.

    Apache's sink keeps them in Connect's group. Tabular's keeps them in its control group and, by a second
    transaction, in Connect's, and starts at the control group's where that has one (`CommitterImpl`).
    """
    theirs = connect = _group(asking)
    coordinator = f"{group_of(asking.given)}-coord"
    if asking.given.get("connector.class", "").strip() == TABULAR:
        control = control_group_of(asking.given)
        coordinator = f"{control}-coord"
        own = asking.source.group_offsets(control)
        if own:
            only = [one for one in sorted(connect.offsets) if one not in own]
            beside = f", and {connect.said_by} where that has none" if only else ""
            theirs = replace(
                connect,
                said_by=f"consumer group {control}{beside}",
                offsets={**connect.offsets, **own},
                notes=_differences(own, control, connect),
            )
    return replace(theirs, notes=(*theirs.notes, _control_topic_note(asking, coordinator)))


def _control_topic_note(asking: Asking, coordinator: str) -> str:
    topic = asking.given.get("iceberg.control.topic", "").strip() or CONTROL_TOPIC
    try:
        control = SourceTopics(checked_kafka(asking.config), [topic])
        facts = control.facts()
        ends, read = control.end(facts.partitions), control.group_offsets(coordinator, facts.partitions)
    except SourceTopicsError as error:
        return f"Of its control topic {topic} nothing could be seen: {error}"
    behind = sum(end - read.get(one, 0) for one, end in ends.items())
    return (
        f"Its control topic {topic} has {behind:,} offsets behind what {coordinator} has committed. Those of "
        "its last commit's own messages are always among them; files named by a message that no commit "
        "followed would be missing. Stop it right behind a commit (its interval after the last record), and "
        "compare the count of rows in its table with the offsets above."
    )


# --- files --------------------------------------------------------------------------------------------


def _files(asking: Asking, root: str, topic: str) -> list[str]:
    """Return the names of the committed files below a topic's folder. Raises `Failed`."""
    names: list[str] = []
    try:
        store = store_at(root, setting="their files, at", settings=_reached(asking, root))
        found = [(folder, name) for folder, files in _walked(store, topic, root) for name in files]
        if any(PARQUET in name for _, name in found):
            whole = {
                (one.folder, one.name)
                for one in store.sizes(topic, leaving_out=TEMPORARY)
                if one.size_bytes >= PARQUET_BYTES_MIN
            }
            found = [one for one in found if PARQUET not in one[1] or one in whole]
        names += [name for _, name in found]
    except (TableError, OSError) as error:
        raise Failed(f"what they have written at {root} cannot be looked at: {error}") from error
    return names


def _walked(store: Store, topic: str, root: str) -> Iterator[tuple[str, list[str]]]:
    count = 0
    for folder, files in store.walk(topic, leaving_out=TEMPORARY):
        count += len(files)
        if count > FILES_MAX:
            raise Failed(f"there are more than {FILES_MAX:,} files at {root}: say where to go on yourself")
        yield folder, files


def _roots(asking: Asking, address: str, folder: str) -> Iterator[tuple[str, str]]:
    """Yield each topic with the place of its folder: `topics.dir` may name the topic."""
    for topic in asking.config.source.topics:
        yield topic, f"{address}/{folder.replace('${topic}', topic)}"


def _hdfs(asking: Asking) -> Theirs:
    """Return the offsets behind the last file of each source partition, else those of the group.

    Source: `TopicPartitionWriter.readOffset` and `HdfsSinkTask` of kafka-connect-hdfs: the greatest end
    offset in the files' names; without a file Connect's group, then `auto.offset.reset`.
    """
    address = (asking.given.get("store.url") or asking.given.get("hdfs.url") or "").strip().rstrip("/")
    folder = (asking.given.get("topics.dir", "").strip() or TOPICS_DIR).strip("/")
    spans: dict[SourcePartition, list[tuple[int, int]]] = {}
    roots = dict(_roots(asking, address, folder))
    for topic, root in roots.items():
        for name in _files(asking, root, topic):
            if (found := hdfs_file(name)) is not None and found[0].topic == topic:
                spans.setdefault(found[0], []).append(found[1:])
    files = {partition: max(end for _, end in ended) + 1 for partition, ended in spans.items()}
    group = _group(asking)
    notes = []
    twice = [str(partition) for partition, ended in sorted(spans.items()) if _overlap(ended)]
    if twice:
        told = some(twice, shown_max=SHOWN_MAX)
        notes.append(f"Files of theirs overlap, so records are in more than one of them: {told}.")
    else:
        notes.append("No two files of theirs overlap: no record is in two of them.")
    notes += _differences(files, "its files", group)
    without = [one for one in sorted(group.offsets) if one not in files and one.topic in roots]
    said_by = f"the files at {', '.join(dict.fromkeys(roots.values()))}"
    if without:
        said_by = f"{said_by}, and {group.said_by} where there is no file"
        notes.append(_without_file(asking, without, group))
    return Theirs(said_by=said_by, offsets={**group.offsets, **files}, alive=group.alive, notes=notes)


def _without_file(asking: Asking, without: Sequence[SourcePartition], group: Theirs) -> str:
    told = some([f"{one} at {group.offsets[one]:,}" for one in without], shown_max=SHOWN_MAX)
    note = f"These source partitions have no file any more, and go on where {group.said_by} stands: {told}."
    if asking.given.get("connector.class", "").strip() == HDFS_3:
        return note
    return (
        f"{note} The sink does so from version 5.0 on; an older one starts them at offset 0, and its group "
        "may be ahead of its files: then set them with lockstep offsets --set."
    )


def _overlap(spans: list[tuple[int, int]]) -> bool:
    ordered = sorted(spans)
    return any(after[0] <= before[1] for before, after in pairwise(ordered))


def _differences(counted: Offsets, by: str, group: Theirs) -> list[str]:
    """Return a sentence where a group has other offsets than the source that counts."""
    other = [
        f"{one}: {offset:,} by {by}, {group.offsets[one]:,} by {group.said_by}"
        for one, offset in sorted(counted.items())
        if one in group.offsets and group.offsets[one] != offset
    ]
    if not other:
        return []
    told = some(other, shown_max=SHOWN_MAX)
    return [f"Two sources differ, and {by} counts, as for theirs: {told}."]


def _s3(asking: Asking) -> Theirs:
    """By its group; what it has written beyond is told."""
    theirs = _group(asking)
    bucket = asking.given.get("s3.bucket.name", "").strip()
    folder = (asking.given.get("topics.dir", "").strip() or TOPICS_DIR).strip("/")
    delim = asking.given.get("file.delim", "").strip() or "+"
    roots = dict(_roots(asking, f"s3a://{bucket}", folder))
    root = ", ".join(dict.fromkeys(roots.values()))
    try:
        names = [name for topic, place in roots.items() for name in _files(asking, place, topic)]
    except Failed as error:
        return replace(
            theirs, notes=(f"Whether it has written objects beyond these offsets is not known: {error}.",)
        )
    beyond = sorted(
        name
        for name in names
        if (found := s3_object(name, delim)) is not None and found[1] >= theirs.offsets.get(found[0], 0)
    )
    if not beyond:
        return replace(
            theirs, notes=(f"No object at {root} begins at or behind these offsets: none is doubled.",)
        )
    told = some(beyond, shown_max=SHOWN_MAX)
    note = f"These objects hold records that this pipeline will read as well: {told}. Delete them at {root}."
    return replace(theirs, notes=(note,))


# --- commits ------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """Property of a table's newest commit that has it."""

    reader: TableReader
    path: str
    instant: str
    value: str


def _newest_said(asking: Asking, path_names: tuple[str, ...], names: tuple[str, ...]) -> Said:
    """Return the first of the properties `names` in the newest commit of their table. Raises `Failed`."""
    given = next(
        (asking.given[name].strip() for name in path_names if asking.given.get(name, "").strip()), ""
    )
    if not given:
        raise ConfigError(f"theirs does not say where its table is: give {path_names[0]}")
    path = location(given, default_file_system(asking.given, os.environ))
    if not path:
        raise ConfigError(f"theirs does not say {unknown_location(given)}")
    try:
        reader = table_kind(HUDI).reader(path, _reached(asking, path))
        instant, found = reader.said(names)
    except MissingTable as error:
        raise Failed(f"there is no table of theirs: {error}") from error
    if not instant:
        raise Failed(f"no commit of their table {path} holds {' or '.join(names)}: nothing can be taken over")
    value = next(found[name] for name in names if name in found)
    return Said(reader=reader, path=path, instant=instant, value=value)


def _streamer(asking: Asking) -> Theirs:
    """Return the offsets of the newest commit's checkpoint, or of `--checkpoint` if no run has followed it.

    Source: `StreamerCheckpointUtils.resolveCheckpointBetweenConfigAndPrevCommit` of Hudi 1.2: an option that
    differs from the newest commit's reset key goes before the commit's checkpoint.
    """
    reader, path, instant, value = _newest_said(
        asking, ("--target-base-path", "hoodie.base.path"), CHECKPOINTS
    )
    notes = []
    if pending := reader.pending():
        notes.append(f"{len(pending)} instants are open in their table: see that theirs has ended.")
    said_by, wanted = f"commit {instant} of table {path}", asking.given.get("--checkpoint", "").strip()
    at, resets = reader.said(RESETS)
    if wanted and not (at == instant and wanted in resets.values()):
        notes.append(
            f"Two sources differ: the newest commit says {value}, and --checkpoint, which no run has "
            "followed yet, goes before it, as for theirs. Leave the option out if it is an old one."
        )
        said_by, value = f"--checkpoint, which goes before {said_by}", wanted
    return Theirs(said_by=said_by, offsets=streamer_offsets(value), notes=notes)


def _sink(asking: Asking) -> Theirs:
    topics = [one.strip() for one in asking.given.get("topics", "").split(",") if one.strip()]
    if len(topics) != 1:
        raise ConfigError(
            f"their commits hold the offsets of one topic, and theirs reads {len(topics)}: say one"
        )
    _, path, instant, value = _newest_said(asking, ("hoodie.base.path",), (SINK_KEY,))
    alive = _group(asking).alive if asking.given.get("name", "").strip() else ""
    return Theirs(
        said_by=f"commit {instant} of table {path}",
        offsets=sink_offsets(value, topics[0]),
        alive=alive,
        begins_at_earliest=True,
    )
