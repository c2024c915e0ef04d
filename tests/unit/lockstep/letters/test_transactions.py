"""How letters are cut into transactions."""

from __future__ import annotations

from lockstep.letters.transactions import TRANSACTION_BYTES_MAX, TRANSACTION_LETTERS_MAX, transactions
from tests.unit.lockstep.letters.made import letter


def test_a_transaction_has_so_many_letters_at_most_and_all_are_in_one_in_their_order() -> None:
    letters = [letter(offset) for offset in range(2 * TRANSACTION_LETTERS_MAX + 1)]
    cut = list(transactions(letters))
    assert [len(some) for some in cut] == [TRANSACTION_LETTERS_MAX, TRANSACTION_LETTERS_MAX, 1]
    assert [one for some in cut for one in some] == letters
    assert list(transactions([])) == []


def test_a_transaction_holds_so_much_at_most_and_what_is_larger_goes_alone() -> None:
    half, large = b"x" * (TRANSACTION_BYTES_MAX // 2), b"x" * (2 * TRANSACTION_BYTES_MAX)
    letters = [letter(1), letter(2, value=large), letter(3), letter(4, value=half), letter(5, value=half)]
    assert [[one.offset for one in some] for some in transactions(letters)] == [[1], [2], [3, 4], [5]]
