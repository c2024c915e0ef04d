"""The control topic's newest messages: bounded in bytes, for anybody may write large ones."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from control_topic.messages import Halt, Message
from control_topic.transport import Received
from lockstep.watch import tail
from lockstep.watch.tail import read_tail

MIB = 2**20


def received(offset: int) -> Received:
    message = Message(
        pipeline="p", run="r", epoch=1, sender="driver", incarnation="d",
        sequence=offset, sent_at_ms=0, body=Halt(reason="stop"),
    )  # fmt: skip
    return Received(offset=offset, time_ms=5, size_bytes=9, content=message)


class Reader:
    """Each poll gives one message, of so many bytes."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes: Iterator[tuple[int, int]] = iter(enumerate(sizes))
        self._left = len(sizes)
        self.bodies_bytes, self.last_error = 0, ""

    @property
    def caught_up(self) -> bool:
        return self._left == 0

    def poll(self, _timeout_s: float) -> list[Received]:
        offset, size_bytes = next(self._sizes)
        self.bodies_bytes += size_bytes
        self._left -= 1
        return [received(offset)]

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("sizes", "offsets"),
    [((100,) * 5, [0, 1, 2, 3, 4]), ((20 * MIB, 10 * MIB, 10 * MIB, 5 * MIB), [1, 2, 3]), ((60 * MIB,), [0])],
)
def test_the_newest_messages_are_kept_as_far_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], offsets: list[int]
) -> None:
    facts = SimpleNamespace(exists=True)
    monkeypatch.setattr(tail, "ControlTopic", lambda *_: SimpleNamespace(describe=lambda timeout_s: facts))
    monkeypatch.setattr(tail, "ControlReader", lambda *_, **__: Reader(sizes))
    found = read_tail({}, "control", pipeline="p")
    assert [one.offset for one in found.heard] == offsets
    assert ("32 MiB" in found.problem) == (len(offsets) < len(sizes))
