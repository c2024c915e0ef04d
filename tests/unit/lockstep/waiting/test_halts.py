"""Whose HALT on the control topic counts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from control_topic.messages import AckCommit, Body, Halt, Message, ParticipantReady
from lockstep.config import load
from lockstep.waiting.halts import SETTLES_S, TOPIC, Halts, HaltSeen, goes_on
from lockstep.watch.told import Heard
from lockstep.watch.topic_fold import fold
from tests.unit.lockstep.waiting.test_wait import PIPELINE as CONFIG

HALT = ("coordinator-1", 4, Halt(reason="poison"))
FORGED = ("somebody", 4, Halt(reason="because"))
ACK = ("coordinator-1", 4, AckCommit(transaction="t1", instant="i1", committed={}))
STALE = ("coordinator-0", 3, AckCommit(transaction="t0", instant="i0", committed={}))
READY = ("worker-1", 4, ParticipantReady())


def heard(*said: tuple[str, int, Body], run: str = "run") -> list[Heard]:
    return [
        Heard(
            offset=offset,
            time_ms=offset,
            message=Message(
                pipeline="events",
                run=run,
                sender=sender,
                incarnation=f"{sender}-i",
                epoch=epoch,
                body=body,
                sequence=offset,
                sent_at_ms=0,
            ),
        )
        for offset, (sender, epoch, body) in enumerate(said)
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([ACK, HALT], False),
        ([ACK, HALT, READY], False),
        ([ACK, HALT, STALE], False),
        ([ACK, FORGED, ACK], True),
        ([ACK, FORGED, ACK, HALT], False),
        ([ACK], True),
    ],
)
def test_a_run_whose_coordinator_speaks_on_has_not_halted(
    said: list[tuple[str, int, Body]], expected: bool
) -> None:
    messages = heard(*said)
    known = fold(messages, placed="run", table_epoch=4)
    assert goes_on(messages, run="run", epoch=known.epoch) is expected


def test_another_runs_coordinator_says_nothing_of_this_run() -> None:
    assert not goes_on([*heard(ACK, HALT), *heard(ACK, run="other")], run="run", epoch=4)


def test_a_halt_counts_once_the_runs_coordinator_had_the_time_to_speak_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, now_s = tmp_path / "pipeline.toml", [100.0]
    path.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    halts = Halts(load(path), {}, driver=lambda _pipeline: None, clock_s=lambda: now_s[0])
    told: list[tuple[str, str] | None] = [None]
    monkeypatch.setattr(halts, "_reader", SimpleNamespace(caught_up=True))
    monkeypatch.setattr(halts, "_read", lambda: None)
    monkeypatch.setattr(halts, "_told", lambda _epoch: told[0])

    def seen(*, after_s: float) -> HaltSeen | None:
        now_s[0] += after_s
        return halts.look(table_epoch=4)

    assert seen(after_s=0) is None
    told[0] = ("run", "because")
    assert seen(after_s=1) is None
    told[0] = None  # the coordinator spoke on
    assert seen(after_s=SETTLES_S) is None
    told[0] = ("run", "poison")
    assert seen(after_s=SETTLES_S) is None
    assert seen(after_s=SETTLES_S) == HaltSeen(reason="poison", word=TOPIC)
