"""The queue between the consuming thread and the decoding one."""

from __future__ import annotations

import threading

from participant.worker.queues import ByteQueue


def test_data_waits_for_room_and_an_order_never_does() -> None:
    queue: ByteQueue[str] = ByteQueue(10)
    assert queue.put("a", 6, timeout_s=0)
    assert not queue.put("b", 6, timeout_s=0)
    assert queue.put("order", timeout_s=0)
    assert queue.held_bytes == 6
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["order", "a", None]
    assert queue.put("b", 6, timeout_s=0)


def test_orders_come_out_before_data_and_each_kind_in_its_order() -> None:
    queue: ByteQueue[str] = ByteQueue(10)
    for item, size_bytes in (("a", 3), ("first", 0), ("b", 3), ("second", 0)):
        assert queue.put(item, size_bytes, timeout_s=0)
    assert [queue.get(0) for _ in range(4)] == ["first", "second", "a", "b"]


def test_something_larger_than_the_queue_still_passes_alone() -> None:
    queue: ByteQueue[str] = ByteQueue(10)
    assert queue.put("huge", 1_000, timeout_s=0)
    assert not queue.put("small", 1, timeout_s=0)
    assert queue.get(0) == "huge"
    assert queue.held_bytes == 0


def test_whoever_waits_for_room_goes_on_when_there_is_some() -> None:
    queue: ByteQueue[int] = ByteQueue(10)
    assert queue.put(1, 10)
    put = threading.Thread(target=lambda: queue.put(2, 10, timeout_s=30))
    put.start()
    assert queue.get(30) == 1
    assert queue.get(30) == 2
    put.join(30)
    assert not put.is_alive()
