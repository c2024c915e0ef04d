"""How old the oldest record is that is not committed: as far as samples tell, and no further."""

from __future__ import annotations

from control_topic.messages import SourcePartition
from lockstep.watch.lag import PARTITIONS_MAX, SAMPLES_MAX, EndSamples

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)


def sampled(*ends: tuple[int, int], partition: SourcePartition = P0) -> EndSamples:
    samples = EndSamples()
    for at_ms, end in ends:
        samples.add(at_ms, {partition: end})
    return samples


def test_a_record_was_written_when_the_end_passed_it() -> None:
    samples = sampled((1_000, 0), (2_000, 100), (3_000, 100), (4_000, 300))
    assert samples.written_ms(P0, 0) == 1_000
    assert samples.written_ms(P0, 50) == 1_500
    assert samples.written_ms(P0, 100) == 3_000, "nothing was written between the second sample and the third"
    assert samples.written_ms(P0, 299) == 3_995


def test_what_was_there_before_the_first_sample_is_of_unknown_age() -> None:
    samples = sampled((1_000, 50), (2_000, 100))
    assert samples.written_ms(P0, 49) is None
    assert samples.written_ms(P0, 50) == 1_000
    assert sampled((1_000, 50)).written_ms(P0, 10) is None


def test_what_is_not_there_yet_and_who_is_not_known_have_no_age() -> None:
    samples = sampled((1_000, 50), (2_000, 100))
    assert samples.written_ms(P0, 100) is None
    assert samples.written_ms(P1, 0) is None
    assert EndSamples().written_ms(P0, 0) is None


def test_a_sample_of_an_earlier_time_may_come_later() -> None:
    samples = sampled((10_000, 500), (11_000, 600))
    assert samples.written_ms(P0, 250) is None
    samples.add(5_000, {P0: 0})
    assert samples.written_ms(P0, 250) == 7_500


def test_source_partitions_may_come_and_each_has_its_own_samples() -> None:
    samples = sampled((1_000, 0), (2_000, 100))
    samples.add(3_000, {P0: 100, P1: 40})
    samples.add(4_000, {P1: 60})
    assert samples.written_ms(P1, 50) == 3_500
    assert samples.written_ms(P1, 10) is None
    assert samples.written_ms(P0, 10) == 1_100


def test_a_log_that_was_made_again_begins_anew() -> None:
    samples = sampled((1_000, 0), (2_000, 1_000), (3_000, 5), (4_000, 10))
    assert samples.written_ms(P0, 7) == 3_400
    assert samples.written_ms(P0, 2) is None, "the one at offset 2 of the log before was another"


def test_samples_are_bounded_the_newest_are_dense_and_the_oldest_is_kept() -> None:
    samples = EndSamples()
    for second in range(5_000):
        samples.add(1_000 * second, {P0: 10 * second})
    assert len(samples) <= SAMPLES_MAX
    assert samples.written_ms(P0, 0) == 0
    for offset in (49_000, 49_980):
        assert samples.written_ms(P0, offset) == 100 * offset
    old = samples.written_ms(P0, 10_000)
    assert old == 1_000_000, "at a steady rate what lies between two samples is where it is thought to lie"


def test_so_many_source_partitions_are_sampled_and_no_more() -> None:
    samples = EndSamples()
    many = {SourcePartition("t", number): 1 for number in range(PARTITIONS_MAX + 5)}
    samples.add(1_000, many)
    samples.add(2_000, {place: 2 for place in many})
    assert samples.written_ms(SourcePartition("t", 0), 1) == 1_000
    assert samples.written_ms(SourcePartition("t", PARTITIONS_MAX + 1), 1) is None
