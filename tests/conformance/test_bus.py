"""The control topic: what the simulator's bus and the one in memory assume, on Kafka as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from control_topic.trust import mark
from tests.conformance.bus_sides import (
    KEY,
    TRUST,
    BusSide,
    KafkaSide,
    MemorySide,
    SimulatedSide,
    raw_message,
    read,
)
from tests.simulation.bus import TAIL

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("conformance")]


@pytest.fixture(params=["kafka", "memory", "simulated"])
def bus(request: pytest.FixtureRequest) -> Iterator[BusSide]:
    with ExitStack() as opened:
        if request.param == "kafka":
            topic = request.getfixturevalue("make_topic")()
            servers = request.getfixturevalue("broker").bootstrap_servers
            yield KafkaSide(servers, topic, opened)
        else:
            yield MemorySide() if request.param == "memory" else SimulatedSide()


def names(first: int, following: int, *, of: str = "t") -> list[str]:
    return [f"{of}{n}" for n in range(first, following)]


def test_every_reader_hears_one_order_and_each_sender_in_its_own(bus: BusSide) -> None:
    one, other = bus.reader(), bus.reader()
    for n in range(10):
        bus.send(f"a{n}", sender="a")
        bus.send(f"b{n}", sender="b")
    heard, heard_too = read(bus, one, other)
    assert heard == heard_too
    assert [t for t in heard if t.startswith("a")] == names(0, 10, of="a")
    assert [t for t in heard if t.startswith("b")] == names(0, 10, of="b")


def test_a_reader_that_lagged_hears_all_the_same(bus: BusSide) -> None:
    reader = bus.reader()
    reader.hold()
    bus.send(*names(0, 60))
    assert read(bus, reader) == [names(0, 60)]


def test_a_new_reader_hears_the_tail_of_what_was_there(bus: BusSide) -> None:
    bus.send(*names(0, TAIL + 20))
    assert read(bus, bus.reader()) == [names(20, TAIL + 20)]


def test_a_reader_whose_records_were_removed_goes_on_with_what_is_left(bus: BusSide) -> None:
    reader = bus.reader()
    bus.send(*names(0, 3))
    assert read(bus, reader) == [names(0, 3)]  # and a mark: it stands at offset 4
    reader.hold()
    bus.send(*names(4, 10))
    bus.remove_before(8)
    assert read(bus, reader) == [names(8, 10)]


def test_a_reader_whose_records_were_removed_skips_what_is_older_than_the_tail(bus: BusSide) -> None:
    reader = bus.reader()
    reader.hold()
    bus.send(*names(0, TAIL + 20))
    bus.remove_before(1)
    assert read(bus, reader) == [names(21, TAIL + 20)]  # the mark is one of the tail


def test_a_topic_made_anew_is_heard_from_its_beginning_where_it_is_shorter_than_what_was_read(
    bus: BusSide,
) -> None:
    reader = bus.reader()
    bus.send(*names(0, 20))
    assert read(bus, reader) == [names(0, 20)]
    bus.recreate()
    bus.send(*names(100, 103))
    assert read(bus, reader) == [names(100, 103)]


def test_a_topic_made_anew_that_has_grown_meanwhile_is_heard_from_where_reading_stood(bus: BusSide) -> None:
    """Nobody notices: what is before it in the new log is lost to this reader, and to no other."""
    reader = bus.reader()
    bus.send(*names(0, 3))
    assert read(bus, reader) == [names(0, 3)]  # and a mark: it stands at offset 4
    reader.hold()
    bus.recreate()
    bus.send(*names(100, 109))
    late = bus.reader()
    assert read(bus, reader, late) == [names(104, 109), names(100, 109)]


def test_a_message_in_parts_is_heard_once_and_whole_or_not_at_all(bus: BusSide) -> None:
    reader = bus.reader()
    whole = raw_message("in-parts-and-whole", parts_of_bytes=8)
    torn = raw_message("in-parts-and-torn", parts_of_bytes=8)
    assert min(len(whole), len(torn)) > 2
    for part in [*torn[:1], *torn[2:], *whole, *whole]:
        bus.append(part)
    heard = read(bus, reader)[0]
    assert set(heard) == {"in-parts-and-whole"}


def test_what_is_no_message_is_passed_over(bus: BusSide) -> None:
    reader = bus.reader()
    bus.send("before")
    bus.append(b"not a message")
    bus.append(b"")
    bus.send("after")
    assert read(bus, reader) == [["before", "after"]]


def test_who_trusts_hears_only_what_bears_the_mark_of_its_run_though_it_be_said_again(bus: BusSide) -> None:
    trusting, anybody = bus.reader(trust=TRUST), bus.reader()
    (forged,), (said,) = raw_message("forged"), raw_message("said")
    for raw, mac in ((forged, b""), (forged, mark(bytes(32), forged)), (forged, mark(KEY, said))):
        bus.append(raw, mac)
    for _ in range(2):
        bus.append(said, mark(KEY, said))
    assert read(bus, trusting, anybody) == [["said", "said"], ["forged"] * 3 + ["said"] * 2]
