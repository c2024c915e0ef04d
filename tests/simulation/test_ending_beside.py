"""Worlds whose workers decode while files of theirs are being ended: all that always holds, holds there."""

from __future__ import annotations

import pytest

from participant import events as ev
from tests.simulation.plane import ENDING_BESIDE
from tests.simulation.test_simulation import CHUNK, must_pass
from tests.simulation.walked import ENDING_SCHEDULES
from tests.simulation.worker import Worker
from tests.simulation.world import World

pytestmark = pytest.mark.timeout(900)  # a backstop only

WALKED = 100


def test_no_invariant_breaks_in_any_schedule_in_which_planes_go_on_while_files_are_being_ended() -> None:
    first = ENDING_BESIDE[0]
    tasks = [
        {"do": "schedules", "first": first + at, "count": CHUNK} for at in range(0, ENDING_SCHEDULES, CHUNK)
    ]
    assert must_pass(tasks) == ENDING_SCHEDULES


def test_records_are_buffered_and_transactions_given_up_between_a_flush_and_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met: set[tuple[type, ev.Outcome | None]] = set()
    post = Worker.post

    def noting(self: Worker, event: ev.Event) -> None:
        ending = self.plane._ending
        if ending is not None and isinstance(event, ev.Buffered):
            met.add((ev.Buffered, None))
        if ending is not None and isinstance(event, ev.Flushed):
            met.add((ev.Flushed, event.outcome))
        post(self, event)

    monkeypatch.setattr(Worker, "post", noting)
    for seed in ENDING_BESIDE[:WALKED]:
        World(seed).run()
    assert met == {(ev.Buffered, None), (ev.Flushed, ev.Outcome.FAILED)}


def test_in_all_other_schedules_planes_wait() -> None:
    assert not World(1).ends_beside and not World(ENDING_BESIDE[-1] + 1).ends_beside
