"""A new leader: what the simulator's bus and source assume where one takes over, on a broker as well.

One broker is all the cluster there is. It ends, the ends of some logs are cut off as though its successor had
never had them, and it begins again, which is an election with a new leader epoch.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest

from lockstep.brokers.local import Broker
from participant.source.witnesses import Known
from tests.broker_fixture import create_topic
from tests.conformance.bus_sides import BusSide, KafkaSide, SimulatedSide, read
from tests.conformance.source_sides import KafkaSourceSide, Seen, SimulatedSourceSide, SourceSide

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("conformance")]

BATCH_HEAD_BYTES = 12


class Cluster(Protocol):
    def bus(self) -> BusSide: ...

    def source(self) -> SourceSide: ...

    def elect(self, *lacking: BusSide | SourceSide, from_offset: int) -> None:
        """A leader takes over that has nothing from this offset on of the logs named, and all of others."""


class KafkaCluster:
    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self._opened, self._logs = opened, folder / "logs"
        self._broker = opened.enter_context(Broker(folder, heap_mb=384))
        self._topics: dict[int, str] = {}

    def _topic(self) -> str:
        topic = f"topic-{uuid4().hex[:8]}"
        create_topic(self._broker.bootstrap_servers, topic)
        return topic

    def bus(self) -> BusSide:
        topic = self._topic()
        side = KafkaSide(self._broker.bootstrap_servers, topic, self._opened)
        self._topics[id(side)] = topic
        return side

    def source(self) -> SourceSide:
        side = KafkaSourceSide(self._broker.bootstrap_servers, lambda **_: self._topic(), self._opened)
        self._topics[id(side)] = side.partition.topic
        return side

    def elect(self, *lacking: BusSide | SourceSide, from_offset: int) -> None:
        self._broker.stop()
        for side in lacking:
            cut(self._logs / f"{self._topics[id(side)]}-0", from_offset)
        (self._logs / ".kafka_cleanshutdown").unlink(missing_ok=True)
        self._broker.start()


def cut(folder: Path, from_offset: int) -> None:
    """Cut a log's only segment before the batch that holds the offset. Format: Kafka's record batch v2."""
    (segment,) = folder.glob("*.log")
    content, at = segment.read_bytes(), 0
    while at < len(content):
        base, size_bytes = struct.unpack_from(">qi", content, at)
        (last,) = struct.unpack_from(">i", content, at + 23)
        if base + last >= from_offset:
            break
        at += BATCH_HEAD_BYTES + size_bytes
    os.truncate(segment, at)
    for file in folder.iterdir():
        if file.suffix in (".index", ".timeindex", ".snapshot"):
            file.unlink()


class SimulatedCluster:
    def bus(self) -> BusSide:
        return SimulatedSide()

    def source(self) -> SourceSide:
        return SimulatedSourceSide()

    def elect(self, *lacking: BusSide | SourceSide, from_offset: int) -> None:
        for side in lacking:
            if isinstance(side, SimulatedSide):
                side.bus.cut_from(from_offset)
            elif isinstance(side, SimulatedSourceSide):
                side.log.cut_from(side.partition, from_offset)


@pytest.fixture(params=["kafka", "simulated"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as opened:
        yield KafkaCluster(tmp_path, opened) if request.param == "kafka" else SimulatedCluster()


def test_a_new_leader_costs_nothing_and_one_that_lacks_the_end_is_noticed_by_whoever_has_read_it(
    cluster: Cluster,
) -> None:
    """On the control topic the tail is heard again; of the source no record is taken for another."""
    kept_bus, cut_bus = cluster.bus(), cluster.bus()
    kept, short = cluster.source(), cluster.source()
    kept_hearer, cut_hearer = kept_bus.reader(), cut_bus.reader()
    kept_reader, short_reader = kept.read(0), short.read(0)
    for n in range(6):
        for side in (kept_bus, cut_bus):
            side.send(f"t{n}")
        for source in (kept, short):
            source.produce(1)
    assert read(kept_bus, kept_hearer) == read(cut_bus, cut_hearer) == [[f"t{n}" for n in range(6)]]
    assert kept_reader.seen(6) == short_reader.seen(6) == Seen(6, [*range(6)], [])

    cluster.elect(cut_bus, short, from_offset=3)

    assert short_reader.stuck() == "offset 6 is beyond the log's end 3"
    assert short.bounds() == (0, 3)
    assert read(cut_bus, cut_hearer) == [["t0", "t1", "t2"]]
    kept_bus.send("later")
    assert read(kept_bus, kept_hearer) == [["later"]]
    kept.produce(2)
    assert kept_reader.seen(8) == Seen(8, [*range(8)], [])


def test_whoever_has_read_what_the_new_leader_lacks_notices_though_the_log_has_grown_past_it(
    cluster: Cluster,
) -> None:
    grown = cluster.source()
    reader = grown.read(0)
    for _n in range(6):
        grown.produce(1)
    assert reader.seen(6) == Seen(6, [*range(6)], [])
    reader.hold()
    cluster.elect(grown, from_offset=3)
    grown.produce(9)
    reader.go_on()
    assert reader.stuck() == "the log lost its end and goes on to 12 again"
    assert grown.read(6).seen(12) == Seen(12, [*range(6, 12)], [])  # who knows of nothing cannot tell
    assert grown.read(6, known=reader.last_read()).stuck() == "the log lost its end and goes on to 12 again"


def test_whoever_begins_behind_a_record_notices_that_only_what_was_aborted_behind_it_is_gone(
    cluster: Cluster,
) -> None:
    source = cluster.source()
    first = source.read(0)
    for _n in range(4):
        source.produce(1)
    source.abort()
    assert first.seen(6) == Seen(6, [*range(4)], [])
    last = first.last_read()
    assert (last.witness.offset, last.nothing_until) == (3, 6)
    cluster.elect(source, from_offset=4)
    source.produce(4)
    assert source.read(6).seen(8) == Seen(8, [6, 7], [])  # who knows of nothing skips two
    assert source.read(6, known=last).stuck() == "the log lost its end and goes on to 8 again"


def six_read(cluster: Cluster) -> tuple[SourceSide, Known]:
    """A log of six batches, and what somebody knows who has read them."""
    source = cluster.source()
    reader = source.read(0)
    for _n in range(6):
        source.produce(1)
    assert reader.seen(6) == Seen(6, [*range(6)], [])
    return source, reader.last_read()


def test_whoever_begins_behind_a_record_waits_for_no_end_and_takes_none_for_a_proof(cluster: Cluster) -> None:
    """Where the log ends before the record, the broker refuses the offset, whether it grows again or not."""
    source, last = six_read(cluster)
    cluster.elect(source, from_offset=5)
    assert source.read(6, known=last).stuck() == "offset 6 is beyond the log's end 5"
    cluster.elect(source, from_offset=3)
    assert source.read(6, known=last).stuck() == "offset 6 is beyond the log's end 3"


def test_whoever_begins_behind_a_record_that_is_there_or_that_is_gone_reads_on(cluster: Cluster) -> None:
    """A commit names its last record, which retention and compaction may take."""
    source, last = six_read(cluster)
    cluster.elect(from_offset=6)
    source.produce(2)
    assert source.read(6, known=last).seen(8) == Seen(8, [6, 7], [])
    source.abort()
    source.produce(1)
    assert source.read(8, known=last).seen(11) == Seen(11, [10], [])
    source.retain_from(7)
    assert source.read(7, known=last).seen(11) == Seen(11, [7, 10], [])
