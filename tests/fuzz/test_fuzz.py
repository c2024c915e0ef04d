"""What comes from outside is answered: a few thousand inputs of every kind, always the same ones."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from tests.fuzz.__main__ import TARGETS, try_seed
from tests.fuzz.records import Refused, expected
from tests.fuzz.target import Wrong, require

SEEDS = 8


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_is_answered_as_promised(name: str) -> None:
    assert sum(try_seed(TARGETS[name], seed) for seed in range(SEEDS)) >= 10 * SEEDS


def test_a_seed_is_replayed_by_the_command_that_a_failure_names() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--target", "decoder", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split()[:2] == ["seed", "3"]
    assert int(done.stdout.split()[-1]) == try_seed(TARGETS["decoder"], 3)


def test_a_wrong_answer_is_reported_with_its_input() -> None:
    with pytest.raises(Wrong, match="given: b'x'"):
        require(False, "no answer", b"x")


def test_the_reference_itself_tells_rows_from_rejects() -> None:
    row = expected(b'{"id":"a","n":1,"more":{"k":2}}', maps=True)
    assert (row["id"], row["n"], row["more"]) == ("a", 1, [("k", 2)])
    for value in (
        None,
        b"",
        b'{"n":1}',
        b'{"id":"a"}{"id":"b"}',
        b'{"id":"a","n":1.0}',
        b'{"id":"a","id":"b"}',
    ):
        with pytest.raises(Refused):
            expected(value, maps=True)


def test_seeds_differ() -> None:
    assert Random(1).random() != Random(2).random()
