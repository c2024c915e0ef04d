"""What a look at the table says of a savepoint; real ones are in tests/integration/test_savepoints.py."""

from __future__ import annotations

from lockstep.watch.looks import SAVEPOINT_FORGOTTEN_MS, TableLook
from table.instants import Savepoint

KEPT = Savepoint(instant="20261101000000000", created="20261102000000000", kept=1_234)
LOOK = TableLook(exists=True, savepoint=KEPT, savepoint_ms=1_000)


def test_a_savepoint_is_named_once_it_may_be_forgotten_with_what_it_costs_and_what_deletes_it() -> None:
    assert LOOK.savepoint_problem(1_000 + SAVEPOINT_FORGOTTEN_MS - 1) == ""
    said = LOOK.savepoint_problem(1_000 + 3 * SAVEPOINT_FORGOTTEN_MS)
    assert said.startswith(
        "The savepoint of instant 20261101000000000, created 3 d 00 h ago, keeps 1,234 inst"
    )
    assert said.endswith("CALL delete_savepoint(table => …, instant_time => '20261101000000000').")
    assert TableLook(exists=True).savepoint_problem(10**15) == ""
