"""What one transaction of letters may hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockstep.letters.letter import Letter

TRANSACTION_LETTERS_MAX = 500
TRANSACTION_BYTES_MAX = 8 * 1024 * 1024
LETTER_BYTES = 1_024
"""What is spent on a letter and its mark beyond the record's content."""


def transactions(letters: Iterable[Letter]) -> Iterator[list[Letter]]:
    """Letters in their order, cut: so many at most, or so much; a letter that is larger goes alone."""
    some: list[Letter] = []
    size_bytes = 0
    for letter in letters:
        letter_bytes = letter.size_bytes + LETTER_BYTES
        if some and (
            len(some) >= TRANSACTION_LETTERS_MAX or size_bytes + letter_bytes > TRANSACTION_BYTES_MAX
        ):
            yield some
            some, size_bytes = [], 0
        some.append(letter)
        size_bytes += letter_bytes
    if some:
        yield some
