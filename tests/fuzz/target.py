"""What is fuzzed: a target makes inputs from a seed, and says what is wrong with the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random


class Wrong(AssertionError):
    """An input was answered wrongly. The sentence holds the input."""


@dataclass(frozen=True, slots=True)
class Target:
    """`round` tries one seed's inputs and answers how many they were; it raises for a wrong answer.

    `promise` is the sentence that holds for every input.
    """

    name: str
    promise: str
    round: Callable[[Random], int]


def require(holds: bool, sentence: str, given: object) -> None:
    if not holds:
        raise Wrong(f"{sentence}\n  given: {given!r}")


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
                out[at:at] = random.randbytes(random.randint(1, 9))
            case 5:
                del out[at:]
    return bytes(out)
