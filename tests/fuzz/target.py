"""What is fuzzed: a target makes cases from chance, and says what is wrong with how one is answered.

A case is made of plain literals (numbers, text, bytes, lists, tuples, dicts, None), so that a failing one can
be written down, made smaller and tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any


class Wrong(AssertionError):
    """An input was answered wrongly. The sentence says how; `given` is the input."""

    def __init__(self, sentence: str, given: object) -> None:
        super().__init__(f"{sentence}\n  given: {given!r}")
        self.sentence = sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`make(random, size)` makes a case of about `size` inputs; `check` answers how many inputs it tried.

    `check` raises for a wrong answer, with whatever exception the code under test ended in. `promise` is the
    sentence that holds for every input. `size` is what a soak asks for, `seeds` how many cases one process
    tries.
    """

    name: str
    promise: str
    make: Callable[[Random, int], Any]
    check: Callable[[Any], int]
    size: int
    seeds: int

    def try_seed(self, seed: int) -> int:
        """All inputs of one seed."""
        return self.check(self.make(Random(seed), self.size))


def require(holds: bool, sentence: str, given: object) -> None:
    if not holds:
        raise Wrong(sentence, given)


def damaged(random: Random, raw: bytes) -> bytes:
    """`raw` with a few bits, bytes or stretches of it changed, repeated, left out or cut off."""
    out = bytearray(raw)
    for _ in range(random.randint(1, 4)):
        if not out:
            break
        at = random.randrange(len(out))
        match random.randrange(6):
            case 0:
                out[at] ^= 1 << random.randrange(8)
            case 1:
                out[at] = random.choice((0, 0x7F, 0x80, 0xFF, random.randrange(256)))
            case 2:
                del out[at : at + random.randint(1, 9)]
            case 3:
                out[at:at] = out[at : at + random.randint(1, 40)]
            case 4:
                out[at:at] = noise(random, 9)
            case 5:
                del out[at:]
    return bytes(out)


def noise(random: Random, length_max: int) -> bytes:
    """Up to so many bytes of anything."""
    return bytes(random.randrange(256) for _ in range(random.randint(0, length_max)))
