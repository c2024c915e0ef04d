"""What becomes of fields that the table has no column for, where schemas change while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping

EVOLVE, IGNORE, HALT = "evolve", "ignore", "halt"
CHANGES: Mapping[str, str] = {
    EVOLVE: "they become columns, in the same commit as the first record that has them",
    IGNORE: "they are read over",
    HALT: "the run commits what is before the first such record, and halts",
}
"""Name in the configuration -> for people."""
