"""The demo of events: every record a new row, two kills, and three readers that count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lockstep.config import Config
from lockstep.demo import records
from lockstep.demo.kills import two_kills
from lockstep.demo.lake import Lake
from lockstep.demo.pipeline import PARTITIONS
from lockstep.demo.proof import Counted, count_with_hudi, count_with_spark, verify
from lockstep.demo.records import KEY, PARTITION_BY, SCHEMA, DemoRecord, spread
from lockstep.output import readable_count


class PlainPlay:
    """As `lockstep.demo.play.Play` says."""

    started_as = "demo"
    topic = "events"
    per_second = 25_000

    def __init__(self, count: int) -> None:
        self._count = count
        self.title = f"{readable_count(count)} events from Kafka into Hudi, exactly once"
        self.wanted: Mapping[int, int] = spread(count, PARTITIONS)
        self.kills = two_kills()

    def records(self) -> Iterator[DemoRecord]:
        return records.records(self._count, PARTITIONS)

    def sections(self, path: str) -> str:
        return f"""\
[record]
schema = "{SCHEMA}"

[table]
path = "{path}"
name = "{self.topic}"
key = ["{KEY[0]}"]
partition_by = "{PARTITION_BY}"
"""

    def look(self, lake: Lake, sent: int) -> Sequence[str]:
        return ()

    def awaited(self) -> str:
        return ""

    def prove(self, config: Config, config_path: Path, doing: Callable[[str], None]) -> Counted:
        folder = config_path.parent
        doing("Spark SQL counts the table")
        spark, files = count_with_spark(config, config_path, folder)
        doing("the hudi reader counts it too, without a JVM")
        hudi = count_with_hudi(config)
        doing("lockstep verify compares table, timeline and topic, offset by offset")
        verdict = verify(config_path, folder)
        return Counted(records=self._count, counts=(spark, hudi), files=files, verdict=verdict)
