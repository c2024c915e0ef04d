"""The demo of events: every record a new row, two kills, and three readers that count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from lockstep.config import Config
from lockstep.demo import avro, records
from lockstep.demo.formats import AVRO, JSON
from lockstep.demo.kills import two_kills
from lockstep.demo.lake import Lake
from lockstep.demo.pipeline import PARTITIONS
from lockstep.demo.proof import Counted, count_with_hudi, count_with_spark, verify
from lockstep.demo.records import KEY, PARTITION_BY, SCHEMA, DemoRecord, spread
from lockstep.output import readable_count


class PlainPlay:
    """As `lockstep.demo.play.Play` says. `form`: of `lockstep.demo.formats`."""

    topic = "events"
    per_second = 25_000

    def __init__(self, count: int, form: str = JSON) -> None:
        self._count, self._form = count, form
        self._registry_url, self._schema_id = "", 0
        self.encoded = "JSON" if form == JSON else "Avro"
        what = "events" if form == JSON else "events in Avro"
        self.started_as = "demo" if form == JSON else f"demo --format {form}"
        self.title = f"{readable_count(count)} {what} from Kafka into Hudi, exactly once"
        self.wanted: Mapping[int, int] = spread(count, PARTITIONS)
        self.kills = two_kills()

    def prepare(self, folder: Path, stack: ExitStack, doing: Callable[[str], None]) -> Sequence[str]:
        """Of Avro: a schema registry, which knows the events' schema."""
        if self._form == JSON:
            return ()
        from lockstep.stores.registry import RegistryServer

        doing("a schema registry starts (the first time on a machine it is downloaded)")
        registry = RegistryServer(folder / "registry")
        registry.start()
        stack.callback(registry.stop)
        self._registry_url = registry.url
        self._schema_id = avro.register(registry.url, f"{self.topic}-value")
        return (f"a schema registry answers on {registry.url}; the events' schema is {self._schema_id}",)

    def records(self) -> Iterator[DemoRecord]:
        if self._form == AVRO:
            return avro.records(self._count, PARTITIONS, self._schema_id)
        return records.records(self._count, PARTITIONS)

    def sections(self, path: str) -> str:
        registry = f'\n[registry]\nurl = "{self._registry_url}"\n' if self._registry_url else ""
        return f"""\
[record]
format = "{self._form}"
schema = "{SCHEMA}"
{registry}
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
