"""Where theirs stands: asked of the broker's groups, of files in a store, of a table's commits. A shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from control_topic.messages import Offsets, SourcePartition
from control_topic.spelling import some
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.config.kafka import checked_kafka
from lockstep.errors import ConfigError, Failed
from lockstep.migrate.adoption import Theirs, hdfs_file, s3_object, sink_offsets, streamer_offsets
from lockstep.migrate.confluent import TOPICS_DIR
from lockstep.migrate.hudi_names import location
from lockstep.migrate.iceberg_sink import CONTROL_TOPIC
from table.errors import TableError
from table.instants import MissingTable
from table.kinds import HUDI, table_kind
from table.service.source_facts import SourceTopicsError
from table.store.hdfs.settings import HdfsSettings
from table.store.location import HDFS, Location, store_at
from table.store.settings import StoreSettings

CHECKPOINTS = ("deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2")
"""HoodieStreamer's, of versions before 1.0 and from it on; of Kafka both hold the same."""
SINK_KEY = "kafka.commit.offsets"
FILES_MAX = 5_000_000
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


def _iceberg(asking: Asking) -> Theirs:
    """The offsets of a task are committed with the message that names its files."""
    theirs = _group(asking)
    topic = asking.given.get("iceberg.control.topic", "").strip() or CONTROL_TOPIC
    coordinator = f"{group_of(asking.given)}-coord"
    try:
        control = SourceTopics(checked_kafka(asking.config), [topic])
        facts = control.facts()
        ends, read = control.end(facts.partitions), control.group_offsets(coordinator, facts.partitions)
    except SourceTopicsError as error:
        return replace(theirs, notes=(f"Of its control topic {topic} nothing could be seen: {error}",))
    behind = sum(end - read.get(one, 0) for one, end in ends.items())
    note = (
        f"Its control topic {topic} has {behind:,} offsets behind what {coordinator} has committed. Those of "
        "its last commit's own messages are always among them; files named by a message that no commit "
        "followed would be missing. Stop it right behind a commit (its interval after the last record), and "
        "compare the count of rows in its table with the offsets above."
    )
    return replace(theirs, notes=(note,))


# --- files --------------------------------------------------------------------------------------------


def _folders(asking: Asking, root: str) -> list[str]:
    """Names of all files below the folders of the pipeline's topics. Raises `Failed`."""
    names: list[str] = []
    try:
        store = store_at(root, setting="their files, at", settings=_reached(asking, root))
        for topic in asking.config.source.topics:
            for _, files in store.walk(topic, leaving_out={"+tmp"}):
                names += files
                if len(names) > FILES_MAX:
                    raise Failed(
                        f"there are more than {FILES_MAX:,} files at {root}: say where to go on yourself"
                    )
    except (TableError, OSError) as error:
        raise Failed(f"what they have written at {root} cannot be looked at: {error}") from error
    return names


def _hdfs(asking: Asking) -> Theirs:
    """Theirs goes on behind the last file, whatever its group has committed."""
    url = (asking.given.get("store.url") or asking.given.get("hdfs.url") or "").strip().rstrip("/")
    root = f"{url}/{asking.given.get('topics.dir', TOPICS_DIR).strip().strip('/')}"
    spans: dict[SourcePartition, list[tuple[int, int]]] = {}
    for name in _folders(asking, root):
        if (found := hdfs_file(name)) is not None:
            spans.setdefault(found[0], []).append(found[1:])
    offsets = {partition: max(end for _, end in files) + 1 for partition, files in spans.items()}
    group = _group(asking)
    notes = []
    twice = [str(partition) for partition, files in sorted(spans.items()) if _overlap(files)]
    if twice:
        told = some(twice, shown_max=SHOWN_MAX)
        notes.append(f"Files of theirs overlap, so records are in more than one of them: {told}.")
    else:
        notes.append("No two files of theirs overlap: no record is in two of them.")
    notes += _beside(offsets, group)
    return Theirs(said_by=f"the files at {root}", offsets=offsets, alive=group.alive, notes=notes)


def _overlap(spans: list[tuple[int, int]]) -> bool:
    ordered = sorted(spans)
    return any(after[0] <= before[1] for before, after in pairwise(ordered))


def _beside(offsets: Offsets, group: Theirs) -> list[str]:
    """Where the group says otherwise than the files."""
    other = [
        f"{one}: {offset:,} by its files, {group.offsets[one]:,} by {group.said_by}"
        for one, offset in sorted(offsets.items())
        if one in group.offsets and group.offsets[one] != offset
    ]
    return [f"Its files are what counts, as for theirs: {some(other, shown_max=SHOWN_MAX)}."] if other else []


def _s3(asking: Asking) -> Theirs:
    """By its group; what it has written beyond is told."""
    theirs = _group(asking)
    bucket, folder = (asking.given.get(name, "").strip() for name in ("s3.bucket.name", "topics.dir"))
    root = f"s3a://{bucket}/{(folder or TOPICS_DIR).strip('/')}"
    delim = asking.given.get("file.delim", "").strip() or "+"
    try:
        names = _folders(asking, root)
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


def _newest_said(asking: Asking, path_names: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, str, str]:
    """(path, instant, value) of their table's newest commit that says one of these. Raises `Failed`."""
    given = next(
        (asking.given[name].strip() for name in path_names if asking.given.get(name, "").strip()), ""
    )
    if not given:
        raise ConfigError(f"theirs does not say where its table is: give {path_names[0]}")
    path = location(given)
    try:
        instant, found = table_kind(HUDI).reader(path, _reached(asking, path)).said(names)
    except MissingTable as error:
        raise Failed(f"there is no table of theirs: {error}") from error
    if not instant:
        raise Failed(f"no commit of their table {path} holds {' or '.join(names)}: nothing can be taken over")
    return path, instant, next(found[name] for name in names if name in found)


def _streamer(asking: Asking) -> Theirs:
    path, instant, value = _newest_said(asking, ("--target-base-path", "hoodie.base.path"), CHECKPOINTS)
    notes = []
    if pending := table_kind(HUDI).reader(path, _reached(asking, path)).pending():
        notes.append(f"{len(pending)} instants are open in their table: see that theirs has ended.")
    return Theirs(said_by=f"commit {instant} of table {path}", offsets=streamer_offsets(value), notes=notes)


def _sink(asking: Asking) -> Theirs:
    topics = [one.strip() for one in asking.given.get("topics", "").split(",") if one.strip()]
    if len(topics) != 1:
        raise ConfigError(
            f"their commits hold the offsets of one topic, and theirs reads {len(topics)}: say one"
        )
    path, instant, value = _newest_said(asking, ("hoodie.base.path",), (SINK_KEY,))
    alive = _group(asking).alive if asking.given.get("name", "").strip() else ""
    return Theirs(
        said_by=f"commit {instant} of table {path}", offsets=sink_offsets(value, topics[0]), alive=alive
    )
