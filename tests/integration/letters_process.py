"""A replay of dead letters in a process of its own, which kills itself at a chosen step of a chosen
transaction.

Started as `python -m tests.integration.letters_process STEP NUMBER`, with the configuration as JSON on stdin.
STEP is a method of `Replay` behind which it dies, or empty.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from lockstep.config import Config
from lockstep.config.kafka import resolve_kafka
from lockstep.config.load import from_json
from lockstep.letters import transactions
from lockstep.letters.choice import Choice
from lockstep.letters.committed_rejects import CommittedRejects, Standing
from lockstep.letters.letter import Letter
from lockstep.letters.marks import By
from lockstep.letters.replay import How, Replay
from lockstep.letters.report import Outcome
from lockstep.letters.walk import Asked, Walk

LETTERS = 5
"""Of each transaction."""
BY = By(pipeline="p", operator="tests", why="a test")


class AllRejected(CommittedRejects):
    """A table whose commits have rejected every record: these tests have no table."""

    def standing(self, letter: Letter) -> Standing:
        return Standing.REJECTED


def walk(config: Config, outcome: Outcome | None = None, **asked: Any) -> Walk:
    choice = Choice(topics=config.source.topics)
    told = Asked(**{"choice": choice, "limit": None, **asked})
    outcome = outcome or Outcome(replay=True, executed=True)
    committed = AllRejected(config.source.topics)
    return Walk(config, resolve_kafka(config), told, outcome, committed=committed)


def dying_behind(step: str, number: int) -> None:
    """From here on the step's so many-th call is the last thing that this process does."""
    right, left = getattr(Replay, step), [number]

    def wrong(*args: Any) -> Any:
        answer = right(*args)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(Replay, step, wrong)


def main(step: str, number: str) -> None:
    transactions.TRANSACTION_LETTERS_MAX = LETTERS
    if step:
        dying_behind(step, int(number))
    for _ in walk(from_json(sys.stdin.read())).replayed(BY, How()):
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
