"""The source topics: what the simulator's log and its reading assume, on Kafka as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from table.service.source_facts import MissingTopic
from tests.conformance.source_sides import KafkaSourceSide, Seen, SimulatedSourceSide, SourceSide

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("conformance")]


@pytest.fixture(params=["kafka", "simulated"])
def source(request: pytest.FixtureRequest) -> Iterator[SourceSide]:
    with ExitStack() as opened:
        if request.param == "kafka":
            servers = request.getfixturevalue("broker").bootstrap_servers
            yield KafkaSourceSide(servers, request.getfixturevalue("make_topic"), opened)
        else:
            yield SimulatedSourceSide()


def test_the_bounds_follow_what_is_produced_and_what_retention_takes(source: SourceSide) -> None:
    assert source.bounds() == (0, 0)
    source.produce(10)
    assert source.bounds() == (0, 10)
    source.retain_from(4)
    assert source.bounds() == (4, 10)
    source.retain_from(10)
    assert source.bounds() == (10, 10)


def test_a_partition_that_does_not_exist_is_missing_and_one_that_is_added_begins_at_0(
    source: SourceSide,
) -> None:
    with pytest.raises(MissingTopic):
        source.bounds(1)
    source.add_partition()
    assert source.bounds(1) == (0, 0)
    assert [partition.number for partition in source.facts().partitions] == [0, 1]


def test_a_topic_made_anew_has_another_id_in_the_same_cluster_and_one_that_is_gone_is_missing(
    source: SourceSide,
) -> None:
    topic = source.partition.topic
    before = source.facts()
    assert source.facts() == before
    source.produce(3)
    source.recreate()
    after = source.facts()
    assert after.cluster == before.cluster
    assert after.topics[topic] != before.topics[topic]
    assert source.bounds() == (0, 0)
    source.delete()
    for ask in (source.facts, source.bounds):
        with pytest.raises(MissingTopic):
            ask()


def test_what_was_aborted_and_its_marker_are_offsets_without_records(source: SourceSide) -> None:
    source.produce(2)
    source.abort()
    source.produce(1)
    source.abort()
    assert source.bounds() == (0, 7)
    assert source.read(0).seen(7) == Seen(7, [0, 1, 4], [])


@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_holds_back_all_that_follows_until_it_ends(
    source: SourceSide, commit: bool
) -> None:
    source.produce(2)
    source.begin()
    source.produce(3)
    assert source.bounds() == (0, 2)
    assert source.written() == 6, "which is to come"
    reader = source.read(0)
    assert reader.seen(2) == Seen(2, [0, 1], [])
    source.finish(commit=commit)
    assert source.bounds() == (0, 7)
    assert reader.seen(7) == Seen(7, [0, 1, *([2] if commit else []), 3, 4, 5], [])


def test_compaction_takes_records_from_head_and_middle_and_moves_neither_bound(source: SourceSide) -> None:
    source.produce_keys("abacab")
    assert source.bounds() == (0, 7)
    assert source.read(0).seen(7) == Seen(7, [3, 4, 5, 6], [])
    assert source.read(2).seen(7) == Seen(7, [3, 4, 5, 6], [])
    assert source.read(5).seen(7) == Seen(7, [5, 6], [])


def test_reading_below_the_logs_start_is_refused_or_gives_the_range_up(source: SourceSide) -> None:
    source.produce(10)
    source.retain_from(6)
    assert source.read(2).stuck() == "retention removed the offsets from 2 to 5"
    assert source.read(2, on_data_loss="earliest").seen(10) == Seen(10, [6, 7, 8, 9], [(2, 6)])
    assert source.read(6).seen(10) == Seen(10, [6, 7, 8, 9], [])


def test_retention_of_what_was_read_already_is_no_loss(source: SourceSide) -> None:
    source.produce(3)
    reader = source.read(0, on_data_loss="earliest")
    assert reader.seen(3) == Seen(3, [0, 1, 2], [])
    source.retain_from(2)
    source.produce(2)
    assert reader.seen(5) == Seen(5, [0, 1, 2, 3, 4], [])


def test_reading_from_the_end_waits_and_from_beyond_it_is_refused(source: SourceSide) -> None:
    source.produce(3)
    reader = source.read(3)
    assert source.read(4).stuck() == "offset 4 is beyond the log's end 3"
    source.produce(2)
    assert reader.seen(5) == Seen(5, [3, 4], [])


def test_a_reader_goes_on_in_a_topic_made_anew_that_has_grown_past_it(source: SourceSide) -> None:
    """Reading alone does not notice: the topic's id has to be compared."""
    source.produce(3)
    source.recreate()
    source.produce(8)
    assert source.read(3).seen(8) == Seen(8, [3, 4, 5, 6, 7], [])


def test_a_reader_of_a_topic_made_anew_that_is_shorter_is_refused(source: SourceSide) -> None:
    source.produce(9)
    reader = source.read(0)
    assert reader.seen(9).next == 9
    reader.hold()
    source.recreate()
    source.produce(2)
    reader.go_on()
    assert reader.stuck() == "offset 9 is beyond the log's end 2"
